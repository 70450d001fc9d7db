#include "sandbox/create.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "options/names.h"
#include "sandbox/image.h"
#include "sandbox/layout.h"
#include "sandbox/owner.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"
#include "sandbox/spec.h"
#include "sandbox/startfail.h"
#include "sandbox/subpath.h"
#include "sandbox/warnings.h"

#include <string.h>

#define LABEL_ID "mastra.sandbox.id"
#define LABEL_OWNER "sprov.owner"
#define CLEANUP_LIMIT_MS (30 * 1000)
/* How long a main process that is not the keep-alive is watched for an end at once. */
#define WATCH_MS 500
/* An engine reserves a name some time before it lists the container that has it. */
#define UNSEEN_LIMIT_MS (10 * 1000)
#define UNSEEN_STEP_US (50 * 1000)
/* How long another's create and start is waited for altogether, and how often the name must have
 * been free in between before it is tried anew: the other one gave up. */
#define OTHER_LIMIT_MS (60 * 1000)
#define OTHER_FREE_TIMES 10
/* How long a container is looked for that was asked for and not answered. */
#define LOST_LIMIT_MS 2000

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

bool dkr_create_find(const DkrContext *context, const char *id, const SprWait *wait,
                     char **ret_container, char **ret_socket, GError **error)
{
    g_autofree char *label = g_strdup_printf(LABEL_ID "=%s", id);
    json_auto_t *list = NULL;
    if (!dkr_container_list(context->client, label, wait, &list, error))
        return false;
    json_t *first = NULL;
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element)
    {
        if (strcmp(text(json_object_get(element, "Labels"), LABEL_ID), id) != 0)
            continue;
        if (first)
            return spr_fail(error, SPR_E_CONFLICT, "duplicate-id",
                            "two containers carry the id \"%s\": %.12s and %.12s; remove one", id,
                            text(first, "Id"), text(element, "Id"));
        first = element;
    }
    *ret_container = first ? g_strdup(text(first, "Id")) : NULL;
    if (ret_socket)
        *ret_socket = g_strdup(
            json_string_value(json_object_get(json_object_get(first, "Labels"), DKR_SOCKET_LABEL)));
    return true;
}

/* ------------------------------------------------------------------------ running */

/* States that nothing but time, or somebody else, gets a container out of. */
static const struct {
    const char *status;
    SprErrorCode code;
    const char *reason;
    const char *says;
    bool passes;
} stuck[] = {
    {"removing", SPR_E_CONFLICT, "being-removed", "is being removed: start again when it is gone",
     true},
    {"restarting", SPR_E_NOT_READY, "restarting",
     "ends and is started by the engine again and again: look at what its main process prints",
     true},
    {"dead", SPR_E_CONFLICT, "dead", "is dead, the engine failed to remove it: destroy it", false},
};

static bool check_stuck(const char *status, const char *id, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(stuck); i++) {
        if (strcmp(status, stuck[i].status) != 0)
            continue;
        spr_fail(error, stuck[i].code, stuck[i].reason, "the container of \"%s\" %s", id,
                 stuck[i].says);
        if (stuck[i].passes)
            spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
        return false;
    }
    return true;
}

/* False with SPR_E_NOT_READY when its main process has ended already. */
static bool check_runs(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                       GError **error)
{
    const json_t *state = json_object_get(inspect, "State");
    if (json_is_true(json_object_get(state, "Running")))
        return true;
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    if (!check_stuck(text(state, "Status"), text(labels, LABEL_ID), error))
        return false;
    g_autofree char *output = dkr_container_last_output(context->client, text(inspect, "Id"), wait);
    const char *why = text(state, "Error");
    return spr_fail(error, SPR_E_NOT_READY, "main-process-ended",
                    "the sandbox's main process ended at once with code %d%s%s%s%s: give it a "
                    "\"command\" that stays",
                    (int)json_integer_value(json_object_get(state, "ExitCode")), *why ? "; " : "",
                    why, *output ? "; it printed: " : "", output);
}

