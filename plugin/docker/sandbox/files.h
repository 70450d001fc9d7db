/*
 * Reading and writing one file of a running container without a supervisor: the archive API where
 * it sees what the sandbox sees, a command of the sandbox's own user elsewhere (tmpfs, /proc). One
 * call streams one file on the calling thread; any number at once.
 */
#pragma once

#include "sandbox/command.h"
#include "sandbox/life.h"

/* Hands max_bytes (0: all) from offset on to sink. */
bool dkr_file_read(const DkrContext *context, const DkrLife *life, const char *path, guint64 offset,
                   guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                   DkrReadResult *ret_result, GError **error);

/* Replaces or makes the file. size is what source gives, UINT64_MAX when unknown; mode 0 keeps the
 * old one, or 0644. Until the last rename the old bytes stay; where no rename can replace the file
 * (it is a mount of its own, or its directory takes no new file) it is written in place. */
bool dkr_file_write(const DkrContext *context, const DkrLife *life, const char *path, guint mode,
                    guint64 size, const DkrSource *source, const SprWait *wait, GError **error);
