/*
 * Environments as lists of "NAME=value", where "NAME" alone takes a variable away. Pure.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* base with changes on top: one entry a name, in order of first appearance. Either may be NULL.
 * The result may hold secrets: free it with dkr_env_free(). */
char **dkr_env_merge(const char *const *base, const char *const *changes);

/* SPR_E_INVALID_ARGUMENT, reason "invalid-env", for an entry without a name. */
bool dkr_env_check(const char *const *env, GError **error);

/* Wipes and frees. NULL does nothing. */
void dkr_env_free(char **env);
