#include "sandbox/create.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "options/names.h"
#include "sandbox/blame.h"
#include "sandbox/connect.h"
#include "sandbox/image.h"
#include "sandbox/isolation.h"
#include "sandbox/layout.h"
#include "supervised/owner.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"
#include "sandbox/spec.h"
#include "sandbox/subpath.h"
#include "sandbox/tmpfsmode.h"

#include <string.h>

#define CLEANUP_LIMIT_MS (30 * 1000)
/* How long another's create and start is waited for altogether, and how often the name must have
 * been free in between before it is tried anew: the other one gave up. */
#define OTHER_LIMIT_MS (60 * 1000)
#define OTHER_FREE_TIMES 10
/* How long a container is looked for that was asked for and not answered. */
#define LOST_LIMIT_MS 5000

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

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

/* The engine refused our start: if it runs all the same, others adopted it, whose it is from now
 * on. They may do so at any moment until it is removed. */
static bool may_be_others(const GError *why)
{
    return dkr_failure_status(why) != 0 && spr_error_is(why, why->code, "start-failed");
}

/* Until the container is gone others may start it, for whom its socket's folder has to be there. */
static void take_back_socket(const Attempt *a, const char *path, bool is_gone)
{
    if (!is_gone)
        g_clear_pointer(&a->socket->direct, dkr_direct_free);
    else if (!a->socket->direct) /* a life took it over, and failed */
        dkr_socket_forget(path);
}

/* Whether it is gone. Our own limit: the caller's time or token may be what ended the start. */
static bool take_back(const Attempt *a, const char *container, const GError *why)
{
    SprWait wait = dkr_client_wait_to_tidy(a->context->client, a->wait, CLEANUP_LIMIT_MS);
    g_autoptr(GError) error = NULL;
    bool others = may_be_others(why);
    bool ok = (others ? dkr_container_remove_idle : dkr_container_remove)(a->context->client,
                                                                          container, &wait, &error);
    if (others && error && error->code == SPR_E_CONFLICT)
        return false;
    if (!ok)
        spr_log(&a->context->log, SPR_LOG_WARNING, "sandbox",
                "the container %.12s of a failed start could not be removed: %s", container,
                error->message);
    else if (a->placement->use && a->placement->volume_is_own)
        dkr_volume_remove(a->context->client, a->placement->volume, &wait, NULL);
    return ok;
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
    *ret_state = strcmp(text(labels, DKR_LABEL_ID), a->options->id) == 0 ? NAME_OURS : NAME_FOREIGN;
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
        if (!dkr_connect(a->context, a->options, a->wait, ret_life, error))
            return false;
        if (*ret_life)
            return true;
        if (!ask_name(a, &state, error))
            return false;
        if (state == NAME_FOREIGN || g_get_monotonic_time() >= until_us)
            return fail_taken(a, state, error);
        times_free += state == NAME_FREE;
        if (!dkr_connect_wait_unseen(a->wait, error))
            return false;
    }
    return true;
}

static bool create_container(const Attempt *a, char **ret_container, GError **error)
{
    g_autofree char *created = dkr_owner_created();
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
    return body && spr_wait_check(a->wait, error) &&
           dkr_container_create(a->context->client, a->name, a->options->platform, body, a->wait,
                                ret_container, error);
}

/* As main process the supervisor fails with the start when it is not there. */
static bool start_once(const Attempt *a, const json_t *created, DkrLife **ret_life, GError **error)
{
    return dkr_connect_bring_up(a->context, a->options, created, true, a->socket, a->wait, ret_life,
                                error);
}

/* Engines name the program, the folder beside it, or only what the kernel said of the program. */
static bool names_volume(const GError *why)
{
    return strstr(why->message, DKR_SUPERVISOR_PROGRAM) ||
           strstr(why->message, DKR_SUPERVISOR_RUN_DIRECTORY) ||
           strstr(why->message, "exec format") || strstr(why->message, "exec user process");
}

/* The start failed of a program that was whole when it was last seen: whether it was not then, and
 * is now. Another host may have filled it meanwhile, or do so again. */
static bool refill(const Attempt *a, const char *container, const GError *why)
{
    bool filled = false;
    return dkr_client_answers(a->context->client, a->wait, NULL) &&
           dkr_placement_check(a->context, a->placement, container, a->image, a->wait, &filled,
                               NULL) &&
           (filled || names_volume(why));
}

