/*
 * Processes of a sandbox that nothing is written down of: its folder went away behind its back.
 * Found by their command lines, in which the folder stands. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;
    bool is_isolated; /* bubblewrap, whose child is the sandbox's first process; else that itself */
} LocalStray;

/* Array of LocalStray, of this user's processes; those whose parent is in it are not. */
GArray *local_stray_find(const char *folder);

/* Whether a command line, each argument with its NUL, is one that runs the sandbox of this folder.
 */
bool local_stray_is_of(const char *arguments, gsize size, const char *folder,
                       bool *ret_is_isolated);
