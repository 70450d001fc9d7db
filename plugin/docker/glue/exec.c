/* exec() of the core vtable. */
#include "glue/glue.h"

#include "sandbox/env.h"

#include <string.h>

typedef struct {
    GlueCall *gc;
    sprov_exec_request request;
    GlueSource source;
    GlueSink out;
    GlueSink err;
    char **env;
    DkrCommandResult result;
} Exec;

static bool check_command(const sprov_exec_request *r, GError **error)
{
    if (!r->argv && (!r->command || !*r->command))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-command",
                        "the request has neither a command nor an argv");
    if (r->argv && (!r->argv[0] || !*r->argv[0]))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-command", "argv has no program in it");
    if (r->cwd && !*r->cwd)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-cwd",
                        "cwd is empty: name a directory, or pass NULL for the sandbox's own");
    if (r->grace_ms < 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-grace", "grace_ms is below 0");
    return dkr_env_check(r->env, error);
}

static bool check_flags(const sprov_exec_request *r, GError **error)
{
    if (r->flags & ~(guint32)SPROV_EXEC_WAIT_BACKGROUND)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                        "request->flags 0x%x has bits that are not known", r->flags);
    return true;
}

static bool take_request(Exec *exec, const sprov_exec_request *from, GError **error)
{
    sprov_exec_request *r = &exec->request;
    const sprov_provider *provider = exec->gc->provider;
    return glue_take_request(r, sizeof *r, from, "request", error) && check_flags(r, error) &&
           check_command(r, error) &&
           glue_take_source(&exec->source, provider, r->stdin_source, "stdin_source", error) &&
           glue_take_sink(&exec->out, provider, r->stdout_sink, "stdout_sink", error) &&
           glue_take_sink(&exec->err, provider, r->stderr_sink, "stderr_sink", error);
}

/* ------------------------------------------------------------------------- secrets */

typedef struct {
    const char *name;
    char *entry; /* "NAME=value" */
} Secret;

static void secret_clear(Secret *secret)
{
    if (secret->entry)
        explicit_bzero(secret->entry, strlen(secret->entry));
    g_clear_pointer(&secret->entry, g_free);
}

static void take_secret(void *ctx, const char *text, size_t size)
{
    Secret *secret = ctx;
    gsize prefix = strlen(secret->name) + 1;
    char *entry = g_try_malloc(prefix + size + 1);
    secret_clear(secret);
    secret->entry = entry;
    if (!entry)
        return;
    memcpy(entry, secret->name, prefix - 1);
    entry[prefix - 1] = '=';
    memcpy(entry + prefix, text, size);
    entry[prefix + size] = '\0';
}

static bool add_secret(Exec *exec, const char *name, GError **error)
{
    const sprov_sandbox *sandbox = exec->gc->sandbox;
    Secret secret = {.name = name};
    int32_t rc = 1;
    if (sandbox->callbacks.secret) {
        const sprov_provider *before = glue_enter_callback(sandbox->provider);
        rc = sandbox->callbacks.secret(sandbox->callbacks.ctx, name, take_secret, &secret);
        glue_leave_callback(before);
    }
    if (rc != 0 || !secret.entry) {
        secret_clear(&secret);
        return spr_fail(error, SPR_E_NOT_FOUND, "no-secret",
                        "the host has no value for the secret \"%s\"", name);
    }
    const char *changes[] = {secret.entry, NULL};
    char **merged = dkr_env_merge((const char *const *)exec->env, changes);
    dkr_env_free(exec->env);
    exec->env = merged;
    secret_clear(&secret);
    return true;
}

static bool make_env(Exec *exec, GError **error)
{
    const char *const *names = exec->request.secret_env;
    exec->env = dkr_sandbox_command_env(exec->gc->sandbox->sandbox, exec->request.env);
    for (gsize i = 0; names && names[i]; i++) {
        if (!*names[i] || strchr(names[i], '='))
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-env",
                            "secret_env entry %zu is no variable's name", i);
        if (!add_secret(exec, names[i], error))
            return false;
    }
    return true;
}

/* --------------------------------------------------------------------------- running */

static bool attempt(void *ctx, DkrLife *life, GError **error)
{
    Exec *exec = ctx;
    const sprov_exec_request *r = &exec->request;
    const DkrSandboxOptions *options = dkr_sandbox_options(exec->gc->sandbox->sandbox);
    const char *shell[] = {"/bin/sh", "-c", r->command, NULL};
    g_autofree char *cwd = r->cwd ? dkr_life_absolute(life, r->cwd) : NULL;
    DkrCommand command = {
        .argv = r->argv ? r->argv : shell,
        .env = (const char *const *)exec->env,
        .cwd = cwd,
        .user = r->user,
        .source = glue_source(&exec->source),
        .out = glue_sink(&exec->out),
        .err = glue_sink(&exec->err),
        .run_timeout_ms = r->run_timeout_ms ? r->run_timeout_ms : options->timeout.value,
        .grace_ms = r->grace_ms,
        .wait_background = r->flags & SPROV_EXEC_WAIT_BACKGROUND,
    };
    DkrVenue venue = dkr_life_venue(life, &exec->gc->provider->context);
    return dkr_run(&venue, &command, &exec->gc->wait, &exec->result, error);
}

static bool may_repeat(void *ctx)
{
    const Exec *exec = ctx;
    return !exec->result.began && !exec->source.touched;
}

static void write_result(const DkrCommandResult *from, sprov_exec_result *to)
{
    if (!to || !from->began)
        return;
    to->flags = from->flags;
    to->exit_code = from->exit_code;
    to->term_signal = from->term_signal;
    to->duration_ms = from->duration_ms;
    to->out_bytes = from->out_bytes;
    to->err_bytes = from->err_bytes;
}

static bool run(Exec *exec, sprov_exec_result *result)
{
    GlueCall *gc = exec->gc;
    DkrStartHooks hooks = glue_start_hooks(gc);
    DkrWork work = {attempt, may_repeat, exec};
    bool ok = make_env(exec, &gc->failure) &&
              dkr_sandbox_work(gc->sandbox->sandbox, gc->ready_flags, &hooks, &gc->wait, &work,
                               &gc->failure);
    write_result(&exec->result, result);
    dkr_env_free(exec->env);
    glue_source_done(&exec->source);
    glue_sink_done(&exec->out);
    glue_sink_done(&exec->err);
    return ok;
}

sprov_status glue_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                       const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    GlueCall gc;
    Exec exec = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              take_request(&exec, request, &gc.failure) && run(&exec, result);
    return glue_end(&gc, ok);
}