static bool fail_start(GError *why, GError **error)
{
    g_autoptr(GError) owned = why;
    if (dkr_start_names_user(owned->message)) /* a plain 500 of the engine */
        return spr_fail(error, SPR_E_NOT_FOUND, "no-such-user",
                        "the container could not be started: %s", owned->message);
    spr_error_set_reason(&owned, "start-failed");
    g_propagate_prefixed_error(error, g_steal_pointer(&owned),
                               "the container could not be started: ");
    return false;
}

static bool start_and_look(const DkrContext *context, const char *container, bool watch,
                           const SprWait *wait, json_t **ret_inspect, GError **error)
{
    json_auto_t *inspect = NULL;
    GError *why = NULL;
    bool ended;
    if (!dkr_container_start(context->client, container, wait, &why))
        return fail_start(why, error);
    if (watch &&
        !dkr_container_has_ended(context->client, container, WATCH_MS, wait, &ended, error))
        return false;
    if (!dkr_container_inspect(context->client, container, wait, &inspect, error) ||
        !check_runs(context, inspect, wait, error))
        return false;
    *ret_inspect = g_steal_pointer(&inspect);
    return true;
}

static void warn(const DkrContext *context, const DkrSandboxOptions *options, const json_t *inspect,
                 bool made_now)
{
    g_auto(GStrv) lines = dkr_warnings(options, inspect, made_now);
    for (char **line = lines; *line; line++)
        spr_log(&context->log, SPR_LOG_WARNING, "options", "%s", *line);
}

/* "" from an engine, or a proxy before it, that refuses to tell. */
static bool ask_architecture(const DkrContext *context, const SprWait *wait,
                             const char **ret_architecture, GError **error)
{
    g_autoptr(GError) why = NULL;
    *ret_architecture = "";
    if (dkr_client_architecture(context->client, wait, ret_architecture, &why) ||
        dkr_failure_status(why) != 0)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* Whoever made it may not have come to fill the volume that its program is in. One of another build
 * is that build's to fill. */
static bool check_placement(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                            GError **error)
{
    json_t *mounts = json_object_get(inspect, "Mounts");
    const char *image = text(json_object_get(inspect, "Config"), "Image");
    const char *architecture;
    DkrPlacement placement = {0};
    size_t i;
    json_t *mount;
    if (!ask_architecture(context, wait, &architecture, error))
        return false;
    if (!spr_supervisor_program(architecture, &placement.program))
        return true;
    g_autofree char *shared = g_strconcat(DKR_RESERVED_VOLUME_PREFIX, placement.program.id, NULL);
    json_array_foreach(mounts, i, mount)
    {
        if (strcmp(text(mount, "Destination"), DKR_SUPERVISOR_BIN_DIRECTORY) != 0)
            continue;
        placement.volume = (char *)text(mount, "Name");
        placement.volume_is_own =
            g_str_has_prefix(placement.volume, DKR_RESERVED_VOLUME_PREFIX "own-");
        return (!placement.volume_is_own && strcmp(placement.volume, shared) != 0) ||
               dkr_placement_check(context, &placement, text(inspect, "Id"), image, wait, error);
    }
    return true;
}

/* One that the engine restarted may end at once again; it is said to run all the while. */
static bool check_stays(const DkrContext *context, const char *id, const json_t *inspect,
                        const SprWait *wait, GError **error)
{
    json_auto_t *later = NULL;
    int ready;
    if (json_integer_value(json_object_get(inspect, "RestartCount")) == 0)
        return true;
    if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + WATCH_MS * 1000, &ready, error) ||
        !dkr_container_inspect(context->client, text(inspect, "Id"), wait, &later, error))
        return false;
    const char *since = text(json_object_get(inspect, "State"), "StartedAt");
    const json_t *state = json_object_get(later, "State");
    bool stays = strcmp(text(state, "StartedAt"), since) == 0 &&
                 !json_is_true(json_object_get(state, "Restarting"));
    return stays || check_stuck("restarting", id, error);
}

