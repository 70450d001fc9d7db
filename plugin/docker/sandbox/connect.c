#include "sandbox/connect.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/images.h"
#include "sandbox/blame.h"
#include "sandbox/layout.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"
#include "sandbox/spec_normal.h"
#include "sandbox/startfail.h"
#include "sandbox/tmpfsmode.h"
#include "sandbox/warnings.h"

#include <string.h>

/* How long a main process is watched for an end at once: longer on a machine that was slow to start
 * it, and would be slow to end it. */
#define WATCH_MS 500
#define WATCH_MOST_MS 5000
/* An engine reserves a name some time before it lists the container that has it. */
#define UNSEEN_LIMIT_MS (10 * 1000)

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

/* Also said of what is gone: 20.10 may list a container for ever that others removed while it
 * ended. */
static bool is_going(const json_t *element)
{
    return strcmp(text(element, "State"), "removing") == 0;
}

static bool fail_duplicate(const char *id, const GPtrArray *found, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < found->len; i++)
        g_string_append_printf(names, "%s%.12s",
                               i == 0               ? ""
                               : i + 1 < found->len ? ", "
                                                    : " and ",
                               text(found->pdata[i], "Id"));
    return spr_fail(error, SPR_E_CONFLICT, "duplicate-id",
                    "%u containers carry the id \"%s\": %s; remove all but one", found->len, id,
                    names->str);
}

/* *ret_found: of *ret_list, or NULL. One that is going counts where there is no other. */
static bool find_listed(const DkrContext *context, const char *id, const SprWait *wait,
                        json_t **ret_list, const json_t **ret_found, GError **error)
{
    g_autofree char *label = g_strdup_printf(DKR_LABEL_ID "=%s", id);
    json_auto_t *list = NULL;
    if (!dkr_container_list(context->client, label, wait, &list, error))
        return false;
    g_autoptr(GPtrArray) there = g_ptr_array_new();
    const json_t *going = NULL;
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element)
    {
        if (strcmp(text(json_object_get(element, "Labels"), DKR_LABEL_ID), id) != 0)
            continue;
        if (is_going(element))
            going = element;
        else
            g_ptr_array_add(there, element);
    }
    if (there->len > 1)
        return fail_duplicate(id, there, error);
    *ret_found = there->len == 1 ? there->pdata[0] : going;
    *ret_list = g_steal_pointer(&list);
    return true;
}

