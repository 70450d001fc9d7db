/*
 * The archive API: tar streams in and out of a container's file system as the engine sees it,
 * which is the root and the volumes, never what was mounted inside. The engine holds the
 * container's lock for the whole transfer, so read to the end or free the reply. Any thread.
 */
#pragma once

#include "base/tar.h"
#include "engine/client.h"

/* The size of what is at path (absolute), SPR_E_NOT_FOUND when nothing is. */
bool dkr_archive_size(DkrClient *client, const char *container, const char *path,
                      const SprWait *wait, guint64 *ret_size, GError **error);

/* Its permission bits, of the root and the volumes also where something is mounted over them. */
bool dkr_archive_mode(DkrClient *client, const char *container, const char *path,
                      const SprWait *wait, guint *ret_mode, GError **error);

/* The tar of path (absolute), to be read from *ret_reply. */
bool dkr_archive_get(DkrClient *client, const char *container, const char *path,
                     const SprWait *wait, DkrReply **ret_reply, GError **error);

/* Unpacks the tar into directory (absolute, must exist). A directory is never replaced by a file.
 */
bool dkr_archive_put(DkrClient *client, const char *container, const char *directory,
                     SprTarWriter *tar, const SprWait *wait, GError **error);
