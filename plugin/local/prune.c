/* What hosts left behind (glue/own.h): sandboxes, and folders of those that were never whole. */
#include "glue/own.h"

#include "base/error.h"
#include "local/launch.h"
#include "local/life.h"
#include "local/link.h"
#include "local/socket.h"
#include "local/tree.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VISIT_LIMIT_MS (5 * 1000)

typedef struct {
    const LocalStore *store;
    DkrPruneReport report;
    const SprWait *wait;
} Prune;

/* ---- sandboxes */

/* Who uses one that runs: *ret_use, or NULL. */
static bool find_use(const LocalRecord *record, const char *folder, bool only_tells,
                     const SprWait *wait, char **ret_use, GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    g_autoptr(GError) why = NULL;
    SprWait limited = spr_wait_within(wait, VISIT_LIMIT_MS);
    guint64 uses = 0;
    int process = local_record_open_process(record);
    if (process < 0)
        return true;
    close(process);
    if (!local_link_check_paused(record->pid, NULL)) {
        *ret_use = g_strdup("it is paused, so that nobody can tell whether it is used");
        return true;
    }
    if (local_socket_visit(folder, record->pid, &limited, &supervisor, &why) &&
        spr_supervisor_retire(supervisor, only_tells, &limited, &uses, &why)) {
        if (uses > 0)
            *ret_use = g_strdup_printf(
                "it is used: connections, commands and processes: %" G_GUINT64_FORMAT, uses);
        return true;
    }
    if (!spr_wait_check(wait, error))
        return false;
    *ret_use = g_strdup_printf("nobody can tell whether it is used: %s", why->message);
    return true;
}

static bool end_and_remove(const Prune *prune, LocalRecord *record, const char *folder,
                           GError **error)
{
    return local_launch_end(record, folder, prune->wait, error) &&
           local_store_remove(prune->store, record->id, error);
}

/* *ret_there: it was still the same when nobody else could change it. */
static bool take_sandbox(const Prune *prune, const LocalRecord *seen, bool *ret_there,
                         char **ret_use, GError **error)
{
    g_autofree char *folder = local_store_folder(prune->store, seen->id);
    g_autoptr(LocalRecord) record = NULL;
    int lock;
    if (!local_store_lock(prune->store, seen->id, prune->wait, &lock, error))
        return false;
    bool ok = local_store_read(prune->store, seen->id, &record, error);
    *ret_there = ok && record && g_strcmp0(record->created, seen->created) == 0;
    bool only_tells = prune->report.options->dry_run.value;
    ok = ok && (!*ret_there || find_use(record, folder, only_tells, prune->wait, ret_use, error));
    if (ok && *ret_there && !*ret_use && !only_tells)
        ok = end_and_remove(prune, record, folder, error);
    local_store_unlock(prune->store, seen->id, lock);
    return ok;
}

static bool has_labels(const DkrPairs *wanted, const DkrPairs *labels)
{
    for (size_t i = 0; i < wanted->count; i++) {
        bool found = false;
        for (size_t k = 0; k < labels->count && !found; k++)
            found = strcmp(labels->items[k].name, wanted->items[i].name) == 0 &&
                    g_strcmp0(labels->items[k].value, wanted->items[i].value) == 0;
        if (!found)
            return false;
    }
    return true;
}

static void consider(Prune *prune, const LocalRecord *record)
{
    DkrPruneFound found = {.kind = DKR_PRUNE_SANDBOX,
                           .name = record->name ? record->name : record->id,
                           .id = record->id};
    g_autofree char *use = NULL;
    g_autoptr(GError) why = NULL;
    bool there = false;
    dkr_prune_take_origin(&found, record->created, record->owner);
    if (!has_labels(&prune->report.options->labels, &record->labels) ||
        !dkr_prune_is_due(&prune->report, &found))
        return;
    if (!take_sandbox(prune, record, &there, &use, &why))
        dkr_prune_tell_failed(&prune->report, &found, g_steal_pointer(&why));
    else if (there)
        dkr_prune_tell_done(&prune->report, &found, use);
}

static void note_id(void *ctx, const LocalRecord *record)
{
    g_ptr_array_add(ctx, g_strdup(record->id));
}

static bool prune_sandboxes(Prune *prune)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    local_store_each(prune->store, note_id, ids);
    for (guint i = 0; i < ids->len; i++) {
        g_autoptr(LocalRecord) record = NULL;
        if (!spr_wait_check(prune->wait, prune->report.failure ? NULL : &prune->report.failure))
            return false;
        if (local_store_read(prune->store, ids->pdata[i], &record, NULL) && record)
            consider(prune, record);
    }
    return true;
}

/* ---- folders without a record */

static bool take_folder(const Prune *prune, const char *folder, bool *ret_there, GError **error)
{
    g_autoptr(LocalRecord) nobody = g_new0(LocalRecord, 1);
    int lock;
    if (!local_store_lock_folder(prune->store, folder, prune->wait, &lock, error))
        return false;
    *ret_there = local_store_is_debris(folder);
    bool ok =
        !*ret_there || prune->report.options->dry_run.value ||
        (local_launch_end(nobody, folder, prune->wait, error) && local_tree_remove(folder, error));
    local_store_unlock_folder(folder, lock);
    return ok;
}

static bool prune_folders(Prune *prune)
{
    g_auto(GStrv) folders = local_store_debris(prune->store);
    for (char **folder = folders; *folder; folder++) {
        DkrPruneFound found = {.kind = DKR_PRUNE_FOLDER, .name = *folder};
        g_autoptr(GError) why = NULL;
        struct stat st;
        bool there = false;
        if (!spr_wait_check(prune->wait, prune->report.failure ? NULL : &prune->report.failure))
            return false;
        if (stat(*folder, &st) != 0)
            continue;
        found.age_ms = MAX(g_get_real_time() / 1000 - st.st_mtime * 1000, 0);
        if (!dkr_prune_is_due(&prune->report, &found))
            continue;
        if (!take_folder(prune, *folder, &there, &why))
            dkr_prune_tell_failed(&prune->report, &found, g_steal_pointer(&why));
        else if (there)
            dkr_prune_tell_done(&prune->report, &found, NULL);
    }
    return true;
}

static bool means(const Prune *prune, DkrPruneKind kind)
{
    return dkr_prune_options_mean(prune->report.options, dkr_prune_kind_name(kind));
}

bool glue_own_prune(GlueCall *gc, const DkrPruneOptions *options, DkrPruneTellFn tell, void *ctx)
{
    Prune prune = {.store = gc->provider->context->store,
                   .report = {options, tell, ctx, NULL},
                   .wait = &gc->wait};
    bool ok = (!means(&prune, DKR_PRUNE_SANDBOX) || prune_sandboxes(&prune)) &&
              (!means(&prune, DKR_PRUNE_FOLDER) || prune_folders(&prune));
    gc->failure = prune.report.failure;
    return ok && !gc->failure;
}
