#include "mock.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* A JSON object whose keys are all known. text NULL is "{}". */
static sprov_status parse_object(const char *text, const char *what, const char *const *known,
                                 json_t **ret_object, sprov_error *error)
{
    json_error_t where;
    json_t *object = json_loads(text ? text : "{}", JSON_REJECT_DUPLICATES, &where);
    if (!object)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "json", 0, "%s: %s at line %d column %d",
                         what, where.text, where.line, where.column);
    if (!json_is_object(object)) {
        json_decref(object);
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "json", 0, "%s is not a JSON object",
                         what);
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (known[i])
            continue;
        mock_fail(error, SPROV_E_INVALID_ARGUMENT, "unknown-key", 0, "%s: unknown key \"%s\"", what,
                  key);
        json_decref(object);
        return SPROV_E_INVALID_ARGUMENT;
    }
    *ret_object = object;
    return SPROV_OK;
}

static sprov_status wrong(sprov_error *error, const char *key, const char *wanted)
{
    return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "wrong-value", 0, "%s must be %s", key,
                     wanted);
}

/* A string of at least least bytes, or NULL when the key is missing. */
static sprov_status take_string(const json_t *object, const char *key, size_t least, char **ret,
                                sprov_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return SPROV_OK;
    const char *text = json_string_value(value);
    if (!text || strlen(text) < least)
        return wrong(error, key, least ? "a string that is not empty" : "a string");
    *ret = strdup(text);
    return SPROV_OK;
}

static sprov_status take_strings(json_t *object, const char *key, bool are_env, json_t **ret,
                                 sprov_error *error)
{
    json_t *value = json_object_get(object, key);
    if (value && !json_is_object(value))
        return wrong(error, key, "an object of strings");
    const char *name;
    json_t *text;
    json_object_foreach(value, name, text)
    {
        char path[256];
        snprintf(path, sizeof path, "%s.%s", key, name);
        if (!json_is_string(text))
            return wrong(error, path, "a string");
        if (name[0] == '\0' || (are_env && strchr(name, '=')))
            return wrong(error, path, "named without '=' and not empty");
    }
    *ret = value ? json_incref(value) : json_object();
    return SPROV_OK;
}

static sprov_status take_scalars(const json_t *object, MockOptions *options, sprov_error *error)
{
    const json_t *value = json_object_get(object, "timeout");
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
        return wrong(error, "timeout", "a number of milliseconds, 0 for none");
    options->timeout_ms = value ? json_integer_value(value) : 300000;
    value = json_object_get(object, "autoStart");
    if (value && !json_is_boolean(value))
        return wrong(error, "autoStart", "true or false");
    options->auto_start = value ? json_is_true(value) : true;
    return SPROV_OK;
}

sprov_status mock_check_user(const char *user, sprov_error *error)
{
    if (!user)
        return SPROV_OK;
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    if (strcmp(user, number) == 0)
        return SPROV_OK;
    char buffer[4096];
    struct passwd entry;
    struct passwd *found = NULL;
    getpwnam_r(user, &entry, buffer, sizeof buffer, &found);
    if (!found)
        return mock_fail(error, SPROV_E_NOT_FOUND, "user-not-found", 0,
                         "there is no user \"%s\" in the sandbox", user);
    if (found->pw_uid != geteuid())
        return mock_fail(error, SPROV_E_UNSUPPORTED, "user", 0,
                         "the mock runs commands as user %s alone, not as \"%s\"", number, user);
    return SPROV_OK;
}

static sprov_status check_values(MockOptions *options, sprov_error *error)
{
    if (!options->id) {
        unsigned char noise[12];
        if (getrandom(noise, sizeof noise, 0) != sizeof noise)
            return mock_fail(error, SPROV_E_INTERNAL, "random", errno, "no random bytes for an id");
        char id[5 + 2 * sizeof noise + 1] = "mock-";
        for (size_t i = 0; i < sizeof noise; i++)
            snprintf(id + 5 + 2 * i, 3, "%02x", noise[i]);
        options->id = strdup(id);
    }
    if (strlen(options->id) > 255)
        return wrong(error, "id", "at most 255 bytes long");
    if (!options->name)
        options->name = strdup(options->id);
    if (options->work && options->work[0] != '/')
        return wrong(error, "workingDirectory", "an absolute path");
    if (options->image && strpbrk(options->image, " \t\n"))
        return wrong(error, "image", "a name without white space");
    return SPROV_OK;
}

sprov_status mock_parse_options(const char *text, MockOptions *ret_options, sprov_error *error)
{
    static const char *const known[] = {"id",           "name",      "env",  "workingDirectory",
                                        "timeout",      "labels",    "user", "image",
                                        "instructions", "autoStart", NULL};
    json_t *object = NULL;
    MockOptions options = {0};
    sprov_status status = parse_object(text, "options", known, &object, error);
    if (status == SPROV_OK)
        status = take_string(object, "id", 1, &options.id, error);
    if (status == SPROV_OK)
        status = take_string(object, "name", 1, &options.name, error);
    if (status == SPROV_OK)
        status = take_string(object, "workingDirectory", 1, &options.work, error);
    if (status == SPROV_OK)
        status = take_string(object, "instructions", 0, &options.instructions, error);
    if (status == SPROV_OK)
        status = take_string(object, "user", 1, &options.user, error);
    if (status == SPROV_OK)
        status = take_string(object, "image", 1, &options.image, error);
    if (status == SPROV_OK)
        status = take_strings(object, "env", true, &options.env, error);
    if (status == SPROV_OK)
        status = take_strings(object, "labels", false, &options.labels, error);
    if (status == SPROV_OK)
        status = take_scalars(object, &options, error);
    if (status == SPROV_OK)
        status = check_values(&options, error);
    json_decref(object);
    if (status == SPROV_OK)
        *ret_options = options;
    else
        mock_options_clear(&options);
    return status;
}

void mock_options_clear(MockOptions *options)
{
    free(options->id);
    free(options->name);
    free(options->work);
    free(options->instructions);
    free(options->user);
    free(options->image);
    json_decref(options->labels);
    json_decref(options->env);
    *options = (MockOptions){0};
}

sprov_status mock_parse_config(const char *config, char **ret_engine, bool *ret_given,
                               sprov_error *error)
{
    static const char *const known[] = {"host", NULL};
    static const char scheme[] = "unix://";
    json_t *object = NULL;
    sprov_status status = parse_object(config, "config", known, &object, error);
    if (status != SPROV_OK)
        return status;
    const json_t *value = json_object_get(object, "host");
    const char *host = json_string_value(value);
    if (value &&
        (!host || strncmp(host, scheme, strlen(scheme)) != 0 || host[strlen(scheme)] != '/')) {
        json_decref(object);
        return wrong(error, "host", "unix:// and the absolute path of the engine's folder");
    }
    char *engine = NULL;
    if (host) {
        engine = strdup(host + strlen(scheme));
    } else {
        const char *base = getenv("TMPDIR");
        if (asprintf(&engine, "%s/sprov-mock-%u", base && *base ? base : "/tmp",
                     (unsigned)geteuid()) < 0)
            engine = NULL;
    }
    json_decref(object);
    *ret_engine = engine;
    *ret_given = host != NULL;
    return SPROV_OK;
}
