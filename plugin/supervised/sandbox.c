#include "supervised/sandbox.h"

#include "base/error.h"
#include "base/latch.h"
#include "supervised/env.h"

typedef enum {
    STATUS_PENDING,
    STATUS_STARTING,
    STATUS_RUNNING,
    STATUS_STOPPING,
    STATUS_STOPPED,
    STATUS_DESTROYING,
    STATUS_DESTROYED,
    STATUS_ERROR
} Status;

static const char *const status_names[] = {"pending", "starting",   "running",   "stopping",
                                           "stopped", "destroying", "destroyed", "error"};

struct DkrSandbox {
    const DkrContext *context;
    DkrSandboxOptions *options;
    DkrCommonOptions common; /* of options */

    GMutex lock; /* guards all below */
    Status status;
    DkrLife *life;        /* while it runs, as far as is known */
    SprLatch *transition; /* opens when the start, stop or destroy under way is over */
    SprLatch *given_up;   /* opens when a start under way has to end before it is over */
    guint attempts;       /* starts that ended, */
    GError *last_failure; /* and how the last one did, NULL for well */
    bool ever_asked;      /* there may be something that runs or ran for it */
    char **env;           /* options and set_env() */
};

static char **pairs_env(const DkrPairs *pairs)
{
    char **env = g_new0(char *, pairs->count + 1);
    for (size_t i = 0; i < pairs->count; i++)
        env[i] = g_strdup_printf("%s=%s", pairs->items[i].name, pairs->items[i].value);
    return env;
}

DkrSandbox *dkr_sandbox_new(const DkrContext *context, DkrSandboxOptions *options)
{
    DkrSandbox *sandbox = g_new0(DkrSandbox, 1);
    sandbox->context = context;
    sandbox->options = options;
    sandbox->common = dkr_sandbox_options_common(options);
    sandbox->env = pairs_env(sandbox->common.env);
    sandbox->ever_asked = !sandbox->common.id_is_generated;
    g_mutex_init(&sandbox->lock);
    return sandbox;
}

void dkr_sandbox_free(DkrSandbox *sandbox)
{
    if (!sandbox)
        return;
    dkr_sandbox_options_free(sandbox->options);
    dkr_life_unref(sandbox->life);
    dkr_env_free(sandbox->env);
    g_clear_error(&sandbox->last_failure);
    g_mutex_clear(&sandbox->lock);
    g_free(sandbox);
}

const DkrSandboxOptions *dkr_sandbox_options(const DkrSandbox *sandbox)
{
    return sandbox->options;
}

const DkrCommonOptions *dkr_sandbox_common(const DkrSandbox *sandbox)
{
    return &sandbox->common;
}

/* ------------------------------------------------------------------- one at a time */

static bool fail_destroyed(const DkrSandbox *sandbox, GError **error)
{
    return spr_fail(error, SPR_E_NOT_READY, "destroyed",
                    "the sandbox \"%s\" was destroyed: create a new handle", sandbox->common.id);
}

/* With the lock held. Waits until no transition is under way; the lock is released meanwhile. A
 * stop or destroy ends a start rather than wait for it. */
static bool wait_for_transition(DkrSandbox *sandbox, bool end_starts, const SprWait *wait,
                                GError **error)
{
    while (sandbox->transition) {
        if (end_starts && sandbox->status == STATUS_STARTING)
            spr_latch_open(sandbox->given_up);
        g_autoptr(SprLatch) latch = spr_latch_ref(sandbox->transition);
        g_mutex_unlock(&sandbox->lock);
        bool ok = spr_latch_wait(latch, wait, error);
        g_mutex_lock(&sandbox->lock);
        if (!ok)
            return false;
    }
    return true;
}

static bool begin_transition(DkrSandbox *sandbox, Status status, GError **error)
{
    g_autoptr(SprLatch) over = spr_latch_new();
    g_autoptr(SprLatch) given_up = spr_latch_new();
    if (!over || !given_up)
        return spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor",
                        "the process has no descriptor left");
    sandbox->transition = g_steal_pointer(&over);
    sandbox->given_up = g_steal_pointer(&given_up);
    sandbox->status = status;
    return true;
}