static bool start_container(const Attempt *a, const json_t *created, DkrLife **ret_life,
                            GError **error)
{
    const char *container = text(created, "Id");
    bool known = a->placement->use && dkr_placement_is_known(a->context, a->placement);
    g_autoptr(GError) why = NULL;
    if (a->placement->use && !known &&
        !dkr_placement_check(a->context, a->placement, container, a->image, a->wait, NULL, error))
        return false;
    if (start_once(a, created, ret_life, &why))
        return true;
    if (a->placement->use && refill(a, container, why))
        return start_once(a, created, ret_life, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* On a network that leads nowhere engines leave them out without a word. */
static bool check_ports(const Attempt *a, const char *container, GError **error)
{
    json_auto_t *started = NULL;
    if (a->options->ports.count == 0)
        return true;
    if (!dkr_container_inspect(a->context->client, container, a->wait, &started, error))
        return false;
    const json_t *published = json_object_get(json_object_get(started, "NetworkSettings"), "Ports");
    for (size_t i = 0; i < a->options->ports.count; i++) {
        g_autofree char *port = dkr_sandbox_options_port(a->options->ports.items[i].name);
        if (json_array_size(json_object_get(published, port)) == 0)
            return spr_fail(error, SPR_E_UNSUPPORTED, "option-not-applied",
                            "the engine did not apply ports[\"%s\"]: it is not published on the "
                            "network \"%s\", which may be an internal one; choose another",
                            a->options->ports.items[i].name,
                            a->options->network ? a->options->network : "default");
    }
    return true;
}

static bool run_container(const Attempt *a, const char *container, DkrLife **ret_life,
                          GError **error)
{
    json_auto_t *created = NULL;
    g_autoptr(DkrLife) life = NULL;
    if (!dkr_container_inspect(a->context->client, container, a->wait, &created, error) ||
        !dkr_spec_verify(a->options, created, error)) /* before anything runs in it */
        return false;
    dkr_tmpfs_mode_prepare(a->context, created, a->wait);
    if (start_container(a, created, &life, error)) {
        if (!check_ports(a, container, error))
            return false;
        *ret_life = g_steal_pointer(&life);
        return true;
    }
    dkr_subpath_explain(a->context, a->options, a->image, a->wait, error);
    return false;
}

/* The container of a create without an answer. One that runs is that of another handle. */
static void take_back_lost(const Attempt *a, const GError *lost)
{
    SprWait wait = dkr_client_wait_to_tidy(a->context->client, a->wait, LOST_LIMIT_MS);
    for (;;) {
        json_auto_t *inspect = NULL;
        g_autoptr(GError) why = NULL;
        int ready;
        if (dkr_container_inspect(a->context->client, a->name, &wait, &inspect, &why)) {
            json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
            json_t *state = json_object_get(inspect, "State");
            if (strcmp(text(labels, DKR_LABEL_ID), a->options->id) == 0 &&
                strcmp(text(labels, DKR_LABEL_OWNER), dkr_owner()) == 0 &&
                strcmp(text(state, "Status"), "created") == 0)
                take_back_socket(a, NULL, take_back(a, text(inspect, "Id"), lost));
            return;
        }
        if (dkr_failure_status(why) != 404 ||
            !spr_wait_poll(&wait, NULL, 0, g_get_monotonic_time() + DKR_UNSEEN_STEP_US, &ready,
                           NULL))
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
            if (dkr_failure_is_in_doubt(why))
                take_back_lost(a, why);
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!join_other(a, until_us, ret_life, error))
            return false;
    }
    return true;
}

/* One attempt, which leaves nothing when it fails. */
static bool attempt(const Attempt *a, DkrLife **ret_life, DkrStartOutcome *ret_outcome,
                    GError **error)
{
    g_autofree char *container = NULL;
    g_autofree char *socket =
        a->socket->direct ? g_strdup(dkr_direct_path(a->socket->direct)) : NULL;
    g_autoptr(GError) why = NULL;
    if (a->placement->use && !dkr_placement_prepare(a->context, a->placement, a->wait, error))
        return false;
    bool made = create_or_join(a, &container, ret_life, &why);
    *ret_outcome = container ? DKR_START_CREATED : DKR_START_CONNECTED;
    if (made && (!container || run_container(a, container, ret_life, &why)))
        return true;
    if (container)
        take_back_socket(a, socket, take_back(a, container, why));
    dkr_blame_option(a->options, &why);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* Failures that may be the supervisor's own doing: an engine's that names what only it needs, or
 * mounts, and none that the options are to blame for. */
static bool may_do_without(const Attempt *a, const GError *why)
{
    if (!a->placement->use || strcmp(a->options->supervisor, "auto") != 0)
        return false;
    if (spr_error_is(why, SPR_E_IO, "no-supervisor"))
        return true;
    bool names_it = strstr(why->message, DKR_RESERVED_DIRECTORY) || strstr(why->message, "mount");
    return dkr_failure_status(why) != 0 && spr_error_is(why, why->code, "start-failed") && names_it;
}

/* Failures that the mount of the socket's folder may have made: the engine is elsewhere, or forbids
 * such mounts. */
static bool may_be_the_mount(const Attempt *a, const GError *why)
{
    int status = dkr_failure_status(why);
    if (!a->socket->direct || status == 0)
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
    bool is_mount = may_be_the_mount(a, why);
    if (is_mount && strcmp(a->options->transport, "socket") == 0)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-socket",
                        "transport: a socket is required, and there can be none: the engine "
                        "refused its mount: %s",
                        why->message);
    if (is_mount) {
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

/* All that comes after the image's name. */
static bool make(Attempt *a, const DkrStartHooks *hooks, DkrLife **ret_life,
                 DkrStartOutcome *ret_outcome, GError **error)
{
    const char *architecture;
    json_auto_t *image = NULL;
    g_auto(DkrPlacement) placement = {0};
    g_auto(DkrLinkSocket) socket = {0};
    a->placement = &placement;
    a->socket = &socket;
    if (!dkr_image_ensure(a->context, a->options, a->image, hooks, a->wait, &image, error)) {
        dkr_blame_option(a->options, error);
        return false;
    }
    if (!dkr_connect_architecture(a->context, a->wait, &architecture, error) ||
        !dkr_placement_decide(a->options, image, architecture, &placement, error) ||
        !dkr_socket_plan_new(a->context, a->options, &placement, &socket, error) ||
        !dkr_subpath_create(a->context, a->options, a->image, a->wait, error))
        return false;
    bool ok = attempt_all(a, ret_life, ret_outcome, error);
    dkr_socket_plan_drop(&socket);
    return ok;
}

/* Whether a template's image was there and somebody removed it meanwhile; *why says so then. */
static bool was_removed(const Attempt *a, const DkrStartHooks *hooks, GError **why)
{
    json_auto_t *image = NULL;
    g_autoptr(GError) missing = NULL;
    if (a->options->image || !spr_error_is(*why, SPR_E_NOT_FOUND, NULL) ||
        dkr_image_ensure(a->context, a->options, a->image, hooks, a->wait, &image, &missing) ||
        !spr_error_is(missing, SPR_E_NOT_FOUND, "image-not-found"))
        return false;
    g_clear_error(why);
    *why = g_steal_pointer(&missing);
    return true;
}

/* Of plan all but the image. */
static bool resolve_and_make(const Attempt *plan, const DkrStartHooks *hooks, DkrLife **ret_life,
                             DkrStartOutcome *ret_outcome, bool *ret_removed, GError **error)
{
    g_autofree char *image = NULL;
    g_autofree char *workdir = NULL;
    g_autoptr(GError) why = NULL;
    *ret_removed = false;
    if (!plan->options->image &&
        !hooks->resolve_template(hooks->ctx, plan->options, plan->wait, &image, &workdir, error))
        return false;
    Attempt a = *plan;
    a.image = image ? image : plan->options->image;
    a.template_workdir = workdir;
    if (make(&a, hooks, ret_life, ret_outcome, &why))
        return true;
    *ret_removed = was_removed(&a, hooks, &why);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_create_new(const DkrContext *context, const DkrSandboxOptions *options,
                    const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                    DkrStartOutcome *ret_outcome, GError **error)
{
    int api_minor;
    bool removed;
    g_autofree char *name = dkr_name_for_container(options->id, options->name);
    g_autoptr(GError) why = NULL;
    if (!dkr_client_api_minor(context->client, wait, &api_minor, error) ||
        !dkr_spec_check_api(options, api_minor, error) ||
        !dkr_isolation_check(context, options, wait, error))
        return false;
    const Attempt plan = {.context = context, .options = options, .name = name, .wait = wait};
    if (resolve_and_make(&plan, hooks, ret_life, ret_outcome, &removed, &why))
        return true;
    if (removed) {
        spr_log(&context->log, SPR_LOG_INFO, "template", "once more: %s", why->message);
        return resolve_and_make(&plan, hooks, ret_life, ret_outcome, &removed, error);
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
