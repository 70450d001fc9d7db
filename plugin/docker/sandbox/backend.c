/* What runs the sandboxes of this provider: containers of its engine (supervised/backend.h). */
#include "supervised/backend.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "sandbox/connect.h"
#include "sandbox/create.h"
#include "sandbox/info.h"
#include "sandbox/layout.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"

#include <string.h>

#define END_LIMIT_MS 1000

DkrLifeState dkr_backend_ask(const DkrContext *context, const DkrLife *life, const SprWait *wait,
                             GError **error)
{
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_container_inspect(context->client, life->container, wait, &inspect, &why)) {
        if (dkr_failure_status(why) == 404)
            return DKR_LIFE_OVER;
        g_propagate_error(error, g_steal_pointer(&why));
        return DKR_LIFE_UNKNOWN;
    }
    json_t *state = json_object_get(inspect, "State");
    if (json_is_true(json_object_get(state, "Paused")))
        return DKR_LIFE_PAUSED;
    if (json_is_true(json_object_get(state, "Restarting")))
        return DKR_LIFE_RESTARTS;
    bool is_same =
        g_strcmp0(json_string_value(json_object_get(state, "StartedAt")), life->started) == 0;
    return is_same && json_is_true(json_object_get(state, "Running")) ? DKR_LIFE_RUNS
                                                                      : DKR_LIFE_OVER;
}

/* A connection that broke may be the first that is seen of an end. */
static bool ends_soon(const DkrContext *context, const DkrLife *life, const SprWait *wait)
{
    bool ended = false;
    return dkr_container_has_ended(context->client, life->container, END_LIMIT_MS, wait, &ended,
                                   NULL) &&
           ended;
}

/* An engine knows of an end before its record of the container does: 20.10 refuses with 500 what
 * comes in between. */
static bool says_ended(const GError *why)
{
    int status = dkr_failure_status(why);
    return (status == 409 || status == 500) && dkr_failure_says_ended(why->message);
}

DkrLifeState dkr_backend_judge(const DkrContext *context, const DkrLife *life,
                               const GError *failure, const SprWait *wait)
{
    /* What starts a command for the engine is killed with the container, as it is for want of
     * memory. */
    bool may_be_end = spr_error_is(failure, SPR_E_IO, NULL) ||
                      spr_error_is(failure, SPR_E_EXHAUSTED, "no-process");
    if (dkr_failure_status(failure) == 0 &&
        (!may_be_end || !dkr_client_answers(context->client, wait, NULL)))
        return DKR_LIFE_RUNS;
    DkrLifeState state = dkr_backend_ask(context, life, wait, NULL);
    bool is_ending = state == DKR_LIFE_RUNS &&
                     (says_ended(failure) || (may_be_end && ends_soon(context, life, wait)));
    return is_ending ? DKR_LIFE_OVER : state;
}

/* --------------------------------------------------------------------- finding and making */

bool dkr_backend_connect(const DkrContext *context, const DkrSandboxOptions *options,
                         const SprWait *wait, DkrLife **ret_life, GError **error)
{
    return dkr_connect(context, options, wait, ret_life, error);
}

bool dkr_backend_create(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                        DkrStartOutcome *ret_outcome, GError **error)
{
    return dkr_create_new(context, options, hooks, wait, ret_life, ret_outcome, error);
}

bool dkr_backend_find_running(const DkrContext *context, const DkrSandboxOptions *options,
                              const SprWait *wait, DkrLife **ret_life, GError **error)
{
    g_autofree char *container = NULL;
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_connect_find(context, options->id, wait, &container, NULL, error))
        return false;
    if (!container)
        return true;
    if (!dkr_container_inspect(context->client, container, wait, &inspect, &why)) {
        if (dkr_failure_status(why) == 404)
            return true;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    json_t *state = json_object_get(inspect, "State");
    if (!json_is_true(json_object_get(state, "Running")))
        return true;
    *ret_life = dkr_life_new(context, options, inspect, NULL, wait, error);
    return *ret_life != NULL;
}

/* ----------------------------------------------------------------------- stop, remove */

/* Its container, by what is known or by its label; NULL when there is none. What is known may be
 * gone, and another have its id by now: the callers look by the label then. ret_socket (may be
 * NULL) as of dkr_connect_find(). */
static bool locate(const DkrContext *context, const DkrSandboxOptions *options, const DkrLife *life,
                   const SprWait *wait, char **ret_container, char **ret_socket, GError **error)
{
    if (!life)
        return dkr_connect_find(context, options->id, wait, ret_container, ret_socket, error);
    *ret_container = g_strdup(life->container);
    if (ret_socket)
        *ret_socket = g_strdup(life->socket);
    return true;
}

/* The signal to end may come before a keep-alive that was just started can hear it, and as the
 * first process of a container it would never hear of it then. It has nothing to finish: none is
 * waited for. */
static int grace_of(const DkrContext *context, const DkrSandboxOptions *options,
                    const DkrLife *life, const char *container, const SprWait *wait)
{
    json_auto_t *inspect = NULL;
    bool only_stays =
        life ? life->only_stays
             : dkr_container_inspect(context->client, container, wait, &inspect, NULL) &&
                   dkr_life_only_stays(inspect);
    return only_stays ? 0 : dkr_sandbox_options_stop_s(options);
}

