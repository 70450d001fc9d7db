/* What runs the sandboxes of this provider: processes of this machine (supervised/backend.h). */
#include "supervised/backend.h"

#include "base/error.h"
#include "local/differences.h"
#include "local/info.h"
#include "local/launch.h"
#include "local/life.h"
#include "local/link.h"
#include "local/plan.h"
#include "local/stray.h"
#include "supervised/owner.h"

#include <string.h>
#include <unistd.h>

#define RFC3339_UTC "%Y-%m-%dT%H:%M:%SZ"

DkrLifeState dkr_backend_ask(const DkrContext *context, const DkrLife *life, const SprWait *wait,
                             GError **error)
{
    return local_life_is_over(life) ? DKR_LIFE_OVER : DKR_LIFE_RUNS;
}

DkrLifeState dkr_backend_judge(const DkrContext *context, const DkrLife *life,
                               const GError *failure, const SprWait *wait)
{
    return spr_error_is(failure, SPR_E_IO, NULL) && local_life_ends(life) ? DKR_LIFE_OVER
                                                                          : DKR_LIFE_RUNS;
}

/* ------------------------------------------------------------------------------ records */

static void copy_pairs(const DkrPairs *from, DkrPairs *to)
{
    to->items = g_new0(DkrPair, from->count);
    to->count = from->count;
    for (size_t i = 0; i < from->count; i++)
        to->items[i] = (DkrPair){g_strdup(from->items[i].name), g_strdup(from->items[i].value)};
}

static LocalRecord *new_record(const DkrSandboxOptions *options, const char *folder)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    LocalRecord *record = g_new0(LocalRecord, 1);
    record->id = g_strdup(options->id);
    record->name = g_strdup(options->name);
    record->created = g_date_time_format(now, RFC3339_UTC);
    record->owner = g_strdup(dkr_owner());
    record->isolation = g_strdup(options->isolation);
    record->network = g_strdup(options->network);
    record->hostname = g_strdup(options->hostname);
    record->workdir = local_plan_workdir(options, folder);
    record->memory = options->memory.value;
    record->pids = options->pids_limit.value;
    copy_pairs(&options->labels, &record->labels);
    copy_pairs(&options->env, &record->env);
    local_mounts_copy(&options->mounts, &record->mounts);
    return record;
}

/* Whoever did not ask for plain processes must not get them. */
static bool check_isolation(const DkrSandboxOptions *options, const LocalRecord *record,
                            GError **error)
{
    return strcmp(record->isolation, LOCAL_NO_ISOLATION) != 0 ||
           strcmp(options->isolation, LOCAL_NO_ISOLATION) == 0 ||
           spr_fail(error, SPR_E_CONFLICT, "isolation",
                    "the sandbox \"%s\" was made without isolation: say \"isolation\": \"none\" to "
                    "use it, or destroy it to make it anew",
                    record->id);
}

/* It keeps what it was made with. */
static void warn_of_differences(const DkrContext *context, const DkrSandboxOptions *options,
                                const LocalRecord *record, const char *folder)
{
    g_autofree char *workdir = local_plan_workdir(options, folder);
    g_autofree char *list = local_differences(options, record, workdir);
    if (list)
        spr_log(&context->log, SPR_LOG_WARNING, "options",
                "the existing sandbox \"%s\" differs from the options and keeps its own: %s; "
                "destroy it to have one with these options",
                record->id, list);
}

/* ----------------------------------------------------------------------------- starting */

/* The life of what record describes, started where it does not run. With the lock held. */
static bool bring_up(const DkrContext *context, LocalRecord *record, const char *folder,
                     const SprWait *wait, DkrLife **ret_life, GError **error)
{
    SprSupervisor *supervisor = NULL;
    pid_t before = record->pid;
    int process = local_launch_find(record, folder);
    if (process >= 0 && !local_link_check_paused(record->pid, error)) {
        close(process);
        return false;
    }
    if (process < 0 &&
        !local_launch(record, folder, context->bwrap, wait, &process, &supervisor, error))
        return false;
    if (record->pid != before && !local_store_write(context->store, record, error)) {
        local_launch_end(record, folder, wait, NULL);
        if (supervisor)
            spr_supervisor_unref(supervisor);
        if (process >= 0)
            close(process);
        return false;
    }
    *ret_life = local_life_new(record, folder, process, supervisor);
    return true;
}

typedef struct {
    const DkrContext *context;
    const char *id;
    char *folder;
    int lock;
} Held;

static void held_clear(Held *held)
{
    if (held->lock >= 0)
        local_store_unlock(held->context->store, held->id, held->lock);
    g_free(held->folder);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Held, held_clear)

/* Takes the lock and reads the record, NULL when there is none. */
static bool hold(Held *held, const DkrContext *context, const char *id, const SprWait *wait,
                 LocalRecord **ret_record, GError **error)
{
    *held = (Held){.context = context, .id = id, .lock = -1};
    held->folder = local_store_folder(context->store, id);
    return local_store_lock(context->store, id, wait, &held->lock, error) &&
           local_store_read(context->store, id, ret_record, error);
}

