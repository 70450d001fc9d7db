/*
 * Makes what a sandbox has of its own, starts its first process, and ends it with all that it
 * started. Whoever calls holds the sandbox's lock. Blocking; any thread.
 */
#pragma once

#include "local/store.h"
#include "supervisor/client/supervisor.h"

/* The folders and files of a new sandbox. */
bool local_launch_prepare(const LocalRecord *record, const char *folder, GError **error);

/* Starts it. bwrap: its path, NULL where there is none. Stores pid, start time and cgroup in
 * record; *ret_process is readable once it has ended; *ret_supervisor is the connection that it
 * made when it booted. Leaves nothing that runs when it fails. */
bool local_launch(LocalRecord *record, const char *folder, const char *bwrap, const SprWait *wait,
                  int *ret_process, SprSupervisor **ret_supervisor, GError **error);

/* A descriptor that is readable once its first process has ended; -1 when none runs. One that a
 * host started who died before it could write so is found by its socket, and stored in record. */
int local_launch_find(LocalRecord *record, const char *folder);

/* Ends what runs of a sandbox whose folder, and so its record, somebody removed; nothing to end is
 * success. */
bool local_launch_end_strays(const char *folder, const SprWait *wait, GError **error);

/* Ends what runs of it and returns once nothing is left; nothing to end is success. */
bool local_launch_end(LocalRecord *record, const char *folder, const SprWait *wait, GError **error);
