/*
 * Isolation options that an engine takes and ignores where its machine has no module for them: they
 * are refused before anything is made. Called by create.c; blocking.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/context.h"

#include <jansson.h>

/* SPR_E_UNSUPPORTED, reason "option-ignored", naming the option. */
bool dkr_isolation_check(const DkrContext *context, const DkrSandboxOptions *options,
                         const SprWait *wait, GError **error);

/* The same with the engine's answer to GET /info. Pure. */
bool dkr_isolation_check_info(const DkrSandboxOptions *options, const json_t *info, GError **error);
