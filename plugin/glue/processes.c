/* The extension sprov.processes/1. */
#include "glue/process.h"

#define CONTROL_LIMIT_MS (30 * 1000)

/* Like glue_begin_nowait(), on the handle of a process, which lives until end(). */
static bool begin(GlueCall *gc, sprov_process *process, const sprov_call *call, gint64 default_ms,
                  bool may_nowait, sprov_error *error)
{
    if (!process) {
        *gc = (GlueCall){.error = error};
        return glue_check_result(error, sizeof *error, "error", &gc->failure) &&
               glue_check_pointer(process, "process", &gc->failure);
    }
    if (!(may_nowait ? glue_begin_nowait : glue_begin_sandbox)(gc, process->sandbox, call,
                                                               default_ms, error))
        return false;
    glue_process_ref(process);
    return true;
}

/* began: begin() was true. */
static sprov_status end(GlueCall *gc, sprov_process *process, bool began, bool ok)
{
    if (began)
        glue_process_unref(process);
    return glue_end(gc, ok);
}

/* ------------------------------------------------------------------------- find, list */

typedef struct {
    GlueCall *gc;
    const char *id;
    DkrProcess *process;
    sprov_text_fn emit;
    void *emit_ctx;
} Visit;

static bool visit(Visit *v, bool (*attempt_in)(void *ctx, DkrLife *life, GError **error),
                  bool *ret_runs)
{
    GlueCall *gc = v->gc;
    DkrWork work = {attempt_in, NULL, v};
    return glue_process_check_supervised(gc->sandbox, &gc->failure) &&
           dkr_sandbox_visit(gc->sandbox->sandbox, &gc->wait, &work, ret_runs, &gc->failure);
}

static void emit_listed(void *ctx, const char *json)
{
    Visit *v = ctx;
    glue_emit(v->gc->provider, v->emit, v->emit_ctx, json);
}

static bool list_in(void *ctx, DkrLife *life, GError **error)
{
    Visit *v = ctx;
    return dkr_process_list(v->gc->sandbox->context, life, emit_listed, v, &v->gc->wait, error);
}

static sprov_status processes_list(sprov_sandbox *sandbox, const sprov_call *call,
                                   sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    Visit v = {.gc = &gc, .emit = emit, .emit_ctx = emit_ctx};
    bool runs;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &gc.failure) &&
              visit(&v, list_in, &runs);
    return glue_end(&gc, ok);
}

static bool find_in(void *ctx, DkrLife *life, GError **error)
{
    Visit *v = ctx;
    return dkr_process_find(v->gc->sandbox->context, life, v->id, &v->gc->wait, &v->process, error);
}

static bool find_process(Visit *v, sprov_process **ret_process)
{
    GlueCall *gc = v->gc;
    bool runs;
    if (!visit(v, find_in, &runs))
        return false;
    if (!runs)
        return spr_fail(&gc->failure, SPR_E_NOT_FOUND, "process-not-found",
                        "there is no process \"%s\": the sandbox \"%s\" does not run", v->id,
                        dkr_sandbox_common(gc->sandbox->sandbox)->id);
    glue_process_new(gc->sandbox, NULL, ret_process, NULL);
    glue_process_set(*ret_process, v->process);
    return true;
}

static sprov_status processes_find(sprov_sandbox *sandbox, const char *id, const sprov_call *call,
                                   sprov_process **process, sprov_error *error)
{
    GlueCall gc;
    Visit v = {.gc = &gc, .id = id};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer(id, "id", &gc.failure) &&
              glue_check_pointer(process, "process", &gc.failure) && find_process(&v, process);
    return glue_end(&gc, ok);
}

/* --------------------------------------------------------------------------- the handle */

static void processes_release(sprov_process *process)
{
    if (process)
        glue_process_release(process);
}

static const char *processes_id(sprov_process *process)
{
    return process ? dkr_process_name(process->process) : NULL;
}

