/*
 * The options of memory that is mounted, as mount(8) writes them: "size=64m,mode=1777". Pure, any
 * thread.
 */
#pragma once

#include <glib.h>

/* What mount gives memory when nothing is asked for, and engines document as theirs. Said
 * nevertheless: runtimes give it that of a directory that is there already, which from the second
 * start on there is. */
#define DKR_TMPFS_MODE 01777
#define DKR_TMPFS_NO_MODE (-1)

/* The last mode in options, or DKR_TMPFS_NO_MODE. */
int dkr_tmpfs_mode(const char *options);

/* options with a mode; g_free() it. */
char *dkr_tmpfs_with_mode(const char *options);

/* One form for options that mean the same: sorted, with a mode, numbers without their units. */
char *dkr_tmpfs_normal(const char *options);
