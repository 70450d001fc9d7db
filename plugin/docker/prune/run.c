#include "prune/run.h"

#include "base/error.h"
#include "engine/containers.h"
#include "options/json.h"

/* ------------------------------------------------------------------------------- telling */

static const char *const owner_names[] = {
    [DKR_OWNER_UNKNOWN] = "unknown", [DKR_OWNER_LIVES] = "lives", [DKR_OWNER_GONE] = "gone"};

void dkr_prune_take_labels(DkrPruneFound *found, const json_t *labels)
{
    found->created = json_string_value(json_object_get(labels, DKR_LABEL_CREATED));
    found->owner = dkr_owner_state(json_string_value(json_object_get(labels, DKR_LABEL_OWNER)));
    g_autoptr(GDateTime) then =
        found->created ? g_date_time_new_from_iso8601(found->created, NULL) : NULL;
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    found->age_ms = then ? MAX(g_date_time_difference(now, then) / 1000, 0) : 0;
}

static void tell(DkrPruneRun *run, const DkrPruneFound *found, bool removed, const char *reason,
                 const char *message)
{
    json_auto_t *object = json_pack(
        "{s:s, s:s, s:s*, s:s*, s:I, s:b, s:s*, s:s*}", "kind", dkr_prune_kind_name(found->kind),
        "name", found->name, "id", found->id, "createdAt", found->created, "ageMs",
        (json_int_t)found->age_ms, "removed", removed, "reason", reason, "message", message);
    if (object && found->kind != DKR_PRUNE_FOLDER)
        json_object_set_new(object, "owner", json_string(owner_names[found->owner]));
    g_autofree char *text = object ? dkr_json_to_text(object) : NULL;
    if (text)
        run->tell(run->tell_ctx, text);
}

bool dkr_prune_is_due(DkrPruneRun *run, const DkrPruneFound *found)
{
    switch (dkr_prune_judge(run->options, found->kind, found->owner, found->age_ms)) {
    case DKR_PRUNE_LEAVE:
        return false;
    case DKR_PRUNE_OWNED:
        tell(run, found, false, "owned", "the host that made it still runs");
        return false;
    default:
        return true;
    }
}

void dkr_prune_tell_done(DkrPruneRun *run, const DkrPruneFound *found, const char *keeps)
{
    bool removed = !keeps && !run->options->dry_run.value;
    tell(run, found, removed, keeps ? "in-use" : removed ? NULL : "dry-run", keeps);
}

void dkr_prune_tell_failed(DkrPruneRun *run, const DkrPruneFound *found, GError *why)
{
    g_autoptr(GError) owned = why;
    if (owned->code == SPR_E_CONFLICT) {
        tell(run, found, false, "in-use", owned->message);
        return;
    }
    const char *reason = spr_error_extra(owned)->reason;
    tell(run, found, false, reason ? reason : "failed", owned->message);
    if (run->failure)
        return;
    run->failure = g_steal_pointer(&owned);
    g_prefix_error(&run->failure,
                   "%s \"%s\" could not be removed: ", dkr_prune_kind_name(found->kind),
                   found->name);
}

/* ------------------------------------------------------------------------------ the whole */

static bool means(const DkrPruneRun *run, DkrPruneKind kind)
{
    return dkr_prune_options_mean(run->options, dkr_prune_kind_name(kind));
}

/* Folders are looked for before the containers: one that is made meanwhile is not taken for one
 * without a container. */
static bool prune_all(DkrPruneRun *run)
{
    g_auto(GStrv) folders = dkr_runtime_folders(run->context->runtime);
    if (!dkr_container_list_all(run->context->client, run->wait, &run->containers, &run->failure))
        return false;
    return ((!means(run, DKR_PRUNE_SANDBOX) && !means(run, DKR_PRUNE_HELPER)) ||
            dkr_prune_sandboxes(run)) &&
           (!means(run, DKR_PRUNE_FOLDER) || dkr_prune_folders(run, folders)) &&
           (!means(run, DKR_PRUNE_VOLUME) || dkr_prune_volumes(run)) &&
           (!means(run, DKR_PRUNE_TEMPLATE) || dkr_prune_templates(run));
}

bool dkr_prune(const DkrContext *context, const DkrPruneOptions *options, const SprWait *wait,
               DkrPruneTellFn tell_fn, void *tell_ctx, GError **error)
{
    DkrPruneRun run = {.context = context,
                       .options = options,
                       .wait = wait,
                       .tell = tell_fn,
                       .tell_ctx = tell_ctx};
    run.removed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    prune_all(&run);
    g_hash_table_unref(run.removed);
    json_decref(run.containers);
    if (!run.failure)
        return true;
    g_propagate_error(error, run.failure);
    return false;
}
