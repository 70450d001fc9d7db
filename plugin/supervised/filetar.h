/*
 * Between tar and what a supervisor is told and tells of files: an archive of the caller as items
 * to put, entries that come as an archive for the caller. Names that would leave the directory are
 * refused here; that no link is followed is the supervisor's part. One transfer, one thread.
 */
#pragma once

#include "supervised/command.h"
#include "supervisor/client/fileitems.h"

/* --------------------------------------------------------------------------- unpacking */

typedef struct DkrUntar DkrUntar;

/* source: of the tar; wait: while it has nothing. Both borrowed. */
DkrUntar *dkr_untar_new(const DkrSource *source, const SprWait *wait);

/* Gives up with an error when an entry is refused or the archive is none. */
const SprSource *dkr_untar_source(DkrUntar *untar);

/* Why it gave up, or NULL. */
const GError *dkr_untar_error(const DkrUntar *untar);
void dkr_untar_free(DkrUntar *untar);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrUntar, dkr_untar_free)

/* The name as it is put: without "./", double and last slashes, or "" for the directory itself.
 * NULL when it leads out. g_free() it. */
char *dkr_untar_name(const char *path);

/* Whether a symbolic link of this (clean) name stays inside, followed by whoever and however often:
 * ".." only at its beginning, and not above the directory. */
bool dkr_untar_link_stays(const char *name, const char *target);

/* ----------------------------------------------------------------------------- packing */

typedef struct DkrTar DkrTar;

DkrTar *dkr_tar_new(const DkrSink *sink);
SprFileTaker dkr_tar_taker(DkrTar *tar);

/* The archive's end, once all entries came. */
bool dkr_tar_finish(DkrTar *tar, GError **error);

/* Why it stopped, or NULL: the sink said so. */
const GError *dkr_tar_error(const DkrTar *tar);
void dkr_tar_free(DkrTar *tar);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrTar, dkr_tar_free)
