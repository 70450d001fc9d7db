/*
 * Whether anybody uses a sandbox at this moment: a connection to one of its supervisors, a command
 * or process of which anything lives, an engine's exec. Called by sandboxes.c; blocking, any
 * thread.
 */
#pragma once

#include "sandbox/context.h"

#include <jansson.h>

/* inspect: the engine's record of a container that runs. *ret_use says who in a few words, or is
 * NULL when nobody does; then, unless it only tells, who comes finds its supervisors waiting for
 * some seconds. False when it can't be told. g_free() *ret_use. */
bool dkr_prune_find_use(const DkrContext *context, const json_t *inspect, bool only_tells,
                        const SprWait *wait, char **ret_use, GError **error);