/* Where the engine refuses, somebody else was faster: what it is now shows when it is looked at
 * anew, be it after a moment in which it is still called paused. */
static bool unpause(const DkrContext *context, const char *container, const SprWait *wait,
                    GError **error)
{
    if (dkr_container_unpause(context->client, container, wait, error))
        return true;
    if (error && dkr_failure_status(*error) != 0) {
        spr_error_set_reason(error, "not-resumed");
        spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    }
    return false;
}

/* The life of a container that was found running or was just started. */
static bool begin_life(const DkrContext *context, const DkrSandboxOptions *options,
                       const json_t *inspect, DkrLinkSocket *socket, const SprWait *wait,
                       DkrLife **ret_life, GError **error)
{
    g_autoptr(DkrLife) life = dkr_life_new(context, options, inspect, socket, wait, error);
    if (!life || (life->link && !dkr_link_settle(life->link, wait, error)))
        return false;
    *ret_life = g_steal_pointer(&life);
    return true;
}

static const char *socket_of(const json_t *inspect)
{
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    return json_string_value(json_object_get(labels, DKR_SOCKET_LABEL));
}

static bool adopt(const DkrContext *context, const DkrSandboxOptions *options,
                  const char *container, const SprWait *wait, DkrLife **ret_life, GError **error)
{
    json_auto_t *inspect = NULL;
    g_auto(DkrLinkSocket) socket = {0};
    if (!dkr_container_inspect(context->client, container, wait, &inspect, error))
        return false;
    const char *status = text(json_object_get(inspect, "State"), "Status");
    if (strcmp(status, "created") == 0 && !check_placement(context, inspect, wait, error))
        return false;
    if (strcmp(status, "paused") == 0 && !unpause(context, container, wait, error))
        return false;
    if (!check_stuck(status, options->id, error) ||
        !check_stays(context, options->id, inspect, wait, error))
        return false;
    if (strcmp(status, "exited") == 0 || strcmp(status, "created") == 0) {
        json_t *started;
        dkr_socket_plan_restore(context, options, socket_of(inspect), &socket);
        if (!start_and_look(context, container, false, wait, &started, error))
            return false;
        json_decref(inspect);
        inspect = started;
    }
    warn(context, options, inspect, false);
    return begin_life(context, options, inspect, &socket, wait, ret_life, error);
}

/* An engine lists a container some time before it knows it otherwise, and reserves its name even
 * earlier; and some states end by themselves. */
static bool may_pass(const GError *why)
{
    static const char *const reasons[] = {"being-removed", "restarting", "not-resumed", NULL};
    const char *reason = spr_error_extra(why)->reason;
    int status = dkr_failure_status(why); /* 409: others are about to remove it */
    return status == 404 || status == 409 || (reason && g_strv_contains(reasons, reason));
}

static bool wait_for_unseen(const SprWait *wait, GError **error)
{
    int ready;
    return spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + UNSEEN_STEP_US, &ready, error);
}

bool dkr_create_connect(const DkrContext *context, const DkrSandboxOptions *options,
                        const SprWait *wait, DkrLife **ret_life, GError **error)
{
    gint64 until_us = spr_deadline_after(UNSEEN_LIMIT_MS);
    for (;;) {
        g_autofree char *container = NULL;
        g_autoptr(GError) why = NULL;
        if (!dkr_create_find(context, options->id, wait, &container, NULL, error))
            return false;
        if (!container || adopt(context, options, container, wait, ret_life, &why))
            return true;
        if (!may_pass(why) || g_get_monotonic_time() >= until_us) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!wait_for_unseen(wait, error))
            return false;
    }
}

/* ----------------------------------------------------------------------- creating */