bool dkr_backend_connect(const DkrContext *context, const DkrSandboxOptions *options,
                         const SprWait *wait, DkrLife **ret_life, GError **error)
{
    g_auto(Held) held = {.lock = -1};
    g_autoptr(LocalRecord) record = NULL;
    if (!hold(&held, context, options->id, wait, &record, error))
        return false;
    if (!record)
        return true;
    if (!check_isolation(options, record, error))
        return false;
    warn_of_differences(context, options, record, held.folder);
    return bring_up(context, record, held.folder, wait, ret_life, error);
}

/* A folder without a record is what somebody left who died. Where there is not even that, a sandbox
 * of this id may run all the same, and there is to be one. */
static bool make(const DkrContext *context, LocalRecord *record, const char *folder,
                 const SprWait *wait, DkrLife **ret_life, GError **error)
{
    if (!local_launch_end_strays(folder, wait, error) ||
        !local_store_remove(context->store, record->id, error))
        return false;
    if (local_store_write(context->store, record, error) &&
        local_launch_prepare(record, folder, error) &&
        bring_up(context, record, folder, wait, ret_life, error))
        return true;
    local_store_remove(context->store, record->id, NULL);
    return false;
}

bool dkr_backend_create(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                        DkrStartOutcome *ret_outcome, GError **error)
{
    g_auto(Held) held = {.lock = -1};
    g_autoptr(LocalRecord) record = NULL;
    if (!hold(&held, context, options->id, wait, &record, error))
        return false;
    *ret_outcome = record ? DKR_START_CONNECTED : DKR_START_CREATED;
    if (record)
        return check_isolation(options, record, error) &&
               bring_up(context, record, held.folder, wait, ret_life, error);
    record = new_record(options, held.folder);
    return make(context, record, held.folder, wait, ret_life, error);
}

bool dkr_backend_find_running(const DkrContext *context, const DkrSandboxOptions *options,
                              const SprWait *wait, DkrLife **ret_life, GError **error)
{
    g_autoptr(LocalRecord) record = NULL;
    g_autofree char *folder = local_store_folder(context->store, options->id);
    if (!local_store_read(context->store, options->id, &record, error))
        return false;
    if (record && !check_isolation(options, record, error))
        return false;
    int process = record ? local_record_open_process(record) : -1;
    if (process >= 0)
        *ret_life = local_life_new(record, folder, process, NULL);
    return true;
}

/* ------------------------------------------------------------------------- stop, remove */

/* By its folder, or by what runs though that is gone. */
static bool is_known(const DkrContext *context, const char *id)
{
    g_autofree char *folder = local_store_folder(context->store, id);
    if (access(folder, F_OK) == 0)
        return true;
    g_autoptr(GArray) strays = local_stray_find(folder);
    return strays->len > 0;
}

bool dkr_backend_stop(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const SprWait *wait, GError **error)
{
    g_auto(Held) held = {.lock = -1};
    g_autoptr(LocalRecord) record = NULL;
    if (!is_known(context, options->id))
        return true;
    if (!hold(&held, context, options->id, wait, &record, error))
        return false;
    if (!record)
        return local_launch_end_strays(held.folder, wait, error);
    return local_launch_end(record, held.folder, wait, error) &&
           local_store_write(context->store, record, error);
}

bool dkr_backend_remove(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrLife *life, const SprWait *wait, GError **error)
{
    g_auto(Held) held = {.lock = -1};
    g_autoptr(LocalRecord) record = NULL;
    if (!is_known(context, options->id))
        return true;
    if (!hold(&held, context, options->id, wait, &record, error))
        return false;
    return (record ? local_launch_end(record, held.folder, wait, error)
                   : local_launch_end_strays(held.folder, wait, error)) &&
           local_store_remove(context->store, options->id, error);
}

/* --------------------------------------------------------------------------------- info */

char *dkr_backend_describe(const DkrSandboxOptions *options, const DkrLife *life,
                           const char *status)
{
    return local_info_described(options, life ? life->workdir : NULL, status);
}

bool dkr_backend_info(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const char *status, const SprWait *wait, char **ret_json,
                      GError **error)
{
    g_autoptr(LocalRecord) record = NULL;
    if (!local_store_read(context->store, options->id, &record, error))
        return false;
    if (record)
        *ret_json = local_info_recorded(record, options->instructions);
    return true;
}

typedef struct {
    void (*each)(void *ctx, const char *json);
    void *ctx;
} Listing;

static void list_one(void *ctx, const LocalRecord *record)
{
    const Listing *listing = ctx;
    g_autofree char *json = local_info_recorded(record, NULL);
    listing->each(listing->ctx, json);
}

bool dkr_backend_list(const DkrContext *context, void (*each)(void *ctx, const char *json),
                      void *ctx, const SprWait *wait, GError **error)
{
    Listing listing = {each, ctx};
    local_store_each(context->store, list_one, &listing);
    return true;
}
