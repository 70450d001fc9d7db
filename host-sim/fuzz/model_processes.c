/* Calls on processes that were spawned before. A process that is about to end by itself may be met
 * on either side of its end, so such a call has two states to leave. */
#include "fuzz/model.h"

#include <string.h>

/* The newest bytes that a provider keeps of a stream. */
#define KEPT 1048576

static void keep(GArray *next, const FuzzState *state)
{
    g_array_append_vals(next, state, 1);
}

/* Ends by itself, soon. */
static bool is_ending(const FuzzProcess *process)
{
    return process->life == FUZZ_ALIVE &&
           (process->kind == FUZZ_PROCESS_PRINT ||
            (process->kind == FUZZ_PROCESS_CAT && process->is_closed));
}

static void end(FuzzProcess *process, guint8 exit_code, bool is_killed)
{
    process->life = FUZZ_OVER;
    process->exit_code = exit_code;
    process->is_killed = is_killed;
}

static guint8 own_exit_code(const FuzzProcess *process)
{
    return process->kind == FUZZ_PROCESS_PRINT ? process->number : 0;
}

static bool has_input(const FuzzProcess *process)
{
    return process->kind == FUZZ_PROCESS_CAT && !process->is_closed;
}

static bool feed(FuzzProcess *process, const FuzzCall *call, const FuzzAnswer *answer)
{
    g_autoptr(GBytes) bytes = fuzz_content(call->content);
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    if (process->life != FUZZ_ALIVE || !has_input(process))
        return answer->status == SPROV_E_CONFLICT;
    process->fed += size;
    process->fed_sum = fuzz_sum(process->fed_sum, data, size);
    return answer->status == SPROV_OK && answer->out_size == size;
}

static bool close_input(FuzzProcess *process, const FuzzAnswer *answer)
{
    bool has_none = process->kind != FUZZ_PROCESS_CAT;
    process->is_closed = 1;
    return answer->status == SPROV_OK || (has_none && answer->status == SPROV_E_CONFLICT);
}

/* All that it has printed, from its first byte on. */
static bool pull(const FuzzProcess *process, const FuzzAnswer *answer)
{
    g_autofree char *text = fuzz_process_text(process->number);
    bool prints = process->kind == FUZZ_PROCESS_PRINT;
    guint64 size = prints ? strlen(text) : process->fed;
    guint64 sum = prints ? fuzz_sum(FUZZ_SUM_BEGIN, text, strlen(text)) : process->fed_sum;
    bool was_cut = process->life == FUZZ_OVER && process->is_killed;
    if (size > KEPT)
        return answer->status == SPROV_OK;
    if (size == 0 && answer->status == SPROV_E_WOULD_BLOCK)
        return process->life == FUZZ_ALIVE;
    if (size == 0 && process->life == FUZZ_ALIVE)
        return answer->status == SPROV_OK && answer->out_size == 0 && is_ending(process);
    return answer->status == SPROV_OK &&
           (was_cut ? answer->out_size <= size
                    : answer->out_size == size && answer->out_sum == sum);
}

static bool wait_for(const FuzzProcess *process, const FuzzAnswer *answer)
{
    if (process->life == FUZZ_ALIVE)
        return answer->status == SPROV_E_TIMEOUT && !is_ending(process);
    guint32 flags = process->is_killed ? SPROV_EXEC_KILLED : 0;
    return answer->status == SPROV_OK && answer->exit_code == process->exit_code &&
           answer->result_flags == flags;
}

static void apply_kill(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                       GArray *next)
{
    FuzzState after = *state;
    FuzzProcess *process = &after.processes[call->lane][call->slot];
    bool is_over = process->life == FUZZ_OVER;
    bool was_ending = is_ending(process);
    if (is_over && answer->status == SPROV_E_NOT_FOUND)
        keep(next, &after);
    if (is_over || answer->status != SPROV_OK)
        return;
    end(process, 137, true);
    keep(next, &after);
    if (!was_ending)
        return;
    end(process, own_exit_code(process), false);
    keep(next, &after);
}

static bool forget(FuzzProcess *process, const FuzzAnswer *answer)
{
    if (process->life == FUZZ_ALIVE)
        return answer->status == SPROV_E_CONFLICT;
    process->life = FUZZ_FORGOTTEN;
    return answer->status == SPROV_OK;
}

/* A process that is alive or over, and whose end, if it is near, has come or not. */
static void apply_known(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        GArray *next)
{
    FuzzState after = *state;
    FuzzProcess *process = &after.processes[call->lane][call->slot];
    bool is_right;
    switch (call->function) {
    case FUZZ_FEED:
        is_right = feed(process, call, answer);
        break;
    case FUZZ_CLOSE:
        is_right = close_input(process, answer);
        break;
    case FUZZ_PULL:
        is_right = pull(process, answer);
        break;
    case FUZZ_WAIT:
        is_right = wait_for(process, answer);
        break;
    case FUZZ_FORGET:
        is_right = forget(process, answer);
        break;
    default:
        apply_kill(state, call, answer, next);
        return;
    }
    if (is_right)
        keep(next, &after);
}