/* What one attempt to create needs beside the options. */
typedef struct {
    const DkrContext *context;
    const DkrSandboxOptions *options;
    const char *image;
    const char *template_workdir;
    const char *name;
    DkrPlacement *placement;
    DkrLinkSocket *socket;
    const SprWait *wait;
} Attempt;

/* Our own limit: the caller's time or token may be what ended the start. */
static void take_back(const Attempt *a, const char *container)
{
    SprWait wait = spr_wait_to_tidy(a->wait, CLEANUP_LIMIT_MS);
    g_autoptr(GError) error = NULL;
    if (!dkr_container_remove(a->context->client, container, &wait, &error))
        spr_log(&a->context->log, SPR_LOG_WARNING, "sandbox",
                "the container %.12s of a failed start could not be removed: %s", container,
                error->message);
    else if (a->placement->use && a->placement->volume_is_own)
        dkr_volume_remove(a->context->client, a->placement->volume, &wait, NULL);
}

typedef enum {
    NAME_FREE,
    NAME_OURS,   /* a container with this id has it */
    NAME_FOREIGN /* one of another sandbox, or of nobody */
} NameState;

static bool ask_name(const Attempt *a, NameState *ret_state, GError **error)
{
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_container_inspect(a->context->client, a->name, a->wait, &inspect, &why)) {
        *ret_state = NAME_FREE;
        if (dkr_failure_status(why) == 404)
            return true;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    *ret_state = strcmp(text(labels, LABEL_ID), a->options->id) == 0 ? NAME_OURS : NAME_FOREIGN;
    return true;
}

static bool fail_taken(const Attempt *a, NameState state, GError **error)
{
    if (state == NAME_FOREIGN)
        return spr_fail(error, SPR_E_EXISTS, "name-taken",
                        "the container name \"%s\" belongs to another container: choose another "
                        "\"name\" or \"id\"",
                        a->name);
    spr_fail(error, SPR_E_CONFLICT, "being-created",
             "another start has been making the container \"%s\" for %d s: start again later",
             a->name, OTHER_LIMIT_MS / 1000);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

/* The name is taken: somebody else makes the same sandbox at this moment, or it is another's. True
 * with *ret_life NULL when it seems to be free again. */
static bool join_other(const Attempt *a, gint64 until_us, DkrLife **ret_life, GError **error)
{
    for (guint times_free = 0; times_free < OTHER_FREE_TIMES;) {
        NameState state;
        if (!dkr_create_connect(a->context, a->options, a->wait, ret_life, error))
            return false;
        if (*ret_life)
            return true;
        if (!ask_name(a, &state, error))
            return false;
        if (state == NAME_FOREIGN || g_get_monotonic_time() >= until_us)
            return fail_taken(a, state, error);
        times_free += state == NAME_FREE;
        if (!wait_for_unseen(a->wait, error))
            return false;
    }
    return true;
}

static bool create_container(const Attempt *a, char **ret_container, GError **error)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *created = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    DkrSpecSupervisor supervisor = {.volume = a->placement->volume,
                                    .id = a->placement->program.id,
                                    .is_main = a->placement->is_main,
                                    .entrypoint = a->placement->entrypoint};
    if (a->socket->direct)
        supervisor.socket = dkr_direct_path(a->socket->direct);
    DkrSpecContext spec = {.image = a->image,
                           .workdir = dkr_sandbox_options_workdir(a->options, a->template_workdir),
                           .owner = dkr_owner(),
                           .version = a->context->version,
                           .created = created,
                           .supervisor = a->placement->use ? &supervisor : NULL};
    g_autofree char *body = dkr_spec_create_body(a->options, &spec, error);
    if (!body || !spr_wait_check(a->wait, error))
        return false;
    /* Once asked for, the container is made and its id is needed, whatever the token says. */
    SprWait uncancelled = spr_wait_for(-1);
    uncancelled.deadline_us = a->wait->deadline_us;
    return dkr_container_create(a->context->client, a->name, a->options->platform, body,
                                &uncancelled, ret_container, error);
}

