/*
 * From a record to the command line and environment of its first process. Pure but for looking at
 * which directories the host has; any thread.
 */
#pragma once

#include "local/store.h"

/* The supervisor's folder as its commands see it, and what the host names its own socket. */
#define LOCAL_OWN_DIRECTORY "/.sprov"
#define LOCAL_BOOT_SOCKET "boot"

/* folder: the sandbox's. bwrap: its path, or NULL where it is not wanted. g_strfreev() them. */
char **local_plan_argv(const LocalRecord *record, const char *folder, const char *bwrap);
char **local_plan_environment(const LocalRecord *record, const char *folder);

/* Where commands begin, as the sandbox sees it. */
char *local_plan_workdir(const DkrSandboxOptions *options, const char *folder);