static int32_t processes_fd(sprov_process *process, sprov_stream stream)
{
    if (!process || stream < SPROV_STREAM_END || stream > SPROV_STREAM_ERR ||
        (stream == SPROV_STREAM_ERR && dkr_process_is_on_terminal(process->process)))
        return -1;
    return dkr_cursors_fd(process->cursors, (SprWatchKind)stream);
}

static void processes_resume(sprov_process *process, sprov_stream stream)
{
    if (process && process->push && (stream == SPROV_STREAM_OUT || stream == SPROV_STREAM_ERR))
        dkr_push_resume(process->push, (SprStream)stream);
}

/* ------------------------------------------------------------------------------- its end */

static void write_exit(const SprExit *from, sprov_exec_result *to)
{
    if (!to)
        return;
    to->flags = from->flags;
    to->exit_code = from->exit_code;
    to->term_signal = from->term_signal;
    to->duration_ms = from->duration_us / 1000;
    to->out_bytes = from->out_bytes;
    to->err_bytes = from->err_bytes;
}

static bool wait_for_end(GlueCall *gc, sprov_process *process, SprExit *ret_exit)
{
    if (!dkr_process_wait(process->process, &gc->wait, gc->nowait, ret_exit, &gc->failure))
        return false;
    return !process->push ||
           dkr_push_wait_settled(process->push, gc->nowait ? NULL : &gc->wait, &gc->failure);
}

static sprov_status processes_wait(sprov_process *process, const sprov_call *call,
                                   sprov_exec_result *result, sprov_error *error)
{
    GlueCall gc;
    SprExit exit;
    bool began = begin(&gc, process, call, -1, true, error);
    bool ok = began && glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              wait_for_end(&gc, process, &exit);
    if (ok)
        write_exit(&exit, result);
    return end(&gc, process, began, ok);
}

static bool take_kill(sprov_kill_request *r, const sprov_kill_request *from, GError **error)
{
    if (!glue_take_request(r, sizeof *r, from, "request", error))
        return false;
    if (r->signal < 1 || r->signal > 64)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-signal",
                        "%d is no signal: they are 1 to 64", r->signal);
    if (r->scope < SPROV_KILL_TREE || r->scope > SPROV_KILL_LEADER || r->reserved != 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-value",
                        "scope %d is not known, or a reserved member is not zero", r->scope);
    return true;
}

static bool kill_process(GlueCall *gc, sprov_process *process, const sprov_kill_request *r,
                         const sprov_call *call)
{
    if (r->grace_ms > 0 && (!call || call->timeout_ms == 0))
        gc->wait.deadline_us =
            spr_deadline_after(r->grace_ms < SPR_NEVER / 4 ? r->grace_ms + CONTROL_LIMIT_MS : -1);
    return dkr_process_kill(process->process, r->signal, (SprScope)r->scope, r->grace_ms, &gc->wait,
                            &gc->failure);
}

static sprov_status processes_kill(sprov_process *process, const sprov_kill_request *request,
                                   const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    sprov_kill_request r;
    bool began = begin(&gc, process, call, CONTROL_LIMIT_MS, false, error);
    bool ok = began && take_kill(&r, request, &gc.failure) && kill_process(&gc, process, &r, call);
    return end(&gc, process, began, ok);
}

static sprov_status processes_forget(sprov_process *process, const sprov_call *call,
                                     sprov_error *error)
{
    GlueCall gc;
    bool began = begin(&gc, process, call, CONTROL_LIMIT_MS, false, error);
    bool ok = began && dkr_process_forget(process->process, &gc.wait, &gc.failure);
    return end(&gc, process, began, ok);
}

/* ------------------------------------------------------------------------------ its input */

static bool write_input(GlueCall *gc, sprov_process *process, const void *data, size_t size,
                        size_t *written)
{
    gsize done = 0;
    if (!glue_check_pointer(written, "written", &gc->failure))
        return false;
    *written = 0;
    if (size == 0)
        return true;
    if (!glue_check_pointer(data, "data", &gc->failure) ||
        !spr_turn_take(&process->input, gc->nowait ? NULL : &gc->wait, &gc->failure))
        return false;
    bool ok =
        dkr_process_write(process->process, data, size, &done, &gc->wait, gc->nowait, &gc->failure);
    spr_turn_leave(&process->input);
    *written = done;
    return ok;
}