static bool run_container(const Attempt *a, const char *container, DkrLife **ret_life,
                          GError **error)
{
    json_auto_t *created = NULL;
    json_auto_t *inspect = NULL;
    if (!dkr_container_inspect(a->context->client, container, a->wait, &created, error) ||
        !dkr_spec_verify(a->options, created, error)) /* before anything runs in it */
        return false;
    if ((a->placement->use &&
         !dkr_placement_check(a->context, a->placement, container, a->image, a->wait, error)) ||
        !start_and_look(a->context, container, a->options->command_is_set, a->wait, &inspect,
                        error)) {
        dkr_subpath_explain(a->context, a->options, a->image, error);
        return false;
    }
    warn(a->context, a->options, inspect, true);
    if (begin_life(a->context, a->options, inspect, a->socket, a->wait, ret_life, error))
        return true;
    dkr_socket_forget(socket_of(inspect));
    return false;
}

/* Whether the engine may have made what was asked for, or be about to. */
static bool is_in_doubt(const GError *why)
{
    return dkr_failure_status(why) == 0 && (why->code == SPR_E_IO || why->code == SPR_E_TIMEOUT);
}

/* The container of a create without an answer. One that runs is that of another handle. */
static void take_back_lost(const Attempt *a)
{
    SprWait wait = spr_wait_to_tidy(a->wait, LOST_LIMIT_MS);
    for (;;) {
        json_auto_t *inspect = NULL;
        g_autoptr(GError) why = NULL;
        int ready;
        if (dkr_container_inspect(a->context->client, a->name, &wait, &inspect, &why)) {
            json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
            json_t *state = json_object_get(inspect, "State");
            if (strcmp(text(labels, LABEL_ID), a->options->id) == 0 &&
                strcmp(text(labels, LABEL_OWNER), dkr_owner()) == 0 &&
                strcmp(text(state, "Status"), "created") == 0)
                take_back(a, text(inspect, "Id"));
            return;
        }
        if (dkr_failure_status(why) != 404 ||
            !spr_wait_poll(&wait, NULL, 0, g_get_monotonic_time() + UNSEEN_STEP_US, &ready, NULL))
            return;
    }
}

/* Makes it, or joins who does: then *ret_life is set and *ret_container is not. */
static bool create_or_join(const Attempt *a, char **ret_container, DkrLife **ret_life,
                           GError **error)
{
    gint64 until_us = spr_deadline_after(OTHER_LIMIT_MS);
    while (!*ret_container && !*ret_life) {
        g_autoptr(GError) why = NULL;
        if (create_container(a, ret_container, &why))
            return true;
        if (dkr_failure_status(why) != 409) {
            if (is_in_doubt(why))
                take_back_lost(a);
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!join_other(a, until_us, ret_life, error))
            return false;
    }
    return true;
}

/* The engine refused our start, and it runs: others adopted it, whose it is from now on. */
static bool is_others(const Attempt *a, const char *container, const GError *why)
{
    SprWait wait = spr_wait_to_tidy(a->wait, LOST_LIMIT_MS);
    json_auto_t *inspect = NULL;
    return dkr_failure_status(why) != 0 && spr_error_is(why, why->code, "start-failed") &&
           dkr_container_inspect(a->context->client, container, &wait, &inspect, NULL) &&
           json_is_true(json_object_get(json_object_get(inspect, "State"), "Running"));
}

