#include "mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sprov_status mock_env_add(json_t *env, const char *const *entries, sprov_error *error)
{
    for (size_t i = 0; entries && entries[i]; i++) {
        const char *equals = strchr(entries[i], '=');
        if (entries[i][0] == '\0' || equals == entries[i])
            return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "env-name", 0,
                             "env[%zu] has no name before '='", i);
    }
    for (size_t i = 0; entries && entries[i]; i++) {
        const char *equals = strchr(entries[i], '=');
        size_t name_size = equals ? (size_t)(equals - entries[i]) : strlen(entries[i]);
        char *name = strndup(entries[i], name_size);
        /* Values may be any bytes, so no check that they are UTF-8. */
        json_object_set_new_nocheck(env, name,
                                    equals ? json_string_nocheck(equals + 1) : json_null());
        free(name);
    }
    return SPROV_OK;
}

static void overlay(json_t *env, const json_t *own)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)own, name, value)
    {
        if (json_is_null(value))
            json_object_del(env, name);
        else
            json_object_set_nocheck(env, name, value);
    }
}

char **mock_env_build(sprov_sandbox *sandbox, const json_t *own)
{
    json_t *env = json_object();
    char *home = mock_work(sandbox);
    json_object_set_new(
        env, "PATH", json_string("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    json_object_set_new_nocheck(env, "HOME", json_string_nocheck(home));
    overlay(env, sandbox->options.env);
    pthread_mutex_lock(&sandbox->mutex);
    overlay(env, sandbox->overlay);
    pthread_mutex_unlock(&sandbox->mutex);
    overlay(env, own);

    char **list = calloc(json_object_size(env) + 1, sizeof *list);
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(env, name, value)
    {
        if (asprintf(&list[count], "%s=%s", name, json_string_value(value)) >= 0)
            count++;
    }
    list[count] = NULL;
    free(home);
    json_decref(env);
    return list;
}

void mock_env_free(char **env)
{
    for (char **entry = env; entry && *entry; entry++) {
        explicit_bzero(*entry, strlen(*entry));
        free(*entry);
    }
    free(env);
}