bool dkr_backend_stop(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const SprWait *wait, GError **error)
{
    for (const DkrLife *known = life;; known = NULL) {
        g_autofree char *container = NULL;
        g_autoptr(GError) why = NULL;
        if (!locate(context, options, known, wait, &container, NULL, error))
            return false;
        if (!container ||
            dkr_container_stop(context->client, container,
                               grace_of(context, options, known, container, wait), wait, &why))
            return true;
        if (dkr_failure_status(why) != 404) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!known)
            return true;
    }
}

/* And the volume of its own that a sandbox with far-reaching capabilities has, and the folder of
 * its socket. */
bool dkr_backend_remove(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrLife *life, const SprWait *wait, GError **error)
{
    g_autofree char *volume = dkr_placement_own_volume(options->id);
    bool is_over = false;
    for (const DkrLife *known = life; !is_over; known = NULL) {
        g_autofree char *container = NULL;
        g_autofree char *socket = NULL;
        bool was_there = true;
        if (!locate(context, options, known, wait, &container, &socket, error) ||
            (container &&
             !dkr_container_remove_found(context->client, container, wait, &was_there, error)))
            return false;
        dkr_socket_forget(socket);
        is_over = was_there || !known;
    }
    return dkr_volume_remove(context->client, volume, wait, error);
}

/* ------------------------------------------------------------------------------ info */

/* Why commands do not go through a supervisor; NULL: they do, or will. inspect may be NULL. */
static char *no_supervisor(const DkrSandboxOptions *options, const DkrLife *life,
                           const json_t *inspect)
{
    const json_t *state = json_object_get(inspect, "State");
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    if (strcmp(options->supervisor, "off") == 0)
        return g_strdup("switched off in the options");
    if (life)
        return dkr_life_unsupervised(life);
    if (!json_is_true(json_object_get(state, "Running")))
        return g_strdup("the sandbox is not running, as far as this handle knows");
    return json_object_get(labels, DKR_SUPERVISOR_LABEL)
               ? NULL
               : g_strdup("its container was made without one, and this handle has not used it");
}

static char *make_info(const DkrSandboxOptions *options, const DkrLife *life, const char *status,
                       const json_t *inspect, const json_t *stats)
{
    g_autofree char *reason = no_supervisor(options, life, inspect);
    g_autofree char *why_stream = NULL;
    const char *transport =
        reason || !life || !life->link ? NULL : dkr_link_transport(life->link, &why_stream);
    DkrInfoSource source = {.options = options,
                            .status = status,
                            .image = life ? life->image : NULL,
                            .workdir = life ? life->workdir : NULL,
                            .supervisor_reason = reason,
                            .transport = transport,
                            .transport_reason = why_stream};
    return dkr_info_sandbox(&source, inspect, stats);
}

char *dkr_backend_describe(const DkrSandboxOptions *options, const DkrLife *life,
                           const char *status)
{
    return make_info(options, life, status, NULL, NULL);
}

/* *known: NULL once it is found to be gone. */
static bool inspect_container(const DkrContext *context, const DkrSandboxOptions *options,
                              const DkrLife **known, const SprWait *wait, json_t **ret_inspect,
                              GError **error)
{
    for (;; *known = NULL) {
        g_autofree char *container = NULL;
        g_autoptr(GError) why = NULL;
        if (!locate(context, options, *known, wait, &container, NULL, error))
            return false;
        if (!container ||
            dkr_container_inspect(context->client, container, wait, ret_inspect, &why))
            return true;
        if (dkr_failure_status(why) != 404) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!*known)
            return true;
    }
}

/* One that ends meanwhile has none, which engines tell by a status or by an empty answer. */
static bool measure(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                    json_t **ret_stats, GError **error)
{
    g_autoptr(GError) why = NULL;
    const char *container = json_string_value(json_object_get(inspect, "Id"));
    const json_t *state = json_object_get(inspect, "State");
    if (!json_is_true(json_object_get(state, "Running")) ||
        dkr_container_stats(context->client, container, wait, ret_stats, &why) ||
        dkr_failure_status(why) != 0 || spr_error_is(why, SPR_E_IO, "bad-answer"))
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_backend_info(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const char *status, const SprWait *wait, char **ret_json,
                      GError **error)
{
    json_auto_t *inspect = NULL;
    json_auto_t *stats = NULL;
    const DkrLife *known = life;
    if (!inspect_container(context, options, &known, wait, &inspect, error) ||
        !measure(context, inspect, wait, &stats, error))
        return false;
    if (inspect)
        *ret_json = make_info(options, known, status, inspect, stats);
    return true;
}

bool dkr_backend_list(const DkrContext *context, void (*each)(void *ctx, const char *json),
                      void *ctx, const SprWait *wait, GError **error)
{
    json_auto_t *list = NULL;
    size_t i;
    json_t *element;
    if (!dkr_container_list(context->client, "mastra.sandbox=true", wait, &list, error))
        return false;
    json_array_foreach(list, i, element)
    {
        g_autofree char *json = dkr_info_listed(element);
        if (json)
            each(ctx, json);
    }
    return true;
}
