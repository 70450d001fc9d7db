/*
 * Whether memory that is mounted got the mode that was asked for: runc 1.1.5 gives it that of a
 * directory that is there, and the engine's description tells what was asked for. Called by
 * create.c once a sandbox runs; blocking.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/life.h"

/* SPR_E_UNSUPPORTED, reason "option-not-applied", naming the option. What the sandbox's user can't
 * see, or no program of the image tells, is let pass. */
bool dkr_tmpfs_mode_check(const DkrContext *context, const DkrSandboxOptions *options,
                          const DkrLife *life, const SprWait *wait, GError **error);

/* The mode in the options of a tmpfs mount, as "size=1m,mode=1777"; -1: none. Pure. */
int dkr_tmpfs_mode(const char *options);
