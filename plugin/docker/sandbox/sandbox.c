#include "sandbox/sandbox.h"

#include "base/error.h"
#include "base/latch.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "sandbox/connect.h"
#include "sandbox/create.h"
#include "sandbox/env.h"
#include "sandbox/info.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"

#include <string.h>

#define END_LIMIT_MS 1000

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

    GMutex lock; /* guards all below */
    Status status;
    DkrLife *life;        /* while it runs, as far as is known */
    SprLatch *transition; /* opens when the start, stop or destroy under way is over */
    SprLatch *given_up;   /* opens when a start under way has to end before it is over */
    guint attempts;       /* starts that ended, */
    GError *last_failure; /* and how the last one did, NULL for well */
    bool ever_asked;      /* the engine may have a container of it */
    char **env;           /* options and set_env() */
};

static char **options_env(const DkrSandboxOptions *options)
{
    char **env = g_new0(char *, options->env.count + 1);
    for (size_t i = 0; i < options->env.count; i++)
        env[i] = g_strdup_printf("%s=%s", options->env.items[i].name, options->env.items[i].value);
    return env;
}

DkrSandbox *dkr_sandbox_new(const DkrContext *context, DkrSandboxOptions *options)
{
    DkrSandbox *sandbox = g_new0(DkrSandbox, 1);
    sandbox->context = context;
    sandbox->options = options;
    sandbox->env = options_env(options);
    sandbox->ever_asked = !options->id_is_generated;
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

/* ------------------------------------------------------------------- one at a time */

static bool fail_destroyed(const DkrSandbox *sandbox, GError **error)
{
    return spr_fail(error, SPR_E_NOT_READY, "destroyed",
                    "the sandbox \"%s\" was destroyed: create a new handle", sandbox->options->id);
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

/* What the engine says of a life that is believed in. */
typedef enum {
    LIFE_RUNS,
    LIFE_PAUSED,
    LIFE_RESTARTS,
    LIFE_OVER,
    LIFE_UNKNOWN
} LifeState;

/* error may be NULL; it is set for LIFE_UNKNOWN. */
static LifeState ask_life(DkrSandbox *sandbox, const DkrLife *life, const SprWait *wait,
                          GError **error)
{
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_container_inspect(sandbox->context->client, life->container, wait, &inspect, &why)) {
        if (dkr_failure_status(why) == 404)
            return LIFE_OVER;
        g_propagate_error(error, g_steal_pointer(&why));
        return LIFE_UNKNOWN;
    }
    json_t *state = json_object_get(inspect, "State");
    if (json_is_true(json_object_get(state, "Paused")))
        return LIFE_PAUSED;
    if (json_is_true(json_object_get(state, "Restarting")))
        return LIFE_RESTARTS;
    bool is_same =
        g_strcmp0(json_string_value(json_object_get(state, "StartedAt")), life->started) == 0;
    return is_same && json_is_true(json_object_get(state, "Running")) ? LIFE_RUNS : LIFE_OVER;
}

/* In place of what *error says. */
static void fail_gone(const DkrSandbox *sandbox, const char *by, GError **error)
{
    g_clear_error(error);
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the sandbox \"%s\" was stopped or removed %s: start it again", sandbox->options->id,
             by);
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
}

/* start() promises a sandbox that is ready, so what is remembered is not enough. */
static bool check_life(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_autoptr(DkrLife) life = get_life(sandbox);
    LifeState state = life ? ask_life(sandbox, life, wait, error) : LIFE_RUNS;
    if (state == LIFE_OVER || state == LIFE_PAUSED || state == LIFE_RESTARTS)
        lose_life(sandbox, life);
    return state != LIFE_UNKNOWN;
}

/* --------------------------------------------------------------------------- start */

static bool find_or_create(DkrSandbox *sandbox, guint flags, const DkrStartHooks *hooks,
                           const SprWait *wait, DkrLife **ret_life, DkrStartOutcome *ret_outcome,
                           GError **error)
{
    const DkrSandboxOptions *options = sandbox->options;
    if (!dkr_connect(sandbox->context, options, wait, ret_life, error))
        return false;
    *ret_outcome = DKR_START_CONNECTED;
    if (*ret_life)
        return true;
    if (flags & DKR_READY_NO_CREATE)
        return spr_fail(error, SPR_E_NOT_FOUND, "no-such-sandbox",
                        "there is no sandbox with the id \"%s\": start it first", options->id);
    return dkr_create_new(sandbox->context, options, hooks, wait, ret_life, ret_outcome, error);
}

