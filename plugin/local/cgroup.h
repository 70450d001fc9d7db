/*
 * Limits of a sandbox by cgroups of version 2: a group of its own beside or above this process's,
 * in the nearest one whose controllers reach its children and which this user may change. Without
 * one a limit is refused, never dropped. Any thread.
 */
#pragma once

#include "base/wait.h"

typedef struct {
    gint64 memory; /* bytes; 0: no limit */
    gint64 pids;   /* 0: no limit */
} LocalLimits;

/* Makes the group `name`, which nobody is in yet. *ret_path stays NULL where there is nothing to
 * limit; g_free() it. SPR_E_UNSUPPORTED names the option that can't be kept. */
bool local_cgroup_make(const LocalLimits *limits, const char *name, char **ret_path,
                       GError **error);

/* The same below `root` for a process whose /proc/self/cgroup is text, for tests. */
bool local_cgroup_make_below(const char *root, const char *text, const LocalLimits *limits,
                             const char *name, char **ret_path, GError **error);

/* Kills who is in it and removes it. path NULL, or gone, does nothing. */
void local_cgroup_remove(const char *path, const SprWait *wait);