bool dkr_connect_find(const DkrContext *context, const char *id, const SprWait *wait,
                      char **ret_container, char **ret_socket, GError **error)
{
    json_auto_t *list = NULL;
    const json_t *found;
    if (!find_listed(context, id, wait, &list, &found, error))
        return false;
    *ret_container = found ? g_strdup(text(found, "Id")) : NULL;
    if (ret_socket)
        *ret_socket = g_strdup(
            json_string_value(json_object_get(json_object_get(found, "Labels"), DKR_SOCKET_LABEL)));
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

/* Started again by the engine since somebody started it, which is said to run all the while. */
static bool restarts(const json_t *inspect)
{
    return json_is_true(json_object_get(json_object_get(inspect, "State"), "Restarting")) ||
           json_integer_value(json_object_get(inspect, "RestartCount")) > 0;
}

/* False with SPR_E_NOT_READY when its main process has ended already. */
static bool check_runs(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                       GError **error)
{
    const json_t *state = json_object_get(inspect, "State");
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    bool runs = json_is_true(json_object_get(state, "Running"));
    const char *status = runs && restarts(inspect) ? "restarting" : text(state, "Status");
    if (!check_stuck(status, text(labels, DKR_LABEL_ID), error))
        return false;
    if (runs)
        return true;
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
    if (dkr_start_names_user(owned->message)) { /* a plain 500 of the engine */
        spr_fail(error, SPR_E_NOT_FOUND, "no-such-user", "the container could not be started: %s",
                 owned->message);
        spr_error_set_native(error, dkr_failure_status(owned));
        return false;
    }
    spr_error_set_reason(&owned, "start-failed");
    g_propagate_prefixed_error(error, g_steal_pointer(&owned),
                               "the container could not be started: ");
    return false;
}

/* How it is known that the main process does not end at once. */
typedef enum {
    STAYS_FOR_SURE,  /* the keep-alive with nothing before it: the supervisor's own, or sleep */
    STAYS_WHEN_SEEN, /* an entrypoint before it, which becomes it, as the supervisor can tell */
    STAYS_PERHAPS
} Stay;

#define KEEP_ALIVE_WORDS 2

static Stay stay_of(const json_t *inspect)
{
    json_t *args = json_object_get(inspect, "Args");
    size_t count = json_array_size(args);
    const char *last = json_string_value(json_array_get(args, count - 1)) ?: "";
    const char *before = json_string_value(json_array_get(args, count - 2)) ?: "";
    if (dkr_life_only_stays(inspect))
        return STAYS_FOR_SURE;
    bool is_seen = strcmp(text(inspect, "Path"), DKR_SUPERVISOR_PROGRAM) == 0 &&
                   strcmp(before, "sleep") == 0 && strcmp(last, "infinity") == 0;
    return is_seen ? STAYS_WHEN_SEEN : STAYS_PERHAPS;
}

/* Until then, and what it is after that. */
static bool watch(const DkrContext *context, const char *container, gint64 until_us,
                  const SprWait *wait, json_t **ret_inspect, GError **error)
{
    gint64 left_ms = (until_us - g_get_monotonic_time()) / 1000;
    bool ended;
    json_auto_t *now = NULL;
    if ((left_ms > 0 &&
         !dkr_container_has_ended(context->client, container, left_ms, wait, &ended, error)) ||
        !dkr_container_inspect(context->client, container, wait, &now, error) ||
        !check_runs(context, now, wait, error))
        return false;
    *ret_inspect = g_steal_pointer(&now);
    return true;
}

static void warn(const DkrContext *context, const DkrSandboxOptions *options, const json_t *inspect,
                 const DkrSpecImages *images, bool made_now)
{
    g_auto(GStrv) lines = dkr_warnings(options, inspect, images, made_now);
    for (char **line = lines; *line; line++)
        spr_log(&context->log, SPR_LOG_WARNING, "options", "%s", *line);
}

/* Of a container that was just started: whether it stays where that is not certain yet. */
static bool check_stay(const DkrContext *context, const DkrLife *life, gint64 until_us,
                       const SprWait *wait, GError **error)
{
    gint64 left_ms = (until_us - g_get_monotonic_time()) / 1000;
    json_auto_t *later = NULL;
    return (life->link && left_ms > 0 &&
            dkr_link_main_rests(life->link, KEEP_ALIVE_WORDS, left_ms, wait)) ||
           watch(context, life->container, until_us, wait, &later, error);
}

/* One that ran with the right mode before is not kept from running again. */
static bool settle_modes(const DkrContext *context, const json_t *inspect, bool made_now,
                         const DkrLife *life, const SprWait *wait, GError **error)
{
    g_autoptr(GError) why = NULL;
    if ((!made_now && dkr_tmpfs_mode_is_obeyed(context, wait)) ||
        dkr_tmpfs_mode_settle(context, inspect, life, wait, &why))
        return true;
    if (!made_now && spr_error_is(why, SPR_E_UNSUPPORTED, NULL)) {
        spr_log(&context->log, SPR_LOG_WARNING, "options", "since this start: %s", why->message);
        return true;
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_connect_bring_up(const DkrContext *context, const DkrSandboxOptions *options,
                          const json_t *inspect, bool made_now, DkrLinkSocket *socket,
                          const SprWait *wait, DkrLife **ret_life, GError **error)
{
    const char *container = text(inspect, "Id");
    Stay stay = stay_of(inspect);
    json_auto_t *started = NULL;
    g_autoptr(DkrLife) life = NULL;
    GError *why = NULL;
    gint64 since_us = g_get_monotonic_time();
    if (!dkr_container_start(context->client, container, wait, &why))
        return fail_start(why, error);
    gint64 now_us = g_get_monotonic_time();
    gint64 until_us =
        now_us + 1000 * CLAMP((now_us - since_us) / 1000, WATCH_MS, (gint64)WATCH_MOST_MS);
    if (!watch(context, container, stay == STAYS_PERHAPS ? until_us : now_us, wait, &started,
               error))
        return false;
    if (made_now)
        warn(context, options, started, NULL, true);
    life = dkr_life_new(context, options, started, socket, wait, error);
    if (!life || (stay == STAYS_WHEN_SEEN && !check_stay(context, life, until_us, wait, error)) ||
        (life->link && !dkr_link_settle(life->link, wait, error)) ||
        !settle_modes(context, started, made_now, life, wait, error))
        return false;
    *ret_life = g_steal_pointer(&life);
    return true;
}

bool dkr_connect_architecture(const DkrContext *context, const SprWait *wait,
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
    if (!dkr_connect_architecture(context, wait, &architecture, error))
        return false;
    if (!spr_supervisor_program(architecture, &placement.program))
        return true;
    g_autofree char *shared = g_strconcat(DKR_RESERVED_VOLUME_PREFIX, placement.program.id, NULL);
    json_array_foreach(mounts, i, mount)
    {
        if (strcmp(text(mount, "Destination"), DKR_SUPERVISOR_DIRECTORY) != 0)
            continue;
        placement.volume = (char *)text(mount, "Name");
        placement.volume_is_own =
            g_str_has_prefix(placement.volume, DKR_RESERVED_VOLUME_PREFIX "own-");
        return (!placement.volume_is_own && strcmp(placement.volume, shared) != 0) ||
               dkr_placement_check(context, &placement, text(inspect, "Id"), image, wait, NULL,
                                   error);
    }
    return true;
}

/* One that the engine restarted may end at once again. */
static bool check_stays(const DkrContext *context, const char *id, const json_t *inspect,
                        const SprWait *wait, GError **error)
{
    json_auto_t *later = NULL;
    int ready;
    if (!restarts(inspect))
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

const char *dkr_connect_socket_of(const json_t *inspect)
{
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    return json_string_value(json_object_get(labels, DKR_SOCKET_LABEL));
}

/* In its list an engine calls a container's image by its id once the name leads to none, or to
 * another: only then, and where names differ, is anything to be asked. */
static bool is_image_in_doubt(const json_t *element, const json_t *inspect, const char *asked)
{
    const char *made_of = text(json_object_get(inspect, "Config"), "Image");
    g_autofree char *normal = dkr_normal_image(asked);
    g_autofree char *has = dkr_normal_image(made_of);
    return strcmp(normal, has) != 0 || strcmp(text(element, "Image"), made_of) != 0;
}

/* What the engine does not tell stays unknown. */
static void warn_of_differences(const DkrContext *context, const DkrSandboxOptions *options,
                                const json_t *element, const json_t *inspect, const SprWait *wait)
{
    const char *asked = dkr_spec_asked_image(options);
    json_auto_t *now = NULL;
    json_auto_t *made_of = NULL;
    if (asked && is_image_in_doubt(element, inspect, asked))
        dkr_image_inspect(context->client, asked, wait, &now, NULL);
    if (options->platform)
        dkr_image_inspect(context->client, text(inspect, "Image"), wait, &made_of, NULL);
    DkrSpecImages images = {.asked_id = json_string_value(json_object_get(now, "Id")),
                            .image = made_of};
    warn(context, options, inspect, &images, false);
}

/* element: of the engine's list. */
static bool adopt(const DkrContext *context, const DkrSandboxOptions *options,
                  const json_t *element, const SprWait *wait, DkrLife **ret_life, GError **error)
{
    const char *container = text(element, "Id");
    json_auto_t *inspect = NULL;
    g_auto(DkrLinkSocket) socket = {0};
    if (!dkr_container_inspect(context->client, container, wait, &inspect, error))
        return false;
    const char *status = text(json_object_get(inspect, "State"), "Status");
    bool starts = strcmp(status, "exited") == 0 || strcmp(status, "created") == 0;
    /* First of all: an engine that misses what is to be mounted says that any file is missing. */
    if (starts)
        dkr_socket_plan_restore(context, options, dkr_connect_socket_of(inspect), &socket);
    if (strcmp(status, "created") == 0 && !check_placement(context, inspect, wait, error))
        return false;
    if (strcmp(status, "paused") == 0 && !unpause(context, container, wait, error))
        return false;
    if (!check_stuck(status, options->id, error) ||
        !check_stays(context, options->id, inspect, wait, error))
        return false;
    g_autoptr(DkrLife) life = NULL;
    if (starts &&
        !dkr_connect_bring_up(context, options, inspect, false, &socket, wait, &life, error)) {
        dkr_blame_option(options, error);
        return false;
    }
    life = life ? g_steal_pointer(&life)
                : dkr_life_new(context, options, inspect, &socket, wait, error);
    if (!life || (!starts && life->link && !dkr_link_settle(life->link, wait, error)))
        return false;
    warn_of_differences(context, options, element, inspect, wait);
    *ret_life = g_steal_pointer(&life);
    return true;
}

/* An engine lists a container some time before it knows it otherwise, and reserves its name even
 * earlier; and some states end by themselves: one that is dead is so as well in the last moment of
 * its removal. */
static bool may_pass(const GError *why)
{
    static const char *const reasons[] = {"being-removed", "dead", "restarting", "not-resumed",
                                          NULL};
    const char *reason = spr_error_extra(why)->reason;
    int status = dkr_failure_status(why); /* 409: others are about to remove it */
    return status == 404 || status == 409 || (reason && g_strv_contains(reasons, reason));
}

bool dkr_connect_wait_unseen(const SprWait *wait, GError **error)
{
    int ready;
    return spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + DKR_UNSEEN_STEP_US, &ready, error);
}

bool dkr_connect(const DkrContext *context, const DkrSandboxOptions *options, const SprWait *wait,
                 DkrLife **ret_life, GError **error)
{
    gint64 until_us = spr_deadline_after(UNSEEN_LIMIT_MS);
    for (;;) {
        json_auto_t *list = NULL;
        const json_t *found;
        g_autoptr(GError) why = NULL;
        if (!find_listed(context, options->id, wait, &list, &found, error))
            return false;
        if (!found || adopt(context, options, found, wait, ret_life, &why) ||
            (is_going(found) && dkr_failure_status(why) == 404))
            return true;
        if (!may_pass(why) || g_get_monotonic_time() >= until_us) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!dkr_connect_wait_unseen(wait, error))
            return false;
    }
}
