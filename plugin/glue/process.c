#include "glue/process.h"

#include <string.h>
#include <unistd.h>

void glue_process_ref(sprov_process *process)
{
    g_atomic_ref_count_inc(&process->refs);
}

void glue_process_unref(sprov_process *process)
{
    if (!g_atomic_ref_count_dec(&process->refs))
        return;
    dkr_cursors_free(process->cursors);
    dkr_push_free(process->push);
    dkr_process_unref(process->process);
    glue_sink_done(&process->out);
    glue_sink_done(&process->err);
    g_mutex_clear(&process->input.lock);
    glue_sandbox_unref(process->sandbox);
    g_free(process);
}

/* ------------------------------------------------------------------------------ threads */

static void on_thread_started(void *ctx)
{
    sprov_process *process = ctx;
    sprov_provider *provider = process->sandbox->provider;
    glue_process_ref(process);
    g_mutex_lock(&provider->lock);
    process->threads++;
    g_mutex_unlock(&provider->lock);
}

/* close() waits for the threads of released handles, so the provider lives as long as it counts
 * one. */
static void on_thread_ended(void *ctx)
{
    sprov_process *process = ctx;
    sprov_provider *provider = process->sandbox->provider;
    g_mutex_lock(&provider->lock);
    process->threads--;
    bool was_winding = process->released;
    g_mutex_unlock(&provider->lock);
    glue_process_unref(process);
    if (!was_winding)
        return;
    g_mutex_lock(&provider->lock);
    provider->winding--;
    g_cond_broadcast(&provider->idle);
    g_mutex_unlock(&provider->lock);
}

static bool may_end(void *ctx)
{
    const sprov_process *process = ctx;
    return !process->push || dkr_push_is_settled(process->push);
}

static void on_push_changed(void *ctx)
{
    dkr_cursors_wake(((sprov_process *)ctx)->cursors);
}

static DkrFlow push_to(void *ctx, const void *data, gsize size)
{
    GlueSink *sink = ctx;
    const sprov_provider *before = glue_enter_callback(sink->provider);
    sprov_flow flow = sink->sink.write(sink->sink.ctx, data, size);
    glue_leave_callback(before);
    if (flow == SPROV_FLOW_PAUSE)
        return DKR_FLOW_PAUSE;
    return flow == SPROV_FLOW_CONTINUE ? DKR_FLOW_CONTINUE : DKR_FLOW_STOP;
}

/* ----------------------------------------------------------------------------- lifetime */

bool glue_process_new(sprov_sandbox *sandbox, GlueCommand *command, sprov_process **ret_process,
                      GError **error)
{
    sprov_process *process = g_new0(sprov_process, 1);
    g_atomic_ref_count_init(&process->refs);
    g_mutex_init(&process->input.lock);
    process->sandbox = sandbox;
    process->out.provider = process->err.provider = sandbox->provider;
    glue_sandbox_ref(sandbox);
    *ret_process = process;
    if (!command)
        return true;
    process->out = command->out;
    process->err = command->err;
    command->out.sink.done = command->err.sink.done = NULL; /* the handle's from now on */
    DkrPushOwner owner = {.changed = on_push_changed, .ended = on_thread_ended, .ctx = process};
    if (process->out.is_set)
        owner.out = (DkrPushSink){push_to, &process->out};
    if (process->err.is_set)
        owner.err = (DkrPushSink){push_to, &process->err};
    if ((!owner.out.write && !owner.err.write) || dkr_push_new(&owner, &process->push, error))
        return true;
    glue_process_unref(process);
    return false;
}

void glue_process_set(sprov_process *process, DkrProcess *spawned)
{
    DkrCursorsOwner owner = {may_end, on_thread_started, on_thread_ended, process};
    process->process = spawned;
    process->cursors = dkr_cursors_new(spawned, &owner);
}

void glue_process_begin(sprov_process *process)
{
    if (!process->push)
        return;
    on_thread_started(process);
    dkr_push_begin(process->push, process->process);
}

/* In a forked child the threads are missing and the descriptors are still the parent's. */
void glue_process_release(sprov_process *process)
{
    sprov_provider *provider = process->sandbox->provider;
    if (getpid() != provider->pid)
        return;
    g_mutex_lock(&provider->lock);
    process->released = true;
    provider->winding += process->threads;
    g_mutex_unlock(&provider->lock);
    if (process->push)
        dkr_push_stop(process->push);
    dkr_cursors_stop(process->cursors);
    glue_process_unref(process);
}

bool glue_process_check_supervised(sprov_sandbox *sandbox, GError **error)
{
    const DkrCommonOptions *options = dkr_sandbox_common(sandbox->sandbox);
    return options->is_supervised ||
           spr_fail(error, SPR_E_UNSUPPORTED, "needs-supervisor",
                    "processes need the supervisor, which the options of \"%s\" switch off",
                    options->id);
}
