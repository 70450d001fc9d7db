/*
 * Whether memory that is mounted has the mode that its container was made with: runtimes such as
 * runc 1.1.5 give it that of a directory that is there, and the engine's description tells what was
 * asked for. Called by connect.c and create.c at each start; blocking.
 */
#pragma once

#include "sandbox/life.h"

/* Before the first start on engines with such a runtime: makes the directories with the mode. What
 * does not work, as with a read-only root, dkr_tmpfs_mode_settle() sees. inspect is of the created
 * container. */
void dkr_tmpfs_mode_prepare(const DkrContext *context, const json_t *inspect, const SprWait *wait);

/* After each start: gives it the mode that it lacks. Where that can't be, SPR_E_UNSUPPORTED, reason
 * "option-not-applied", naming the option. What the sandbox's user can't see, or no program of the
 * image tells, is let pass. */
bool dkr_tmpfs_mode_settle(const DkrContext *context, const json_t *inspect, const DkrLife *life,
                           const SprWait *wait, GError **error);
