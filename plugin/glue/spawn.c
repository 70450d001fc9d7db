/* spawn() of sprov.processes/1. */
#include "glue/process.h"

#define TRANSIT_BYTES (64 * 1024) /* kept of what is only to be handed on */

typedef struct {
    GlueCommand command;
    sprov_spawn_request request;
    DkrProcess *process;
} Spawn;

static bool check_spawn(const sprov_spawn_request *r, GError **error)
{
    if (r->stdin_mode != SPROV_STDIN_PIPE && r->stdin_mode != SPROV_STDIN_CLOSED)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-value",
                        "stdin_mode %d is not known", r->stdin_mode);
    if (r->overflow != SPROV_OVERFLOW_DROP && r->overflow != SPROV_OVERFLOW_HOLD)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-value", "overflow %d is not known",
                        r->overflow);
    if ((r->tty_rows == 0) != (r->tty_columns == 0))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-size",
                        "a terminal of %u rows and %u columns: give both, or neither for none",
                        r->tty_rows, r->tty_columns);
    return !r->exec->stdin_source ||
           spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-source",
                    "stdin_source is for exec: feed a process with write_stdin");
}

static bool take_spawn(Spawn *spawn, GlueCall *gc, const sprov_spawn_request *from)
{
    return glue_take_request(&spawn->request, sizeof spawn->request, from, "request",
                             &gc->failure) &&
           glue_check_pointer(spawn->request.exec, "request->exec", &gc->failure) &&
           glue_command_take(&spawn->command, gc, spawn->request.exec, &gc->failure) &&
           check_spawn(&spawn->request, &gc->failure);
}

/* Bytes can't be handed on without being kept for a moment. */
static guint64 retained(const Spawn *spawn)
{
    const sprov_spawn_request *r = &spawn->request;
    bool passes = r->overflow == SPROV_OVERFLOW_HOLD || spawn->command.out.is_set ||
                  spawn->command.err.is_set;
    return r->retain_bytes == SPROV_RETAIN_NONE && passes ? TRANSIT_BYTES : r->retain_bytes;
}

static bool attempt(void *ctx, DkrLife *life, GError **error)
{
    Spawn *spawn = ctx;
    GlueCall *gc = spawn->command.gc;
    const sprov_exec_request *r = &spawn->command.request;
    g_autofree char *cwd = dkr_life_absolute(life, r->cwd);
    SprCommand command = {
        .command = r->command,
        .argv = r->argv,
        .secret_env = (const char *const *)spawn->command.env, /* any of it may be a secret */
        .cwd = cwd,
        .user = r->user,
        .deadline_ms = r->run_timeout_ms,
        .grace_ms = r->grace_ms,
        .rows = spawn->request.tty_rows,
        .columns = spawn->request.tty_columns,
        .wait_background = r->flags & SPROV_EXEC_WAIT_BACKGROUND,
    };
    SprSpawn asked = {.command = &command,
                      .retain_bytes = retained(spawn),
                      .feeds_stdin = spawn->request.stdin_mode == SPROV_STDIN_PIPE,
                      .holds = spawn->request.overflow == SPROV_OVERFLOW_HOLD};
    return dkr_process_spawn(gc->sandbox->context, life, &asked, &gc->wait, &spawn->process, error);
}

/* Asked only when the life is over, and what was started in it with it. */
static bool may_repeat(void *ctx)
{
    return true;
}

static bool spawn_process(Spawn *spawn, GlueCall *gc, sprov_process **ret_process)
{
    DkrStartHooks hooks = glue_start_hooks(gc);
    DkrWork work = {attempt, may_repeat, spawn};
    sprov_process *process = NULL;
    if (!glue_process_check_supervised(gc->sandbox, &gc->failure) ||
        !glue_command_make_env(&spawn->command, &gc->failure) ||
        !glue_process_new(gc->sandbox, &spawn->command, &process, &gc->failure))
        return false;
    if (!dkr_sandbox_work(gc->sandbox->sandbox, gc->ready_flags, &hooks, &gc->wait, &work,
                          &gc->failure)) {
        glue_process_unref(process);
        return false;
    }
    glue_process_set(process, spawn->process);
    *ret_process = process;
    glue_process_begin(process);
    return true;
}

sprov_status glue_spawn(sprov_sandbox *sandbox, const sprov_spawn_request *request,
                        const sprov_call *call, sprov_process **process, sprov_error *error)
{
    GlueCall gc;
    Spawn spawn = {0};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_pointer(process, "process", &gc.failure) &&
              take_spawn(&spawn, &gc, request);
    if (ok) {
        ok = spawn_process(&spawn, &gc, process);
        glue_command_end(&spawn.command);
    }
    return glue_end(&gc, ok);
}
