/*
 * Small shell scripts that the provider itself runs in a container, as a given user, with a plain
 * environment. Blocking; any thread.
 */
#pragma once

#include "supervised/run.h"

/* /bin/sh -c script with args as $1, $2, ..., which may be any bytes. g_strfreev() it. */
char **dkr_script_argv(const char *script, const char *const *args);

/* Runs /bin/sh -c script with args as $1, $2, ... and gathers what it prints, at most 1 MiB.
 * user NULL is the container's, source NULL no input. SPR_E_UNSUPPORTED, reason "no-shell", where
 * the image has no shell; SPR_E_CANCELLED when the token fired; SPR_E_TIMEOUT, "stalled",
 * when no byte moved for 30 s. */
bool dkr_script_run(const DkrVenue *venue, const char *user, const char *script,
                    const char *const *args, const DkrSource *source, const SprWait *wait,
                    GByteArray **ret_output, int *ret_exit_code, GError **error);

typedef struct {
    GByteArray *output;
    int exit_code;
} DkrScriptResult;

/* The same for several times the script in one command, each with the next width of args (at most
 * 1 MiB of output together). *ret_results has a DkrScriptResult for each, and frees them. */
bool dkr_script_run_each(const DkrVenue *venue, const char *script, const char *const *args,
                         gsize width, const SprWait *wait, GPtrArray **ret_results, GError **error);