static void end_transition(DkrSandbox *sandbox, Status status)
{
    SprLatch *latch = g_steal_pointer(&sandbox->transition);
    g_clear_pointer(&sandbox->given_up, spr_latch_unref);
    sandbox->status = status;
    spr_latch_open(latch);
    spr_latch_unref(latch);
}

static void set_life(DkrSandbox *sandbox, DkrLife *life)
{
    dkr_life_unref(sandbox->life);
    sandbox->life = life;
}

static DkrLife *get_life(DkrSandbox *sandbox)
{
    g_mutex_lock(&sandbox->lock);
    DkrLife *life = sandbox->life ? dkr_life_ref(sandbox->life) : NULL;
    g_mutex_unlock(&sandbox->lock);
    return life;
}

/* ---------------------------------------------------------------------- lives that end */

/* The next start begins anew, unless somebody began already. */
static void lose_life(DkrSandbox *sandbox, const DkrLife *life)
{
    g_mutex_lock(&sandbox->lock);
    if (sandbox->life == life) {
        set_life(sandbox, NULL);
        if (sandbox->status == STATUS_RUNNING)
            sandbox->status = STATUS_STOPPED;
    }
    g_mutex_unlock(&sandbox->lock);
}

/* In place of what *error says. */
static void fail_gone(const DkrSandbox *sandbox, const char *by, GError **error)
{
    g_clear_error(error);
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the sandbox \"%s\" was stopped or removed %s: start it again", sandbox->common.id,
             by);
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
}

/* start() promises a sandbox that is ready, so what is remembered is not enough. */
static bool check_life(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_autoptr(DkrLife) life = get_life(sandbox);
    DkrLifeState state =
        life ? dkr_backend_ask(sandbox->context, life, wait, error) : DKR_LIFE_RUNS;
    if (state == DKR_LIFE_OVER || state == DKR_LIFE_PAUSED || state == DKR_LIFE_RESTARTS)
        lose_life(sandbox, life);
    return state != DKR_LIFE_UNKNOWN;
}

/* --------------------------------------------------------------------------- start */

static bool find_or_create(DkrSandbox *sandbox, guint flags, const DkrStartHooks *hooks,
                           const SprWait *wait, DkrLife **ret_life, DkrStartOutcome *ret_outcome,
                           GError **error)
{
    if (!dkr_backend_connect(sandbox->context, sandbox->options, wait, ret_life, error))
        return false;
    *ret_outcome = DKR_START_CONNECTED;
    if (*ret_life)
        return true;
    if (flags & DKR_READY_NO_CREATE)
        return spr_fail(error, SPR_E_NOT_FOUND, "no-such-sandbox",
                        "there is no sandbox with the id \"%s\": start it first",
                        sandbox->common.id);
    return dkr_backend_create(sandbox->context, sandbox->options, hooks, wait, ret_life,
                              ret_outcome, error);
}

/* With the lock held. Waits for a start under way; false with its error when it failed for all. */
static bool join_start(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    while (sandbox->status == STATUS_STARTING) {
        guint attempt = sandbox->attempts;
        if (!wait_for_transition(sandbox, false, wait, error))
            return false;
        /* That there is none is the failure of who may not create one, and of nobody else. */
        if (sandbox->attempts != attempt && sandbox->last_failure &&
            !spr_error_is_own_wish(sandbox->last_failure) &&
            !spr_error_is(sandbox->last_failure, SPR_E_NOT_FOUND, "no-such-sandbox")) {
            g_propagate_error(error, g_error_copy(sandbox->last_failure));
            return false;
        }
    }
    return wait_for_transition(sandbox, false, wait, error);
}

