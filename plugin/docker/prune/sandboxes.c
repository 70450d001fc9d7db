/* Containers: sandboxes, and helpers that a host left behind. */
#include "prune/run.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/images.h"
#include "engine/volumes.h"
#include "prune/use.h"
#include "sandbox/connect.h"
#include "sandbox/layout.h"
#include "sandbox/placement.h"
#include "sandbox/socketplan.h"

#include <string.h>

#define END_MS 3000
#define TRIES_MOST 3

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

/* A container takes over the labels of its image, which may be a template of ours, or a copy of a
 * sandbox that somebody committed: then it is not ours. */
static bool is_inherited(DkrPruneRun *run, const json_t *labels, const char *image,
                         bool *ret_inherited, GError **error)
{
    json_auto_t *inspect = NULL;
    g_autoptr(GError) why = NULL;
    *ret_inherited = false;
    if (!dkr_image_inspect(run->context->client, image, run->wait, &inspect, &why)) {
        if (dkr_failure_status(why) == 404)
            return true;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    const json_t *of_image = json_object_get(json_object_get(inspect, "Config"), "Labels");
    const char *owner = text(of_image, DKR_LABEL_OWNER);
    *ret_inherited =
        *owner && strcmp(owner, text(labels, DKR_LABEL_OWNER)) == 0 &&
        strcmp(text(of_image, DKR_LABEL_CREATED), text(labels, DKR_LABEL_CREATED)) == 0;
    return true;
}

static bool has_labels(const DkrPruneRun *run, const json_t *labels)
{
    const DkrPairs *wanted = &run->report.options->labels;
    for (size_t i = 0; i < wanted->count; i++) {
        const json_t *value = json_object_get(labels, wanted->items[i].name);
        if (g_strcmp0(json_string_value(value), wanted->items[i].value) != 0)
            return false;
    }
    return true;
}

/* What keeps one that is not stopped from being removed: *ret_use, or NULL. */
static bool find_use(DkrPruneRun *run, const json_t *inspect, char **ret_use, GError **error)
{
    static const char *const idle[] = {"created", "exited", "dead", NULL};
    const char *status = text(json_object_get(inspect, "State"), "Status");
    *ret_use = NULL;
    if (g_strv_contains(idle, status))
        return true;
    if (strcmp(status, "running") == 0)
        return dkr_prune_find_use(run->context, inspect, run->report.options->dry_run.value,
                                  run->wait, ret_use, error);
    *ret_use = g_strdup_printf("it is %s, so that nobody can tell whether it is used", status);
    return true;
}

/* One that does not run stays when somebody starts it meanwhile. */
static bool remove_container(DkrPruneRun *run, const json_t *inspect, GError **error)
{
    bool runs = json_is_true(json_object_get(json_object_get(inspect, "State"), "Running"));
    return (runs ? dkr_container_remove : dkr_container_remove_idle)(
        run->context->client, text(inspect, "Id"), run->wait, error);
}

/* As a destroy does. */
static bool remove_belongings(DkrPruneRun *run, const json_t *inspect, const char *id,
                              GError **error)
{
    g_autofree char *volume = dkr_placement_own_volume(id);
    dkr_socket_forget(dkr_connect_socket_of(inspect));
    return dkr_volume_remove(run->context->client, volume, run->wait, error);
}

/* Somebody else removes it, or has. */
static bool is_going(const json_t *inspect)
{
    return strcmp(text(json_object_get(inspect, "State"), "Status"), "removing") == 0;
}

static bool take(DkrPruneRun *run, const DkrPruneFound *found, const char *container,
                 const char *image, char **ret_use, bool *ret_ours, GError **error)
{
    json_auto_t *inspect = NULL;
    bool inherited;
    if (!dkr_container_inspect(run->context->client, container, run->wait, &inspect, error))
        return false;
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    if (!is_inherited(run, labels, image, &inherited, error))
        return false;
    *ret_ours = !inherited && !is_going(inspect);
    if (!*ret_ours)
        return true;
    if (!find_use(run, inspect, ret_use, error))
        return false;
    if (*ret_use || run->report.options->dry_run.value)
        return true;
    if (!remove_container(run, inspect, error))
        return false;
    g_hash_table_add(run->removed, g_strdup(container));
    return !found->id || remove_belongings(run, inspect, found->id, error);
}

/* What fails on one that runs may be the first that is seen of its end: others stop or remove it.
 */
static bool has_ended(DkrPruneRun *run, const char *container, const GError *why)
{
    bool ended = false;
    g_autoptr(GError) asking = NULL;
    if (spr_error_is_own_wish(why))
        return false;
    return dkr_container_has_ended(run->context->client, container, END_MS, run->wait, &ended,
                                   &asking)
               ? ended
               : dkr_failure_status(asking) == 404;
}

static void consider(DkrPruneRun *run, const DkrPruneFound *found, const json_t *listed)
{
    const char *container = text(listed, "Id");
    g_autofree char *use = NULL;
    bool ours = true;
    if (!dkr_prune_is_due(&run->report, found))
        return;
    for (guint tries = 0;; tries++) {
        g_autoptr(GError) why = NULL;
        if (take(run, found, container, text(listed, "ImageID"), &use, &ours, &why)) {
            if (ours)
                dkr_prune_tell_done(&run->report, found, use);
            return;
        }
        bool removed = g_hash_table_contains(run->removed, container);
        if (!removed && dkr_failure_status(why) == 404) /* somebody was faster */
            return;
        if (removed || tries == TRIES_MOST || !has_ended(run, container, why)) {
            dkr_prune_tell_failed(&run->report, found, g_steal_pointer(&why));
            return;
        }
    }
}

static const char *name_of(const json_t *listed)
{
    const char *name = json_string_value(json_array_get(json_object_get(listed, "Names"), 0));
    return name ? name + (*name == '/') : text(listed, "Id");
}

bool dkr_prune_sandboxes(DkrPruneRun *run)
{
    size_t i;
    json_t *listed;
    json_array_foreach(run->containers, i, listed)
    {
        const json_t *labels = json_object_get(listed, "Labels");
        DkrPruneFound found = {.kind = DKR_PRUNE_SANDBOX, .name = name_of(listed)};
        found.id = json_string_value(json_object_get(labels, DKR_LABEL_ID));
        if (!found.id)
            found.kind = DKR_PRUNE_HELPER;
        dkr_prune_take_labels(&found, labels);
        if (!*text(labels, DKR_LABEL_OWNER) || (!found.id && !*text(labels, DKR_HELPER_LABEL)) ||
            !dkr_prune_options_mean(run->report.options, dkr_prune_kind_name(found.kind)) ||
            !has_labels(run, labels))
            continue;
        if (!spr_wait_check(run->wait, &run->report.failure))
            return false;
        consider(run, &found, listed);
    }
    return true;
}
