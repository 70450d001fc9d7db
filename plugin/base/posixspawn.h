/*
 * The one way in which the plugin starts a program of the machine: default signal dispositions,
 * none blocked, no descriptor but three, a session of its own, so that neither Ctrl-C nor a
 * question on the host's terminal concerns it. Who starts one waits for it by its pid. Any thread.
 */
#pragma once

#include <sys/types.h>

/* argv[0] is looked up in the PATH of environment, never in this process's, which the host may
 * change meanwhile. The descriptors are 3 or more and stay the caller's; in may be -1 for nothing
 * to read. An errno, or 0. */
int spr_spawn(const char *const *argv, const char *const *environment, int in, int out, int err,
              pid_t *ret_pid);
