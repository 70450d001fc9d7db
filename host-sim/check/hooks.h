/*
 * What only the outside can do to a sandbox or to the way to the engine: commands of the user in a
 * JSON file (--hooks), as docs/conformance.md describes them. Read by the runner, to refuse a wrong
 * file at once, and by the process of a case that needs one.
 */
#pragma once

#include <jansson.h>

#include "check/check.h"

typedef struct {
    json_t *root;
    char *folder; /* of the file; stands for {dir} in commands */
} CheckHooks;

bool check_hooks_load(const char *path, CheckHooks **ret_hooks, GError **error);
void check_hooks_free(CheckHooks *hooks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckHooks, check_hooks_free)

/* Whether there is a hook for a gate such as "@pause". */
bool check_hooks_open(const CheckHooks *hooks, const char *gate);

/* The command of a hook with this word (or NULL) behind it, NULL-terminated; free with
 * g_strfreev(). */
char **check_hooks_command(const CheckHooks *hooks, const char *name, const char *word);
