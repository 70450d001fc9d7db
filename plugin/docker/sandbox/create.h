/*
 * From a sandbox's options to a container that runs: find the one that carries the id, or ensure
 * the image, create and start; whatever fails on the way is taken back. Called by the state machine
 * with its transition held; blocking, no state of its own.
 */
#pragma once

#include "sandbox/sandbox.h"

/* The container with this id, or *ret_container NULL when there is none. Two are SPR_E_CONFLICT,
 * naming both. ret_socket (may be NULL) is the host's socket of its label, or NULL. */
bool dkr_create_find(const DkrContext *context, const char *id, const SprWait *wait,
                     char **ret_container, char **ret_socket, GError **error);

/* Finds it and makes it run again, a paused one too. *ret_life stays as it is when there is
 * none. */
bool dkr_create_connect(const DkrContext *context, const DkrSandboxOptions *options,
                        const SprWait *wait, DkrLife **ret_life, GError **error);

/* Creates and starts a new one. When another process was faster with the same id, its container
 * is adopted and *ret_outcome says so. */
bool dkr_create_new(const DkrContext *context, const DkrSandboxOptions *options,
                    const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                    DkrStartOutcome *ret_outcome, GError **error);