/* One attempt, which leaves nothing when it fails. */
static bool attempt(const Attempt *a, DkrLife **ret_life, DkrStartOutcome *ret_outcome,
                    GError **error)
{
    g_autofree char *container = NULL;
    g_autoptr(GError) why = NULL;
    if (a->placement->use && !dkr_placement_prepare(a->context, a->placement, a->wait, error))
        return false;
    if (!create_or_join(a, &container, ret_life, error))
        return false;
    *ret_outcome = container ? DKR_START_CREATED : DKR_START_CONNECTED;
    if (!container || run_container(a, container, ret_life, &why))
        return true;
    if (!is_others(a, container, why))
        take_back(a, container);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* Failures that may be the supervisor's own doing. */
static bool may_do_without(const Attempt *a, const GError *why)
{
    if (!a->placement->use || strcmp(a->options->supervisor, "auto") != 0)
        return false;
    return spr_error_is(why, SPR_E_IO, "no-supervisor") ||
           (dkr_failure_status(why) != 0 && spr_error_is(why, why->code, "start-failed"));
}

/* Failures that the mount of the socket's folder may have made: the engine is elsewhere, or forbids
 * such mounts. */
static bool may_be_the_mount(const Attempt *a, const GError *why)
{
    int status = dkr_failure_status(why);
    if (!a->socket->direct || strcmp(a->options->transport, "auto") != 0 || status == 0)
        return false;
    g_autofree char *folder = g_path_get_dirname(dkr_direct_path(a->socket->direct));
    return status == 403 || strstr(why->message, folder) ||
           strstr(why->message, DKR_SUPERVISOR_HOST_DIRECTORY);
}

/* With all there is, then without what seems to be in the way. */
static bool attempt_all(const Attempt *a, DkrLife **ret_life, DkrStartOutcome *ret_outcome,
                        GError **error)
{
    g_autoptr(GError) why = NULL;
    if (attempt(a, ret_life, ret_outcome, &why))
        return true;
    if (may_be_the_mount(a, why)) {
        dkr_socket_plan_drop(a->socket);
        a->socket->reason = g_strdup_printf("the engine refused its mount: %s", why->message);
        g_clear_error(&why);
        g_autofree char *reason = g_strdup(a->socket->reason);
        if (attempt(a, ret_life, ret_outcome, &why)) {
            spr_log(&a->context->log, SPR_LOG_INFO, "supervisor", "by stream: %s", reason);
            dkr_runtime_refuse(a->context->runtime, reason);
            return true;
        }
    }
    if (may_do_without(a, why)) {
        spr_log(&a->context->log, SPR_LOG_WARNING, "supervisor", "trying without a supervisor: %s",
                why->message);
        a->placement->use = false;
        return attempt(a, ret_life, ret_outcome, error);
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_create_new(const DkrContext *context, const DkrSandboxOptions *options,
                    const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                    DkrStartOutcome *ret_outcome, GError **error)
{
    int api_minor;
    const char *architecture;
    g_autofree char *template_image = NULL;
    g_autofree char *template_workdir = NULL;
    g_autofree char *name = dkr_name_for_container(options->id, options->name);
    json_auto_t *image = NULL;
    g_auto(DkrPlacement) placement = {0};
    g_auto(DkrLinkSocket) socket = {0};
    if (!dkr_client_api_minor(context->client, wait, &api_minor, error) ||
        !dkr_spec_check_api(options, api_minor, error))
        return false;
    if (!options->image && !hooks->resolve_template(hooks->ctx, options, wait, &template_image,
                                                    &template_workdir, error))
        return false;
    Attempt a = {.context = context,
                 .options = options,
                 .image = template_image ? template_image : options->image,
                 .template_workdir = template_workdir,
                 .name = name,
                 .placement = &placement,
                 .socket = &socket,
                 .wait = wait};
    if (!dkr_image_ensure(context, options, a.image, hooks, wait, &image, error) ||
        !ask_architecture(context, wait, &architecture, error) ||
        !dkr_placement_decide(options, image, architecture, &placement, error) ||
        !dkr_socket_plan_new(context, options, &placement, &socket, error) ||
        !dkr_subpath_create(context, options, a.image, wait, error))
        return false;
    bool ok = attempt_all(&a, ret_life, ret_outcome, error);
    dkr_socket_plan_drop(&socket);
    return ok;
}
