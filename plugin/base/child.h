/*
 * A program of the machine (ssh) as a child whose standard input and output are one socket.
 * It begins with default signal dispositions, none blocked, no descriptor but its three, in a
 * session of its own: neither Ctrl-C nor a question on the host's terminal concerns it. Waited for
 * by a pidfd, so that a host may ignore SIGCHLD or wait for any child. A child belongs to one
 * owner; any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct SprChild SprChild;

/* environment is "NAME=value", NULL-terminated; argv[0] is looked up in its PATH. fd, above the
 * standard streams, becomes the child's input and output, and stays the caller's.
 * SPR_E_UNAVAILABLE, reason "no-program", when it cannot be started. */
bool spr_child_start(const char *const *argv, const char *const *environment, int fd,
                     SprChild **ret_child, GError **error);

/* The same with a new socket, whose other end is *ret_fd: close-on-exec, non-blocking, the
 * caller's. */
bool spr_child_talk(const char *const *argv, const char *const *environment, int *ret_fd,
                    SprChild **ret_child, GError **error);

/* What it wrote to its standard error so far, or NULL: its lines as one of valid UTF-8, the first
 * and the last of them where there are many. */
char *spr_child_complaint(SprChild *child);

/* Waits for its end, not longer than limit_ms. False: it goes on, or nobody can tell how it ended
 * (the host waits for all children). *ret_code is its exit code, or 128 and the number of the
 * signal that ended it. */
bool spr_child_wait(SprChild *child, gint64 limit_ms, int *ret_code);

/* Kills it at once, waits for its end, and frees. NULL does nothing. */
void spr_child_end(SprChild *child);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprChild, spr_child_end)