static sprov_status processes_write_stdin(sprov_process *process, const void *data, size_t size,
                                          size_t *written, const sprov_call *call,
                                          sprov_error *error)
{
    GlueCall gc;
    bool began = begin(&gc, process, call, CONTROL_LIMIT_MS, true, error);
    bool ok = began && write_input(&gc, process, data, size, written);
    return end(&gc, process, began, ok);
}

static bool close_input(GlueCall *gc, sprov_process *process)
{
    if (!spr_turn_take(&process->input, &gc->wait, &gc->failure))
        return false;
    bool ok = dkr_process_close_stdin(process->process, &gc->wait, &gc->failure);
    spr_turn_leave(&process->input);
    return ok;
}

static sprov_status processes_close_stdin(sprov_process *process, const sprov_call *call,
                                          sprov_error *error)
{
    GlueCall gc;
    bool began = begin(&gc, process, call, CONTROL_LIMIT_MS, false, error);
    return end(&gc, process, began, began && close_input(&gc, process));
}

static bool resize(GlueCall *gc, sprov_process *process, uint16_t rows, uint16_t columns)
{
    if (rows == 0 || columns == 0)
        return spr_fail(&gc->failure, SPR_E_INVALID_ARGUMENT, "bad-size",
                        "a terminal has at least one row and one column");
    return dkr_process_resize(process->process, rows, columns, &gc->wait, &gc->failure);
}

static sprov_status processes_resize(sprov_process *process, uint16_t rows, uint16_t columns,
                                     const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    bool began = begin(&gc, process, call, CONTROL_LIMIT_MS, false, error);
    return end(&gc, process, began, began && resize(&gc, process, rows, columns));
}

/* ----------------------------------------------------------------------------- its output */

static bool check_read(sprov_process *process, sprov_stream stream, const void *buffer,
                       size_t capacity, const size_t *count, GError **error)
{
    bool known = stream == SPROV_STREAM_OUT ||
                 (stream == SPROV_STREAM_ERR && !dkr_process_is_on_terminal(process->process));
    if (!known)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-such-stream",
                        "the process has no stream %d to read", stream);
    if (capacity == 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-room", "the buffer has no room");
    return glue_check_pointer(buffer, "buffer", error) && glue_check_pointer(count, "count", error);
}

static bool read_output(GlueCall *gc, sprov_process *process, SprStream stream, uint64_t *offset,
                        void *buffer, size_t capacity, size_t *count)
{
    guint64 at = offset ? *offset : 0;
    gsize n;
    bool ok = offset ? dkr_process_read(process->process, stream, &at, buffer, capacity, &n,
                                        &gc->wait, gc->nowait, &gc->failure)
                     : dkr_cursors_read(process->cursors, stream, buffer, capacity, &n, &gc->wait,
                                        gc->nowait, &gc->failure);
    if (!ok)
        return false;
    if (offset)
        *offset = at;
    *count = n;
    return true;
}

static sprov_status processes_read(sprov_process *process, sprov_stream stream, uint64_t *offset,
                                   void *buffer, size_t capacity, size_t *count,
                                   const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    bool began = begin(&gc, process, call, -1, true, error);
    bool ok = began && check_read(process, stream, buffer, capacity, count, &gc.failure) &&
              read_output(&gc, process, (SprStream)stream, offset, buffer, capacity, count);
    return end(&gc, process, began, ok);
}

const sprov_ext_processes glue_processes = {
    .struct_size = sizeof(sprov_ext_processes),
    .spawn = glue_spawn,
    .release = processes_release,
    .id = processes_id,
    .wait = processes_wait,
    .kill = processes_kill,
    .write_stdin = processes_write_stdin,
    .close_stdin = processes_close_stdin,
    .resize = processes_resize,
    .read = processes_read,
    .fd = processes_fd,
    .resume = processes_resume,
    .forget = processes_forget,
    .list = processes_list,
    .find = processes_find,
};