/* With the lock held. Waits for a start under way; false with its error when it failed for all. */
static bool join_start(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    while (sandbox->status == STATUS_STARTING) {
        guint attempt = sandbox->attempts;
        if (!wait_for_transition(sandbox, false, wait, error))
            return false;
        if (sandbox->attempts != attempt && sandbox->last_failure &&
            !spr_error_is_own_wish(sandbox->last_failure)) {
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

/* The life of a container that runs, NULL without one. */
static bool find_running(DkrSandbox *sandbox, const SprWait *wait, DkrLife **ret_life,
                         GError **error)
{
    g_autofree char *container = NULL;
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_connect_find(sandbox->context, sandbox->options->id, wait, &container, NULL, error))
        return false;
    if (!container)
        return true;
    if (!dkr_container_inspect(sandbox->context->client, container, wait, &inspect, &why)) {
        if (dkr_failure_status(why) == 404)
            return true;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    json_t *state = json_object_get(inspect, "State");
    if (!json_is_true(json_object_get(state, "Running")))
        return true;
    *ret_life = dkr_life_new(sandbox->context, sandbox->options, inspect, NULL, wait, error);
    return *ret_life != NULL;
}

/* With the lock held, which is released while the engine is asked. */
static bool look_locked(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    if (!wait_for_transition(sandbox, false, wait, error))
        return false;
    if (sandbox->status == STATUS_DESTROYED)
        return fail_destroyed(sandbox, error);
    if (sandbox->life || !sandbox->ever_asked)
        return true;
    Status before = sandbox->status;
    if (!begin_transition(sandbox, before, error))
        return false;
    g_mutex_unlock(&sandbox->lock);
    DkrLife *life = NULL;
    bool ok = find_running(sandbox, wait, &life, error);
    g_mutex_lock(&sandbox->lock);
    set_life(sandbox, life);
    end_transition(sandbox, life ? STATUS_RUNNING : before);
    return ok;
}

/* ---------------------------------------------------------------------------- work */

static bool may_start(const DkrSandbox *sandbox, guint ready_flags)
{
    return !(ready_flags & DKR_READY_NO_START) && sandbox->options->auto_start.value;
}

static bool fail_not_started(const DkrSandbox *sandbox, GError **error)
{
    return spr_fail(error, SPR_E_NOT_READY, "not-started",
                    "the sandbox \"%s\" is not started: call start first", sandbox->options->id);
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

/* A connection that broke may be the first that is seen of an end. */
static bool ends_soon(DkrSandbox *sandbox, const DkrLife *life, const SprWait *wait)
{
    bool ended = false;
    return dkr_container_has_ended(sandbox->context->client, life->container, END_LIMIT_MS, wait,
                                   &ended, NULL) &&
           ended;
}

/* An engine knows of an end before its record of the container does: 20.10 refuses with 500 what
 * comes in between. */
static bool says_ended(const GError *why)
{
    int status = dkr_failure_status(why);
    return (status == 409 || status == 500) && dkr_failure_says_ended(why->message);
}

/* Whether the attempt failed because the life it was made in is over; then it says so. */
static bool is_lost(DkrSandbox *sandbox, const DkrLife *life, const SprWait *wait, GError **error)
{
    if (spr_error_is(*error, SPR_E_NOT_READY, "gone")) /* a stop or destroy of this handle */
        fail_gone(sandbox, "by another call", error);
    else if (spr_error_extra(*error)->flags & SPR_ERROR_SANDBOX_GONE)
        lose_life(sandbox, life);
    /* What starts a command for the engine is killed with the container, as it is for want of
     * memory. */
    bool may_be_end =
        spr_error_is(*error, SPR_E_IO, NULL) || spr_error_is(*error, SPR_E_EXHAUSTED, "no-process");
    if (dkr_failure_status(*error) == 0 &&
        (!may_be_end || !dkr_client_answers(sandbox->context->client, wait, NULL)))
        return false;
    LifeState state = ask_life(sandbox, life, wait, NULL);
    if (state == LIFE_RUNS &&
        (says_ended(*error) || (may_be_end && ends_soon(sandbox, life, wait))))
        state = LIFE_OVER;
    if (state == LIFE_PAUSED) {
        g_clear_error(error);
        spr_fail(error, SPR_E_NOT_READY, "paused", "the sandbox \"%s\" is paused: start resumes it",
                 sandbox->options->id);
    }
    if (state == LIFE_RESTARTS) {
        g_clear_error(error);
        spr_fail(error, SPR_E_NOT_READY, "restarting",
                 "the main process of sandbox \"%s\" ended and the engine starts it again: start "
                 "waits for it",
                 sandbox->options->id);
        spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    }
    if (state != LIFE_OVER)
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

/* Its container, by what is known or by its label; NULL when there is none. ret_socket (may be
 * NULL) as of dkr_connect_find(). */
static bool locate(DkrSandbox *sandbox, const SprWait *wait, char **ret_container,
                   char **ret_socket, GError **error)
{
    g_autoptr(DkrLife) life = get_life(sandbox);
    if (!life)
        return dkr_connect_find(sandbox->context, sandbox->options->id, wait, ret_container,
                                ret_socket, error);
    *ret_container = g_strdup(life->container);
    if (ret_socket)
        *ret_socket = g_strdup(life->socket);
    return true;
}

static void end_transfers(DkrSandbox *sandbox)
{
    g_autoptr(DkrLife) life = get_life(sandbox);
    if (life)
        dkr_life_end_transfers(life);
}

static bool stop_container(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_autofree char *container = NULL;
    g_autoptr(GError) why = NULL;
    end_transfers(sandbox);
    if (!locate(sandbox, wait, &container, NULL, error))
        return false;
    if (!container ||
        dkr_container_stop(sandbox->context->client, container,
                           dkr_sandbox_options_stop_s(sandbox->options), wait, &why) ||
        dkr_failure_status(why) == 404)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* And the volume of its own that a sandbox with far-reaching capabilities has, and the folder of
 * its socket. */
static bool remove_container(DkrSandbox *sandbox, const SprWait *wait, GError **error)
{
    g_autofree char *container = NULL;
    g_autofree char *socket = NULL;
    DkrClient *client = sandbox->context->client;
    end_transfers(sandbox);
    if (!locate(sandbox, wait, &container, &socket, error))
        return false;
    g_autofree char *volume = dkr_placement_own_volume(sandbox->options->id);
    if (container && !dkr_container_remove(client, container, wait, error))
        return false;
    dkr_socket_forget(socket);
    return dkr_volume_remove(client, volume, wait, error);
}

static bool finish(DkrSandbox *sandbox, bool ok, Status status)
{
    g_mutex_lock(&sandbox->lock);
    if (ok)
        set_life(sandbox, NULL);
    else if (sandbox->life)
        dkr_life_go_on(sandbox->life);
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
    return ok && finish(sandbox, stop_container(sandbox, wait, error), STATUS_STOPPED);
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
    return finish(sandbox, !ask || remove_container(sandbox, wait, error), STATUS_DESTROYED);
}

bool dkr_sandbox_is_destroyed(DkrSandbox *sandbox)
{
    g_mutex_lock(&sandbox->lock);
    bool destroyed = sandbox->status == STATUS_DESTROYED;
    g_mutex_unlock(&sandbox->lock);
    return destroyed;
}

/* ----------------------------------------------------------------------------- info */

/* Why commands do not go through a supervisor; NULL: they do. */
static char *no_supervisor(const DkrSandbox *sandbox, const DkrLife *life)
{
    if (strcmp(sandbox->options->supervisor, "off") == 0)
        return g_strdup("switched off in the options");
    if (!life)
        return g_strdup("the sandbox is not running, as far as this handle knows");
    return dkr_life_unsupervised(life);
}

static char *make_info(DkrSandbox *sandbox, const json_t *inspect, const json_t *stats)
{
    g_mutex_lock(&sandbox->lock);
    g_autoptr(DkrLife) life = sandbox->life ? dkr_life_ref(sandbox->life) : NULL;
    g_autofree char *reason = no_supervisor(sandbox, life);
    g_autofree char *why_stream = NULL;
    const char *transport =
        reason || !life->link ? NULL : dkr_link_transport(life->link, &why_stream);
    DkrInfoSource source = {.options = sandbox->options,
                            .status = status_names[sandbox->status],
                            .image = life ? life->image : NULL,
                            .workdir = life ? life->workdir : NULL,
                            .supervisor_reason = reason,
                            .transport = transport,
                            .transport_reason = why_stream};
    g_mutex_unlock(&sandbox->lock);
    return dkr_info_sandbox(&source, inspect, stats);
}

char *dkr_sandbox_describe(DkrSandbox *sandbox)
{
    return make_info(sandbox, NULL, NULL);
}

static bool inspect_container(DkrSandbox *sandbox, const SprWait *wait, json_t **ret_inspect,
                              GError **error)
{
    g_autofree char *container = NULL;
    g_autoptr(GError) why = NULL;
    if (!locate(sandbox, wait, &container, NULL, error))
        return false;
    if (!container ||
        dkr_container_inspect(sandbox->context->client, container, wait, ret_inspect, &why) ||
        dkr_failure_status(why) == 404)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* One that ends meanwhile has none, which engines tell by a status or by an empty answer. */
static bool measure(DkrSandbox *sandbox, const json_t *inspect, const SprWait *wait,
                    json_t **ret_stats, GError **error)
{
    g_autoptr(GError) why = NULL;
    const char *container = json_string_value(json_object_get(inspect, "Id"));
    const json_t *state = json_object_get(inspect, "State");
    if (!json_is_true(json_object_get(state, "Running")) ||
        dkr_container_stats(sandbox->context->client, container, wait, ret_stats, &why) ||
        dkr_failure_status(why) != 0 || spr_error_is(why, SPR_E_IO, "bad-answer"))
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_sandbox_info(DkrSandbox *sandbox, const SprWait *wait, char **ret_json, GError **error)
{
    json_auto_t *inspect = NULL;
    json_auto_t *stats = NULL;
    if (dkr_sandbox_is_destroyed(sandbox))
        return fail_destroyed(sandbox, error);
    if (!inspect_container(sandbox, wait, &inspect, error) ||
        !measure(sandbox, inspect, wait, &stats, error))
        return false;
    *ret_json = make_info(sandbox, inspect, stats);
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