/* With the lock held, which is released while the engine works. */
static bool start_locked(DkrSandbox *sandbox, guint flags, const DkrStartHooks *hooks,
                         const SprWait *wait, DkrStartOutcome *ret_outcome, GError **error)
{
    if (!join_start(sandbox, wait, error))
        return false;
    if (sandbox->status == STATUS_DESTROYED)
        return fail_destroyed(sandbox, error);
    *ret_outcome = DKR_START_CONNECTED;
    if (sandbox->life)
        return true;
    if (!spr_wait_check(wait, error) || !begin_transition(sandbox, STATUS_STARTING, error))
        return false;
    SprWait until_given_up = *wait;
    until_given_up.gone = sandbox->given_up;
    sandbox->ever_asked = true;
    g_mutex_unlock(&sandbox->lock);
    DkrLife *life = NULL;
    GError *failure = NULL;
    bool ok = find_or_create(sandbox, flags, hooks, &until_given_up, &life, ret_outcome, &failure);
    if (!ok && spr_wait_is_gone(&until_given_up))
        fail_gone(sandbox, "by another call", &failure);
    g_mutex_lock(&sandbox->lock);
    set_life(sandbox, life);
    sandbox->attempts++;
    g_clear_error(&sandbox->last_failure);
    sandbox->last_failure = ok ? NULL : g_error_copy(failure);
    end_transition(sandbox, ok ? STATUS_RUNNING : STATUS_ERROR);
    if (!ok)
        g_propagate_error(error, failure);
    return ok;
}

bool dkr_sandbox_start(DkrSandbox *sandbox, guint ready_flags, const DkrStartHooks *hooks,
                       const SprWait *wait, DkrStartOutcome *ret_outcome, GError **error)
{
    DkrStartOutcome outcome = DKR_START_CONNECTED;
    if (!check_life(sandbox, wait, error))
        return false;
    g_mutex_lock(&sandbox->lock);
    bool ok = start_locked(sandbox, ready_flags, hooks, wait, &outcome, error);
    g_mutex_unlock(&sandbox->lock);
    if (ok)
        *ret_outcome = outcome;
    return ok;
}

/* ------------------------------------------------------- one that runs already */

/* With the lock held, which is released while the engine is asked. */
static bool look_locked(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    if (!wait_for_transition(sandbox, false, wait, error))
        return false;
    if (sandbox->status == STATUS_DESTROYED)
        return fail_destroyed(sandbox, error);
    if (sandbox->life || !sandbox->ever_asked)
        return true;
    if (!begin_transition(sandbox, sandbox->status, error))
        return false;
    g_mutex_unlock(&sandbox->lock);
    DkrLife *life = NULL;
    bool ok = dkr_backend_find_running(sandbox->context, sandbox->options, wait, &life, error);
    g_mutex_lock(&sandbox->lock);
    set_life(sandbox, life);
    end_transition(sandbox, life ? STATUS_RUNNING : sandbox->status);
    return ok;
}

/* ---------------------------------------------------------------------------- work */

static bool may_start(const DkrSandbox *sandbox, guint ready_flags)
{
    return !(ready_flags & DKR_READY_NO_START) && sandbox->common.auto_start;
}

static bool fail_not_started(const DkrSandbox *sandbox, GError **error)
{
    return spr_fail(error, SPR_E_NOT_READY, "not-started",
                    "the sandbox \"%s\" is not started: call start first", sandbox->common.id);
}

/* The life to work in, started first where that is allowed. Where it is not, another handle may
 * have started it. */
static bool ready(DkrSandbox *sandbox, guint ready_flags, const DkrStartHooks *hooks,
                  const SprWait *wait, DkrLife **ret_life, GError **error)
{
    DkrStartOutcome outcome;
    bool ok = true;
    g_mutex_lock(&sandbox->lock);
    if (sandbox->status == STATUS_DESTROYED)
        ok = fail_destroyed(sandbox, error);
    else if (!sandbox->life && !may_start(sandbox, ready_flags))
        ok = look_locked(sandbox, wait, error) &&
             (sandbox->life || fail_not_started(sandbox, error));
    else if (!sandbox->life)
        ok = start_locked(sandbox, ready_flags, hooks, wait, &outcome, error);
    if (ok)
        *ret_life = dkr_life_ref(sandbox->life);
    g_mutex_unlock(&sandbox->lock);
    return ok;
}

