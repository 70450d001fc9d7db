#include "fuzz/model.h"

#include <string.h>

static void keep(GArray *next, const FuzzState *state)
{
    g_array_append_vals(next, state, 1);
}

static bool is_destroyed(const FuzzAnswer *answer)
{
    return answer->status == SPROV_E_NOT_READY && strcmp(answer->reason, "destroyed") == 0;
}

static bool is_told_gone(const FuzzAnswer *answer)
{
    return answer->status == SPROV_E_NOT_READY && answer->error_flags & SPROV_ERROR_SANDBOX_GONE;
}

/* Somebody else stopped or destroyed it while the call ran. */
static bool is_cut_off(const FuzzAnswer *answer)
{
    return is_told_gone(answer) && answer->beside_end;
}

void fuzz_print_variable(GString *text, guint variable, guint value)
{
    if (value >= FUZZ_SET)
        g_string_append_printf(text, "v%u", value);
    else
        g_string_append(text, value == FUZZ_UNTOUCHED && variable == 0 ? "option" : "none");
}

static bool is_wrong(const FuzzCall *call)
{
    return call->mode > 0777 && strchr(fuzz_kinds[call->function].fields, 'm');
}

/* ---- the life of a sandbox */

static void end_processes(FuzzState *state, guint sandbox)
{
    for (guint lane = 0; lane < FUZZ_LANES; lane++) {
        for (guint slot = 0; slot < FUZZ_SLOTS; slot++) {
            FuzzProcess *process = &state->processes[lane][slot];
            if (process->sandbox != sandbox)
                continue;
            if (process->life == FUZZ_ALIVE)
                process->life = FUZZ_GONE;
            else if (process->life == FUZZ_OVER)
                process->life = FUZZ_OVER_GONE;
            else if (process->life == FUZZ_FORGOTTEN)
                process->life = FUZZ_FORGOTTEN_GONE;
        }
    }
}

static bool start(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    guint8 *life = &after->life[fuzz_sandbox_of(call->handle)];
    bool was_there = *life != FUZZ_ABSENT;
    if (!was_there && call->options & FUZZ_NO_CREATE)
        return answer->status == SPROV_E_NOT_FOUND;
    *life = FUZZ_RUNNING;
    bool is_told = answer->outcome == SPROV_START_UNKNOWN ||
                   answer->outcome == (was_there ? SPROV_START_CONNECTED : SPROV_START_CREATED) ||
                   (answer->outcome == SPROV_START_CREATED && answer->beside_start);
    return answer->status == SPROV_OK && is_told;
}

static bool stop(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    guint sandbox = fuzz_sandbox_of(call->handle);
    if (after->life[sandbox] == FUZZ_RUNNING) {
        after->life[sandbox] = FUZZ_STOPPED;
        end_processes(after, sandbox);
    }
    return answer->status == SPROV_OK;
}

static bool destroy(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    guint sandbox = fuzz_sandbox_of(call->handle);
    if (!after->is_destroyed[call->handle]) {
        after->life[sandbox] = FUZZ_ABSENT;
        after->is_destroyed[call->handle] = 1;
        memset(after->nodes[sandbox], 0, sizeof after->nodes[sandbox]);
        end_processes(after, sandbox);
    }
    return answer->status == SPROV_OK;
}

static bool info(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    if (answer->status != SPROV_OK)
        return false;
    return answer->outcome == after->life[fuzz_sandbox_of(call->handle)] ||
           (answer->outcome == FUZZ_ON_THE_WAY && (answer->beside_end || answer->beside_start));
}

static bool set_env(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    after->variables[call->handle][call->slot] = (guint8)MAX(call->number, FUZZ_TAKEN);
    return answer->status == SPROV_OK;
}

/* Calls that find the sandbox as it is. */
static bool apply_outside(FuzzState *after, const FuzzCall *call, const FuzzAnswer *answer)
{
    switch (call->function) {
    case FUZZ_START:
        return start(after, call, answer);
    case FUZZ_STOP:
        return stop(after, call, answer);
    case FUZZ_DESTROY:
        return destroy(after, call, answer);
    case FUZZ_RENEW:
        after->is_destroyed[call->handle] = 0;
        memset(after->variables[call->handle], FUZZ_UNTOUCHED, FUZZ_VARIABLES);
        return answer->status == SPROV_OK;
    case FUZZ_INFO:
        return info(after, call, answer);
    case FUZZ_LISTED:
        return answer->status == SPROV_OK &&
               answer->outcome == (after->life[fuzz_sandbox_of(call->handle)] != FUZZ_ABSENT);
    default:
        return set_env(after, call, answer);
    }
}

/* ---- calls that need it to run */

/* Whether it may run now; false when the answer has to be a refusal. */
static bool make_ready(FuzzState *after, const FuzzCall *call)
{
    guint8 *life = &after->life[fuzz_sandbox_of(call->handle)];
    bool may_start = !(call->options & FUZZ_NO_START) && call->handle != FUZZ_MANUAL;
    bool may_create = may_start && !(call->options & FUZZ_NO_CREATE);
    if ((*life == FUZZ_STOPPED && !may_start) || (*life == FUZZ_ABSENT && !may_create))
        return false;
    *life = FUZZ_RUNNING;
    return true;
}

