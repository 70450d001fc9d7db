/* exec() of the core vtable. */
#include "glue/command.h"

#include "supervised/run.h"

typedef struct {
    GlueCommand command;
    DkrCommandResult result;
} Exec;

static bool attempt(void *ctx, DkrLife *life, GError **error)
{
    Exec *exec = ctx;
    const sprov_exec_request *r = &exec->command.request;
    const DkrCommonOptions *options = dkr_sandbox_common(exec->command.gc->sandbox->sandbox);
    const char *shell[] = {"/bin/sh", "-c", r->command, NULL};
    g_autofree char *cwd = dkr_life_absolute(life, r->cwd);
    DkrCommand command = {
        .argv = r->argv ? r->argv : shell,
        .env = (const char *const *)exec->command.env,
        .cwd = cwd,
        .user = r->user,
        .source = glue_source(&exec->command.source),
        .out = glue_sink(&exec->command.out),
        .err = glue_sink(&exec->command.err),
        .run_timeout_ms = r->run_timeout_ms ? r->run_timeout_ms : options->timeout_ms,
        .grace_ms = r->grace_ms,
        .wait_background = r->flags & SPROV_EXEC_WAIT_BACKGROUND,
    };
    DkrVenue venue = dkr_life_venue(life, exec->command.gc->sandbox->context);
    return dkr_run(&venue, &command, &exec->command.gc->wait, &exec->result, error);
}

static bool may_repeat(void *ctx)
{
    const Exec *exec = ctx;
    return !exec->result.began && !exec->command.source.touched;
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
    GlueCall *gc = exec->command.gc;
    DkrStartHooks hooks = glue_start_hooks(gc);
    DkrWork work = {attempt, may_repeat, exec};
    bool ok = glue_command_make_env(&exec->command, &gc->failure) &&
              dkr_sandbox_work(gc->sandbox->sandbox, gc->ready_flags, &hooks, &gc->wait, &work,
                               &gc->failure);
    write_result(&exec->result, result);
    glue_command_end(&exec->command);
    return ok;
}

sprov_status glue_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                       const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    GlueCall gc;
    Exec exec = {0};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              glue_command_take(&exec.command, &gc, request, &gc.failure) && run(&exec, result);
    return glue_end(&gc, ok);
}
