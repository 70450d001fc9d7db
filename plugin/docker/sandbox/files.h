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
