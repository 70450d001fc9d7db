#include "engine/execs.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/failure.h"
#include "engine/jsonstream.h"

#include <string.h>

#define OUTCOME_STEP_US (50 * 1000)
#define TOLD_LIMIT_MS 2000

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
static bool add_strings(json_t *array, const char *const *strings, const char *what, gsize *total,
                        GError **error)
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
    json_auto_t *body =
        json_pack("{s:O, s:O, s:b, s:b, s:b, s:b, s:s*, s:s*}", "Cmd", argv, "Env", env,
                  "AttachStdin", spec->with_stdin, "AttachStdout", 1, "AttachStderr", 1, "Tty", 0,
                  "WorkingDir", spec->cwd, "User", spec->user);
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
    DkrRequest request = {.method = "POST", .path = path, .body = body, .urgent = spec->urgent};
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

bool dkr_exec_start(DkrClient *client, const char *id, const DkrExecSpec *spec, const SprWait *wait,
                    DkrHijack **ret_hijack, GError **error)
{
    g_autofree char *path = g_strdup_printf("/exec/%s/start", id);
    const DkrHijackRequest request = {.path = path,
                                      .protocol = "tcp",
                                      .body = "{\"Detach\":false,\"Tty\":false}",
                                      .urgent = spec->urgent};
    return dkr_hijack_open(client, &request, wait, ret_hijack, error);
}

static bool inspect(DkrClient *client, const char *id, const SprWait *wait, json_t **ret_object,
                    GError **error)
{
    g_autofree char *path = g_strdup_printf("/exec/%s/json", id);
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    if (!json_is_boolean(json_object_get(answer, "Running")))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's record of an exec is none");
    *ret_object = g_steal_pointer(&answer);
    return true;
}

bool dkr_exec_program(DkrClient *client, const char *id, const SprWait *wait, char **ret_program,
                      GError **error)
{
    json_auto_t *answer = NULL;
    g_autoptr(GError) why = NULL;
    *ret_program = NULL;
    if (!inspect(client, id, wait, &answer, &why)) {
        if (dkr_failure_status(why) == 404)
            return true;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    const json_t *process = json_object_get(answer, "ProcessConfig");
    const char *program = json_string_value(json_object_get(process, "entrypoint"));
    if (json_is_true(json_object_get(answer, "Running")))
        *ret_program = g_strdup(program ? program : "");
    return true;
}

bool dkr_exec_inspect(DkrClient *client, const char *id, const SprWait *wait, DkrExecState *ret,
                      GError **error)
{
    json_auto_t *answer = NULL;
    if (!inspect(client, id, wait, &answer, error))
        return false;
    json_t *code = json_object_get(answer, "ExitCode");
    ret->running = json_is_true(json_object_get(answer, "Running"));
    ret->has_exit_code = json_is_integer(code);
    ret->exit_code = (int)json_integer_value(code);
    ret->pid = json_integer_value(json_object_get(answer, "Pid"));
    return true;
}

bool dkr_exec_outcome(DkrClient *client, const char *id, gint64 limit_ms, const SprWait *wait,
                      DkrExecState *ret, GError **error)
{
    gint64 until_us = spr_deadline_after(limit_ms);
    for (;;) {
        int ready;
        if (!dkr_exec_inspect(client, id, wait, ret, error))
            return false;
        if (ret->running)
            return dkr_failure_broken(error,
                                      "the engine closed the command's streams while it ran");
        if (ret->has_exit_code)
            return true;
        if (g_get_monotonic_time() >= until_us)
            return spr_fail(error, SPR_E_IO, "no-exit-code",
                            "the engine closed the command's streams without an exit code");
        if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + OUTCOME_STEP_US, &ready, error))
            return false;
    }
}

typedef struct {
    const char *id;
    int code; /* -1: not told */
} Told;

static bool take_event(void *ctx, json_t *event, GError **error)
{
    Told *told = ctx;
    json_t *attributes = json_object_get(json_object_get(event, "Actor"), "Attributes");
    const char *code = json_string_value(json_object_get(attributes, "exitCode"));
    const char *id = json_string_value(json_object_get(attributes, "execID"));
    if (code && id && strcmp(id, told->id) == 0)
        told->code = (int)g_ascii_strtoll(code, NULL, 10);
    return true;
}

int dkr_exec_told(DkrClient *client, const char *container, const char *id, const SprWait *wait)
{
    g_autofree char *filters =
        g_strdup_printf("{\"container\":[\"%s\"],\"event\":[\"exec_die\"]}", container);
    g_autofree char *escaped = spr_url_escape(filters);
    g_autofree char *path = g_strdup_printf("/events?since=0&until=%" G_GINT64_FORMAT "&filters=%s",
                                            g_get_real_time() / G_USEC_PER_SEC + 1, escaped);
    DkrRequest request = {.method = "GET", .path = path};
    Told told = {id, -1};
    g_autoptr(DkrReply) reply = NULL;
    g_autoptr(DkrJsonStream) stream = dkr_json_stream_new(take_event, &told);
    SprWait limited = spr_wait_within(wait, TOLD_LIMIT_MS);
    const void *data;
    gsize size = 1;
    if (!dkr_client_open(client, &request, &limited, &reply, NULL))
        return -1;
    while (size > 0 && told.code < 0) {
        if (!dkr_reply_read(reply, &limited, &data, &size, NULL) ||
            !dkr_json_stream_push(stream, data, size, NULL))
            break;
    }
    return told.code;
}
