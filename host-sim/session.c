#include "session.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "streams.h"
#include "values.h"

bool hs_session_open(HsSession *session, const HsCommand *command, const HsCli *cli, GError **error)
{
    *session = (HsSession){.command = command, .cli = cli};
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_services_init(&session->services, cli->log_level, cli->log_json,
                          (const char *const *)cli->secrets, (const char *const *)cli->logins,
                          error))
        return false;
    if (!hs_provider_load(cli->provider, &session->lib, error))
        return false;
    sprov_status status =
        session->lib->api->open(&session->services.host, cli->config, &session->provider, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static int exit_code_of(const HsSession *session, const GError *error)
{
    if (error->code == HS_USAGE)
        return session->command->usage_exit;
    return error->code == HS_READER_GONE ? HS_EXIT_READER_GONE : HS_EXIT_FAILED;
}

int hs_session_end(HsSession *session, int exit_code, GError *error)
{
    sprov_error failure = SPROV_INIT(sprov_error);
    int signal_number = hs_signal_caught();
    if (session->provider && session->lib->api->close(session->provider, &failure) != SPROV_OK)
        hs_log(&session->services, SPROV_LOG_WARNING, "closing the provider: %s", failure.message);
    if (error) {
        bool expected =
            error->code == HS_READER_GONE || (signal_number && error->code == SPROV_E_CANCELLED);
        if (!expected)
            hs_report(&session->services, error);
        exit_code = exit_code_of(session, error);
        g_error_free(error);
    }
    hs_provider_free(session->lib);
    hs_services_clear(&session->services);
    return signal_number ? 128 + signal_number : exit_code;
}

bool hs_session_create(HsSession *session, const char *id, sprov_sandbox **ret_sandbox,
                       GError **error)
{
    g_autofree char *options = NULL;
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_options_with_id(session->cli->options, id, &options, error))
        return false;
    json_t *object = options ? json_loads(options, 0, NULL) : NULL;
    hs_services_offer_repository(&session->services, json_object_get(object, "template"));
    json_decref(object);
    sprov_status status = session->lib->api->create(
        session->provider, options, &session->services.callbacks, ret_sandbox, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

int hs_session_work(const HsCommand *command, const HsCli *cli, const char *id, HsWork work,
                    void *data)
{
    HsSession session;
    GError *error = NULL;
    sprov_sandbox *sandbox = NULL;
    int exit_code = 0;
    if (hs_session_open(&session, command, cli, &error) &&
        hs_session_create(&session, id, &sandbox, &error)) {
        work(&session, sandbox, data, &exit_code, &error);
        session.lib->api->release(sandbox);
    }
    return hs_session_end(&session, exit_code, error);
}

static void on_progress(void *ctx, const char *text, size_t size)
{
    const HsServices *services = ctx;
    hs_log(services, SPROV_LOG_DEBUG, "%.*s", (int)MIN(size, 4096), text);
}

sprov_call hs_session_call(HsSession *session, guint32 flags)
{
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = flags;
    call.cancel = &session->services.cancel;
    call.on_progress = on_progress;
    call.progress_ctx = &session->services;
    return call;
}

bool hs_session_start(HsSession *session, sprov_sandbox *sandbox, sprov_start_result *ret_started,
                      GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = session->lib->api->start(sandbox, &call, ret_started, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

bool hs_session_destroy(HsSession *session, sprov_sandbox *sandbox, const char *id, GError **error)
{
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = session->lib->api->destroy(sandbox, NULL, &failure);
    if (status == SPROV_OK)
        return true;
    hs_fail_call(error, status, &failure);
    g_prefix_error(error, "sandbox %s is still there (host-sim rm --id %s tries again): ", id, id);
    return false;
}

bool hs_session_need_lifecycle(const HsSession *session, GError **error)
{
    if (session->lib->lifecycle)
        return true;
    return hs_fail(error, SPROV_E_UNSUPPORTED,
                   "provider %s has no " SPROV_EXT_LIFECYCLE ", which %s needs",
                   session->lib->entry->descriptor->id, session->command->name);
}

static void on_info(void *ctx, const char *text, size_t size)
{
    bool *is_there = ctx;
    json_t *info = json_loadb(text, size, 0, NULL);
    const char *status = json_string_value(json_object_get(info, "status"));
    *is_there = g_strcmp0(status, "pending") != 0;
    json_decref(info);
}

bool hs_session_check_there(HsSession *session, sprov_sandbox *sandbox, const char *id,
                            GError **error)
{
    bool is_there = true;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!session->lib->lifecycle)
        return true;
    sprov_status status =
        session->lib->lifecycle->info(sandbox, &call, on_info, &is_there, &failure);
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    return is_there || hs_fail(error, SPROV_E_NOT_FOUND,
                               "no sandbox %s; host-sim ls lists those there are", id);
}

bool hs_session_need_processes(const HsSession *session, GError **error)
{
    if (session->lib->processes)
        return true;
    return hs_fail(error, SPROV_E_UNSUPPORTED,
                   "provider %s has no " SPROV_EXT_PROCESSES ", which %s needs",
                   session->lib->entry->descriptor->id, session->command->name);
}

/* ----------------------------------------------------------------------- exec */

/* Which of our own ends made the provider give up, if one did. */
static bool fail_exec(const HsSink *out, const HsSink *err, const HsSource *in, sprov_status status,
                      const sprov_error *failure, GError **error)
{
    if (status == SPROV_E_REFUSED && out->failure)
        return hs_fail_write(error, "standard output", out->failure);
    if (status == SPROV_E_REFUSED && err->failure)
        return hs_fail_write(error, "standard error", err->failure);
    if (status == SPROV_E_REFUSED && in->failure)
        return hs_fail(error, SPROV_E_IO, "cannot read standard input: %s",
                       g_strerror(in->failure));
    return hs_fail_call(error, status, failure);
}

int hs_session_exit_code(const HsSession *session, const sprov_exec_result *result)
{
    if (result->flags & SPROV_EXEC_UNCONFIRMED)
        hs_log(&session->services, SPROV_LOG_WARNING,
               "some of what the command started may still run in the sandbox");
    if (result->flags & SPROV_EXEC_TIMED_OUT)
        hs_log(&session->services, SPROV_LOG_INFO, "the command was ended after its timeout");
    return result->flags & SPROV_EXEC_TIMED_OUT ? HS_EXIT_TIMED_OUT : result->exit_code;
}

sprov_exec_request hs_session_request(const HsSession *session)
{
    const HsCli *cli = session->cli;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = cli->command;
    request.argv = (const char *const *)cli->argv;
    request.env = (const char *const *)cli->env;
    request.secret_env = hs_services_secret_names(&session->services);
    request.cwd = cli->cwd;
    request.user = cli->user;
    request.run_timeout_ms = cli->timeout_ms;
    return request;
}

bool hs_session_exec(HsSession *session, sprov_sandbox *sandbox, guint32 call_flags, int *ret_exit,
                     GError **error)
{
    int cancel_fd = session->services.cancel.fd;
    HsSink out, err;
    HsSource in;
    hs_sink_init(&out, STDOUT_FILENO, cancel_fd);
    hs_sink_init(&err, STDERR_FILENO, cancel_fd);
    hs_source_init(&in, STDIN_FILENO, false);

    sprov_exec_request request = hs_session_request(session);
    request.stdin_source = isatty(STDIN_FILENO) ? NULL : &in.source;
    request.stdout_sink = &out.sink;
    request.stderr_sink = &err.sink;

    sprov_call call = hs_session_call(session, call_flags);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = session->lib->api->exec(sandbox, &request, &call, &result, &failure);
    if (status != SPROV_OK)
        return fail_exec(&out, &err, &in, status, &failure, error);
    *ret_exit = hs_session_exit_code(session, &result);
    return true;
}