/* Whether the attempt failed because the life it was made in is over; then it says so. */
static bool is_lost(DkrSandbox *sandbox, const DkrLife *life, const SprWait *wait, GError **error)
{
    if (spr_error_is(*error, SPR_E_NOT_READY, "gone")) /* a stop or destroy of this handle */
        fail_gone(sandbox, "by another call", error);
    else if (spr_error_extra(*error)->flags & SPR_ERROR_SANDBOX_GONE)
        lose_life(sandbox, life);
    DkrLifeState state = dkr_backend_judge(sandbox->context, life, *error, wait);
    if (state == DKR_LIFE_PAUSED) {
        g_clear_error(error);
        spr_fail(error, SPR_E_NOT_READY, "paused", "the sandbox \"%s\" is paused: start resumes it",
                 sandbox->common.id);
    }
    if (state == DKR_LIFE_RESTARTS) {
        g_clear_error(error);
        spr_fail(error, SPR_E_NOT_READY, "restarting",
                 "the main process of sandbox \"%s\" ended and the engine starts it again: start "
                 "waits for it",
                 sandbox->common.id);
        spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    }
    if (state != DKR_LIFE_OVER)
        return false;
    lose_life(sandbox, life);
    fail_gone(sandbox, "by somebody else", error);
    return true;
}

