/*
 * Threads of the plugin: named, with every signal blocked, so that a host's handlers never run on
 * them. Started by whoever owns what they work on, who also joins them.
 */
#pragma once

#include <glib.h>

/* NULL with SPR_E_EXHAUSTED when the process may have no more threads. name: 15 bytes at most. */
GThread *spr_thread_start(const char *name, GThreadFunc run, void *data, GError **error);
