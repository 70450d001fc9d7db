#include "engine/execs.h"

#include "base/error.h"

#include <string.h>

/* What Linux lets a program be started with: one string with its NUL, and all of them together
 * where the stack's limit is the usual 8 MiB. Beyond it the runtime's own complaint would come as
 * output of the command. */
#define STRING_MOST (128u << 10)
#define STRINGS_MOST (2u << 20)

static bool fail_too_long(const char *what, gsize size, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "too-long",
                    "%s has %zu bytes, too many to start a program with (128 KiB each, 2 MiB "
                    "together): hand it over by standard input or a file",
                    what, size);
}

/* JSON carries text alone. */
static bool add_strings(json_t *array, const char *const *strings, const char *what,
                        gsize *total, GError **error)
{
    for (gsize i = 0; strings && strings[i]; i++) {
        gsize size = strlen(strings[i]) + 1;
        g_autofree char *which = g_strdup_printf("%s %zu", what, i);
        *total += size + sizeof(char *);
        if (size > STRING_MOST)
            return fail_too_long(which, size - 1, error);
        if (json_array_append_new(array, json_string(strings[i])) != 0)
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "not-utf8",
                            "%s is not UTF-8, which the engine cannot carry", which);
    }
    return *total <= STRINGS_MOST ||
           fail_too_long("the command with its environment", *total, error);
}

static bool create_body(const DkrExecSpec *spec, char **ret_body, GError **error)
{
    json_auto_t *argv = json_array();
    json_auto_t *env = json_array();
    gsize total = 0;
    if (!add_strings(argv, spec->argv, "argument", &total, error) ||
        !add_strings(env, spec->env, "environment entry", &total, error))
        return false;
    json_auto_t *body = json_pack("{s:O, s:O, s:b, s:b, s:b, s:b, s:s*, s:s*}", "Cmd", argv, "Env",
                                  env, "AttachStdin", spec->with_stdin, "AttachStdout", 1,
                                  "AttachStderr", 1, "Tty", 0, "WorkingDir", spec->cwd, "User",
                                  spec->user);
    if (!body)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "not-utf8",
                        "the working directory or the user is not UTF-8");
    *ret_body = json_dumps(body, JSON_COMPACT);
    return true;
}

/* The body may hold a secret of this command. */
static void wipe_free(char *text)
{
    explicit_bzero(text, strlen(text));
    free(text);
}

bool dkr_exec_create(DkrClient *client, const char *container, const DkrExecSpec *spec,
                     const SprWait *wait, char **ret_id, GError **error)
{
    char *body = NULL;
    g_autofree char *path = g_strdup_printf("/containers/%s/exec", container);
    json_auto_t *answer = NULL;
    if (!create_body(spec, &body, error))
        return false;
    DkrRequest request = {.method = "POST", .path = path, .body = body};
    bool ok = dkr_client_json(client, &request, wait, &answer, error);
    wipe_free(body);
    if (!ok)
        return false;
    const char *id = json_string_value(json_object_get(answer, "Id"));
    if (!id || !*id)
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine made an exec without an id");
    *ret_id = g_strdup(id);
    return true;
}

bool dkr_exec_start(DkrClient *client, const char *id, const SprWait *wait,
                    DkrHijack **ret_hijack, GError **error)
{
    g_autofree char *path = g_strdup_printf("/exec/%s/start", id);
    return dkr_hijack_open(client, path, "{\"Detach\":false,\"Tty\":false}", wait, ret_hijack,
                           error);
}

bool dkr_exec_inspect(DkrClient *client, const char *id, const SprWait *wait, DkrExecState *ret,
                      GError **error)
{
    g_autofree char *path = g_strdup_printf("/exec/%s/json", id);
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    json_t *code = json_object_get(answer, "ExitCode");
    if (!json_is_boolean(json_object_get(answer, "Running")))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's record of an exec is none");
    ret->running = json_is_true(json_object_get(answer, "Running"));
    ret->has_exit_code = json_is_integer(code);
    ret->exit_code = (int)json_integer_value(code);
    ret->pid = json_integer_value(json_object_get(answer, "Pid"));
    return true;
}