/* ---- by way of a sandbox */

static bool find(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    const FuzzProcess *process = &state->processes[call->lane][call->slot];
    guint sandbox = fuzz_sandbox_of(call->handle);
    bool is_tracked =
        process->sandbox == sandbox && (process->life == FUZZ_ALIVE || process->life == FUZZ_OVER);
    if (state->life[sandbox] != FUZZ_RUNNING && answer->status == SPROV_E_NOT_READY)
        return true;
    return answer->status == (is_tracked ? SPROV_OK : SPROV_E_NOT_FOUND);
}

static bool ps(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    guint sandbox = fuzz_sandbox_of(call->handle);
    for (guint slot = 0; slot < FUZZ_SLOTS; slot++) {
        const FuzzProcess *process = &state->processes[call->lane][slot];
        bool is_tracked = process->sandbox == sandbox &&
                          (process->life == FUZZ_ALIVE || process->life == FUZZ_OVER);
        bool is_same = answer->listed[slot] == (is_tracked ? process->life : FUZZ_NO_PROCESS);
        if (!is_same && !(is_ending(process) && answer->listed[slot] == FUZZ_OVER))
            return false;
    }
    return answer->status == SPROV_OK;
}

static bool is_told_gone(const FuzzAnswer *answer)
{
    return answer->status == SPROV_E_NOT_READY && answer->error_flags & SPROV_ERROR_SANDBOX_GONE;
}

/* Its sandbox is about to end, and it has. */
static bool is_told_ended(const FuzzCall *call, const FuzzAnswer *answer)
{
    return (call->function == FUZZ_FEED && answer->status == SPROV_E_CONFLICT) ||
           (call->function == FUZZ_KILL && answer->status == SPROV_E_NOT_FOUND);
}

/* "size 0 is success, whatever became of the process". */
static bool feeds_nothing(const FuzzCall *call, const FuzzProcess *process)
{
    g_autoptr(GBytes) bytes = fuzz_content(call->content);
    return call->function == FUZZ_FEED && process->life != FUZZ_NO_PROCESS &&
           g_bytes_get_size(bytes) == 0;
}

static void apply_on_handle(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                            GArray *next)
{
    const FuzzProcess *process = &state->processes[call->lane][call->slot];
    if (feeds_nothing(call, process)) {
        if (answer->status == SPROV_OK && answer->out_size == 0)
            keep(next, state);
        return;
    }
    bool is_known = process->life == FUZZ_ALIVE || process->life == FUZZ_OVER;
    bool was_forgotten = process->life == FUZZ_FORGOTTEN || process->life == FUZZ_FORGOTTEN_GONE;
    bool is_refused =
        (process->life == FUZZ_NO_PROCESS && answer->outcome == FUZZ_NO_HANDLE) ||
        (was_forgotten && answer->status == SPROV_E_NOT_FOUND) ||
        (process->life >= FUZZ_GONE && is_told_gone(answer)) ||
        (is_known && answer->beside_end && (is_told_gone(answer) || is_told_ended(call, answer)));
    if (is_refused)
        keep(next, state);
    if (answer->outcome == FUZZ_NO_HANDLE)
        return;
    FuzzState over = *state;
    FuzzProcess *ended = &over.processes[call->lane][call->slot];
    if (is_known)
        apply_known(state, call, answer, next);
    if (is_ending(ended)) {
        end(ended, own_exit_code(ended), false);
        apply_known(&over, call, answer, next);
    }
    /* What had ended before its sandbox did may be known still, or gone with it. */
    if (process->life == FUZZ_OVER_GONE && call->function != FUZZ_FORGET) {
        ended->life = FUZZ_OVER;
        GArray *same = g_array_new(FALSE, FALSE, sizeof(FuzzState));
        apply_known(&over, call, answer, same);
        if (same->len > 0)
            keep(next, state);
        g_array_unref(same);
    }
}

void fuzz_apply_process(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        GArray *next)
{
    if (call->function != FUZZ_FIND && call->function != FUZZ_PS) {
        apply_on_handle(state, call, answer, next);
        return;
    }
    bool has_none = call->function == FUZZ_FIND &&
                    state->processes[call->lane][call->slot].life == FUZZ_NO_PROCESS;
    bool is_right =
        call->function == FUZZ_FIND ? find(state, call, answer) : ps(state, call, answer);
    if (has_none ? answer->outcome == FUZZ_NO_HANDLE
                 : is_right || (answer->beside_end && is_told_gone(answer)))
        keep(next, state);
}
