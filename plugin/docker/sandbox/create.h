/*
 * From a sandbox's options to a new container that runs: ensure the image, create, start; whatever
 * fails on the way is taken back. Called by the state machine with its transition held; blocking,
 * no state of its own.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/context.h"
#include "supervised/backend.h"

/* Creates and starts a new one. When another process was faster with the same id, its container
 * is adopted and *ret_outcome says so. */
bool dkr_create_new(const DkrContext *context, const DkrSandboxOptions *options,
                    const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                    DkrStartOutcome *ret_outcome, GError **error);