bool dkr_sandbox_work(DkrSandbox *sandbox, guint ready_flags, const DkrStartHooks *hooks,
                      const SprWait *wait, const DkrWork *work, GError **error)
{
    g_autoptr(GError) lost = NULL;
    for (;;) {
        g_autoptr(DkrLife) life = NULL;
        g_autoptr(GError) why = NULL;
        if (!ready(sandbox, ready_flags, hooks, wait, &life, &why)) {
            bool says_more = lost && spr_error_is(why, SPR_E_NOT_READY, "not-started");
            g_propagate_error(error, says_more ? g_steal_pointer(&lost) : g_steal_pointer(&why));
            return false;
        }
        if (work->attempt(work->ctx, life, &why))
            return true;
        if (is_lost(sandbox, life, wait, &why) && !lost && work->may_repeat(work->ctx)) {
            lost = g_steal_pointer(&why);
            continue;
        }
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
}

/* ---------------------------------------------------------------------------- visits */

bool dkr_sandbox_visit(DkrSandbox *sandbox, const SprWait *wait, const DkrWork *work,
                       bool *ret_runs, GError **error)
{
    for (bool repeated = false;; repeated = true) {
        g_autoptr(DkrLife) life = NULL;
        g_autoptr(GError) why = NULL;
        g_mutex_lock(&sandbox->lock);
        bool ok = look_locked(sandbox, wait, error);
        if (ok && sandbox->life)
            life = dkr_life_ref(sandbox->life);
        g_mutex_unlock(&sandbox->lock);
        if (!ok)
            return false;
        *ret_runs = life != NULL;
        if (!life || work->attempt(work->ctx, life, &why))
            return true;
        if (repeated || !is_lost(sandbox, life, wait, &why)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
    }
}

/* -------------------------------------------------------------------- stop, destroy */

/* Stops or removes it, whatever the handle knows of it. */
static bool end_life(DkrSandbox *sandbox,
                     bool (*end)(const DkrContext *context, const DkrSandboxOptions *options,
                                 const DkrLife *life, const SprWait *wait, GError **error),
                     const SprWait *wait, GError **error)
{
    g_autoptr(DkrLife) life = get_life(sandbox);
    if (life)
        dkr_transfers_end(dkr_life_transfers(life));
    return end(sandbox->context, sandbox->options, life, wait, error);
}

static bool finish(DkrSandbox *sandbox, bool ok, Status status)
{
    g_mutex_lock(&sandbox->lock);
    if (ok)
        set_life(sandbox, NULL);
    else if (sandbox->life)
        dkr_transfers_go_on(dkr_life_transfers(sandbox->life));
    end_transition(sandbox, ok ? status : STATUS_ERROR);
    g_mutex_unlock(&sandbox->lock);
    return ok;
}

bool dkr_sandbox_stop(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_mutex_lock(&sandbox->lock);
    bool ok = wait_for_transition(sandbox, true, wait, error);
    if (ok && sandbox->status == STATUS_DESTROYED)
        ok = fail_destroyed(sandbox, error);
    ok = ok && begin_transition(sandbox, STATUS_STOPPING, error);
    g_mutex_unlock(&sandbox->lock);
    return ok && finish(sandbox, end_life(sandbox, dkr_backend_stop, wait, error), STATUS_STOPPED);
}

bool dkr_sandbox_destroy(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_mutex_lock(&sandbox->lock);
    bool ok = wait_for_transition(sandbox, true, wait, error);
    bool done = ok && sandbox->status == STATUS_DESTROYED;
    bool ask = sandbox->ever_asked;
    ok = ok && (done || begin_transition(sandbox, STATUS_DESTROYING, error));
    g_mutex_unlock(&sandbox->lock);
    if (!ok || done)
        return ok;
    return finish(sandbox, !ask || end_life(sandbox, dkr_backend_remove, wait, error),
                  STATUS_DESTROYED);
}

bool dkr_sandbox_is_destroyed(DkrSandbox *sandbox)
{
    g_mutex_lock(&sandbox->lock);
    bool destroyed = sandbox->status == STATUS_DESTROYED;
    g_mutex_unlock(&sandbox->lock);
    return destroyed;
}

/* ----------------------------------------------------------------------------- info */

static const char *current(DkrSandbox *sandbox, DkrLife **ret_life)
{
    g_mutex_lock(&sandbox->lock);
    const char *status = status_names[sandbox->status];
    *ret_life = sandbox->life ? dkr_life_ref(sandbox->life) : NULL;
    g_mutex_unlock(&sandbox->lock);
    return status;
}

char *dkr_sandbox_describe(DkrSandbox *sandbox)
{
    g_autoptr(DkrLife) life = NULL;
    const char *status = current(sandbox, &life);
    return dkr_backend_describe(sandbox->options, life, status);
}

/* There is none: what was known is of one that somebody removed, also while a call looks for it. */
static void note_absence(DkrSandbox *sandbox, const DkrLife *life)
{
    if (life)
        lose_life(sandbox, life);
    g_mutex_lock(&sandbox->lock);
    bool is_known = sandbox->status == STATUS_RUNNING || sandbox->status == STATUS_STOPPED;
    if (is_known && !sandbox->life)
        sandbox->status = STATUS_PENDING;
    g_mutex_unlock(&sandbox->lock);
}

bool dkr_sandbox_info(DkrSandbox *sandbox, const SprWait *wait, char **ret_json, GError **error)
{
    g_autoptr(DkrLife) life = NULL;
    const char *status = current(sandbox, &life);
    g_autofree char *json = NULL;
    if (dkr_sandbox_is_destroyed(sandbox))
        return fail_destroyed(sandbox, error);
    if (!dkr_backend_info(sandbox->context, sandbox->options, life, status, wait, &json, error))
        return false;
    if (!json)
        note_absence(sandbox, life);
    *ret_json = json ? g_steal_pointer(&json) : dkr_sandbox_describe(sandbox);
    return true;
}

/* ------------------------------------------------------------------------------ env */

void dkr_sandbox_set_env(DkrSandbox *sandbox, const char *const *changes)
{
    g_mutex_lock(&sandbox->lock);
    char **merged = dkr_env_merge((const char *const *)sandbox->env, changes);
    dkr_env_free(sandbox->env);
    sandbox->env = merged;
    g_mutex_unlock(&sandbox->lock);
}

char **dkr_sandbox_command_env(DkrSandbox *sandbox, const char *const *changes)
{
    g_mutex_lock(&sandbox->lock);
    char **merged = dkr_env_merge((const char *const *)sandbox->env, changes);
    g_mutex_unlock(&sandbox->lock);
    return merged;
}
