/*
 * What cases of a sandbox's life and of its id are written with: calls that must succeed, unless
 * they say otherwise.
 */
#pragma once

#include "check/case.h"

sprov_start_outcome life_start(sprov_sandbox *sandbox);
void life_stop(sprov_sandbox *sandbox); /* of a provider with sprov.lifecycle/1 */

/* May fail: an exec with these flags, of a command that would be seen. */
sprov_status life_exec(sprov_sandbox *sandbox, guint32 flags);
/* A file by way of a command, so that file calls are no part of these cases. */
void life_put(sprov_sandbox *sandbox, const char *file, const char *text);

bool life_can_list(void);
