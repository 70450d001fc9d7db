#include "prune/run.h"

#include "engine/containers.h"

void dkr_prune_take_labels(DkrPruneFound *found, const json_t *labels)
{
    dkr_prune_take_origin(found, json_string_value(json_object_get(labels, DKR_LABEL_CREATED)),
                          json_string_value(json_object_get(labels, DKR_LABEL_OWNER)));
}

static bool means(const DkrPruneRun *run, DkrPruneKind kind)
{
    return dkr_prune_options_mean(run->report.options, dkr_prune_kind_name(kind));
}

/* Folders are looked for before the containers: one that is made meanwhile is not taken for one
 * without a container. */
static bool prune_all(DkrPruneRun *run)
{
    g_auto(GStrv) folders = dkr_runtime_folders(run->context->runtime);
    if (!dkr_container_list_all(run->context->client, run->wait, &run->containers,
                                &run->report.failure))
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
    DkrPruneRun run = {
        .context = context, .report = {options, tell_fn, tell_ctx, NULL}, .wait = wait};
    run.removed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    prune_all(&run);
    g_hash_table_unref(run.removed);
    json_decref(run.containers);
    if (!run.report.failure)
        return true;
    g_propagate_error(error, run.report.failure);
    return false;
}