static bool needs_running(FuzzFunction function)
{
    return function > FUZZ_SET_ENV && function <= FUZZ_SPAWN;
}

bool fuzz_start_ahead(FuzzState *state, const FuzzCall *call)
{
    return needs_running(call->function) && !(call->options & FUZZ_FIRED) &&
           !state->is_destroyed[call->handle] &&
           state->life[fuzz_sandbox_of(call->handle)] != FUZZ_RUNNING && make_ready(state, call);
}

static bool is_refusal(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    bool may_start = !(call->options & FUZZ_NO_START) && call->handle != FUZZ_MANUAL;
    FuzzLife life = state->life[fuzz_sandbox_of(call->handle)];
    return (answer->status == SPROV_E_NOT_READY && !may_start && !is_destroyed(answer)) ||
           (answer->status == SPROV_E_NOT_FOUND && life == FUZZ_ABSENT &&
            call->options & FUZZ_NO_CREATE);
}

/* What may be left of a write that was cut off: directories, and in them a temporary file. */
static void leave_half(const FuzzState *state, const FuzzCall *call, GArray *next)
{
    FuzzState after = *state;
    fuzz_make_parents(&after, call, call->path);
    after.nodes[fuzz_sandbox_of(call->handle)][fuzz_parent(call->path)].is_there = FUZZ_LEFTOVERS;
    keep(next, &after);
}

static void apply_cut_off(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                          GArray *next)
{
    FuzzState after = *state;
    keep(next, state);
    if (!make_ready(&after, call))
        return;
    keep(next, &after);
    if (call->function == FUZZ_WRITE || call->function == FUZZ_POUR)
        leave_half(&after, call, next);
    if (fuzz_apply_inside(&after, call, answer, true))
        keep(next, &after);
}

static void apply_running(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                          GArray *next)
{
    FuzzState after = *state;
    if (call->function == FUZZ_SPAWN)
        after.processes[call->lane][call->slot] = (FuzzProcess){0};
    if (is_cut_off(answer))
        apply_cut_off(&after, call, answer, next);
    if (is_wrong(call) && answer->status == SPROV_E_INVALID_ARGUMENT)
        keep(next, &after);
    FuzzState before = after;
    if (!make_ready(&after, call)) {
        if (is_refusal(&before, call, answer))
            keep(next, &before);
        return;
    }
    if (call->options & FUZZ_TOKEN && answer->status == SPROV_E_CANCELLED)
        keep(next, &before); /* while it was made ready */
    if (is_wrong(call) || !fuzz_apply_inside(&after, call, answer, false))
        return;
    keep(next, &after);
    if (call->options & (FUZZ_GIVE_UP | FUZZ_SHORT)) {
        fuzz_make_parents(&after, call, call->path); /* they may be there by then */
        keep(next, &after);
    }
}

static bool is_on_process(FuzzFunction function)
{
    return function >= FUZZ_FEED && function <= FUZZ_PS;
}

/* With a token that has fired: it does nothing and says so, whatever else there is to say, but for
 * a request that is wrong in itself. */
static void apply_fired(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        GArray *next)
{
    FuzzState after = *state;
    if (call->function == FUZZ_SPAWN)
        after.processes[call->lane][call->slot] = (FuzzProcess){0};
    if (answer->status == SPROV_E_CANCELLED ||
        (is_wrong(call) && answer->status == SPROV_E_INVALID_ARGUMENT))
        keep(next, &after);
}

void fuzz_apply(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                GArray *next)
{
    bool has_handle = strchr(fuzz_kinds[call->function].fields, 'h') != NULL;
    bool needs_life = call->function != FUZZ_DESTROY && call->function != FUZZ_RENEW &&
                      call->function != FUZZ_LISTED;
    FuzzState after = *state;
    if (answer->fault[0])
        return;
    if (call->options & FUZZ_FIRED && answer->outcome != FUZZ_NO_HANDLE) {
        apply_fired(state, call, answer, next);
        return;
    }
    if (has_handle && needs_life && state->is_destroyed[call->handle] &&
        answer->outcome != FUZZ_NO_HANDLE) {
        bool is_refused = is_wrong(call) && answer->status == SPROV_E_INVALID_ARGUMENT;
        if (call->function == FUZZ_SPAWN)
            after.processes[call->lane][call->slot] = (FuzzProcess){0};
        bool is_told_so = call->function == FUZZ_INFO && answer->status == SPROV_OK &&
                          answer->beside_end && answer->outcome != FUZZ_RUNNING;
        if (is_destroyed(answer) || is_refused || is_told_so)
            keep(next, &after);
        return;
    }
    if (is_on_process(call->function)) {
        fuzz_apply_process(state, call, answer, next);
    } else if (call->function > FUZZ_SET_ENV) {
        apply_running(state, call, answer, next);
    } else {
        if (is_cut_off(answer) && call->function != FUZZ_DESTROY)
            keep(next, state);
        if (apply_outside(&after, call, answer))
            keep(next, &after);
    }
}
