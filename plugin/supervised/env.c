#include "supervised/env.h"

#include "base/error.h"

#include <string.h>

static gsize name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static void put(GPtrArray *list, const char *entry)
{
    gsize length = name_length(entry);
    for (guint i = 0; i < list->len; i++) {
        char **have = (char **)&list->pdata[i];
        if (name_length(*have) == length && strncmp(*have, entry, length) == 0) {
            explicit_bzero(*have, strlen(*have));
            g_free(*have);
            *have = g_strdup(entry);
            return;
        }
    }
    g_ptr_array_add(list, g_strdup(entry));
}

char **dkr_env_merge(const char *const *base, const char *const *changes)
{
    GPtrArray *list = g_ptr_array_new();
    for (; base && *base; base++)
        put(list, *base);
    for (; changes && *changes; changes++)
        put(list, *changes);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

bool dkr_env_check(const char *const *env, GError **error)
{
    for (gsize i = 0; env && env[i]; i++) {
        if (name_length(env[i]) == 0)
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-env",
                            "environment entry %zu has no name: write NAME=value, or NAME to take "
                            "it away",
                            i);
    }
    return true;
}

void dkr_env_free(char **env)
{
    for (char **e = env; e && *e; e++)
        explicit_bzero(*e, strlen(*e));
    g_strfreev(env);
}
