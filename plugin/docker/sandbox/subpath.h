/*
 * Directories inside volumes that are mounted in their place: made before the container when the
 * options say so, and named when a start failed for want of one. Both look into the volume through
 * a container that is created and never started. Blocking; any thread.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/context.h"

/* Makes those of the mounts with createSubpath that are missing; what is there stays as it is. They
 * belong to the options' user when that is given in numbers, else to root. image: any that the
 * engine has. */
bool dkr_subpath_create(const DkrContext *context, const DkrSandboxOptions *options,
                        const char *image, const SprWait *wait, GError **error);

/* In place of *error, the failure of a start that call waited for: SPR_E_NOT_FOUND, reason
 * "no-such-subpath", when a mount's subpath is missing. */
void dkr_subpath_explain(const DkrContext *context, const DkrSandboxOptions *options,
                         const char *image, const SprWait *call, GError **error);
