/*
 * Options that this provider knows and cannot keep. For the tables of options.c and mounts.c; pure,
 * any thread.
 */
#pragma once

#include "options/json.h"

/* SPR_E_UNSUPPORTED, reason "unsupported-option", with the path in front. False always. */
bool local_refuse(const DkrJsonPath *path, const char *why, GError **error);

/* A reader that takes no value; field->words[0] is why. */
bool local_refuse_option(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error);
