/*
 * What a host should be told about a sandbox that starts all the same: rights that undo other
 * options, and a container that was made with other options than those of the handle. Called by
 * start; pure, any thread.
 */
#pragma once

#include "sandbox/spec.h"

/* Lines for the log, NULL-terminated, to be freed with g_strfreev(); inspect is GET
 * /containers/<id>/json, images may be NULL. made_now: by this start, so that it has the options.
 */
char **dkr_warnings(const DkrSandboxOptions *options, const json_t *inspect,
                    const DkrSpecImages *images, bool made_now);
