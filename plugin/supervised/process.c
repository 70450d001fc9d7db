#include "supervised/process_own.h"

#include "base/error.h"
#include "supervised/run.h"

#include <jansson.h>
#include <string.h>

#define RECONNECT_MOST 20
#define RECONNECT_PAUSE_US (100 * 1000)

static DkrProcess *process_new(const DkrContext *context, DkrLife *life, const char *user,
                               char *name)
{
    DkrProcess *process = g_new0(DkrProcess, 1);
    g_atomic_ref_count_init(&process->refs);
    process->context = context;
    process->life = dkr_life_ref(life);
    process->user = g_strdup(user);
    process->name = name;
    return process;
}

DkrProcess *dkr_process_ref(DkrProcess *process)
{
    g_atomic_ref_count_inc(&process->refs);
    return process;
}

void dkr_process_unref(DkrProcess *process)
{
    if (!process || !g_atomic_ref_count_dec(&process->refs))
        return;
    dkr_life_unref(process->life);
    g_free(process->name);
    g_free(process->user);
    g_free(process);
}

const char *dkr_process_name(const DkrProcess *process)
{
    return process->name;
}

bool dkr_process_is_on_terminal(const DkrProcess *process)
{
    return process->on_terminal;
}

/* -------------------------------------------------------------------------- connecting */

static bool fail_unsupervised(const DkrLife *life, GError **error)
{
    g_autofree char *reason = dkr_life_unsupervised(life);
    return spr_fail(error, SPR_E_UNSUPPORTED, "needs-supervisor",
                    "processes need the supervisor, which this sandbox is without: %s",
                    reason ? reason : "it does not answer");
}

static bool get_supervisor(DkrLife *life, const char *user, const SprWait *wait,
                           SprSupervisor **ret_supervisor, GError **error)
{
    DkrLink *link = dkr_life_link(life);
    if (!link)
        return fail_unsupervised(life, error);
    if (!dkr_link_get(link, user, wait, ret_supervisor, error))
        return false;
    return *ret_supervisor || fail_unsupervised(life, error);
}

static bool fail_gone(const DkrProcess *process, GError **error)
{
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the process %s ended with its sandbox, which was stopped, removed or died",
             process->name);
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
    return false;
}

/* A name is INSTANCE-NUMBER, and @UID:GID where the supervisor of another user has it. */
static char *make_name(SprSupervisor *supervisor, guint64 id, const char *user)
{
    const SprSupervisorInfo *info = spr_supervisor_info(supervisor);
    g_autofree char *plain = spr_process_name(supervisor, id);
    return user ? g_strdup_printf("%s@%u:%u", plain, info->uid, info->gid)
                : g_steal_pointer(&plain);
}

static char *plain_name(const char *name)
{
    return g_strndup(name, strcspn(name, "@"));
}

bool dkr_process_connect(DkrProcess *process, const SprWait *wait, SprSupervisor **ret_supervisor,
                         guint64 *ret_id, GError **error)
{
    g_autofree char *plain = plain_name(process->name);
    g_autoptr(SprSupervisor) supervisor = NULL;
    g_autoptr(GError) why = NULL;
    if (!get_supervisor(process->life, process->user, wait, &supervisor, &why)) {
        DkrVenue venue = dkr_life_venue(process->life, process->context);
        if (!spr_wait_is_over(wait) && dkr_venue_is_over(&venue))
            return fail_gone(process, error);
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    if (!spr_process_parse_name(supervisor, plain, ret_id, NULL))
        return fail_gone(process, error);
    *ret_supervisor = g_steal_pointer(&supervisor);
    return true;
}

/* The engine may go on calling a container running for a moment after its processes have died. */
bool dkr_process_may_reconnect(const SprWait *wait, guint *tries, GError **error)
{
    int ready;
    bool broken =
        spr_error_is(*error, SPR_E_IO, NULL) || spr_error_is(*error, SPR_E_CONFLICT, NULL);
    if (!broken || ++*tries > RECONNECT_MOST)
        return false;
    if (*tries > 1 &&
        !spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + RECONNECT_PAUSE_US, &ready, NULL))
        return false;
    g_clear_error(error);
    return true;
}

/* ------------------------------------------------------------------------------- spawn */

/* *ret_owner is the user whose supervisor has it then, NULL for the container's own. */
static bool spawn_there(const DkrVenue *venue, const SprSpawn *spawn, const SprWait *wait,
                        SprSupervisor **ret_supervisor, const char **ret_owner, guint64 *ret_id,
                        GError **error)
{
    SprCommand command = *spawn->command;
    SprSpawn there = *spawn;
    const char *user = command.user;
    g_autoptr(SprSupervisor) supervisor = NULL;
    g_autoptr(GError) why = NULL;
    there.command = &command;
    if (!dkr_venue_supervisor(venue, user, wait, &supervisor, &command.user, error))
        return false;
    *ret_owner = command.user ? NULL : user;
    if (supervisor && spr_process_spawn(supervisor, &there, wait, ret_id, &why)) {
        *ret_supervisor = g_steal_pointer(&supervisor);
        return true;
    }
    if (supervisor && !(command.user && spr_error_is(why, SPR_E_UNSUPPORTED, "user-change"))) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    *ret_owner = user;
    command.user = NULL;
    g_clear_pointer(&supervisor, spr_supervisor_unref);
    if (!dkr_link_get(venue->link, user, wait, &supervisor, error) || !supervisor ||
        !spr_process_spawn(supervisor, &there, wait, ret_id, error))
        return false;
    *ret_supervisor = g_steal_pointer(&supervisor);
    return true;
}

bool dkr_process_spawn(const DkrContext *context, DkrLife *life, const SprSpawn *spawn,
                       const SprWait *wait, DkrProcess **ret_process, GError **error)
{
    DkrVenue venue = dkr_life_venue(life, context);
    g_autoptr(SprSupervisor) own = NULL;
    g_autoptr(SprSupervisor) supervisor = NULL;
    const char *owner;
    guint64 id;
    if (!get_supervisor(life, NULL, wait, &own, error) ||
        !spawn_there(&venue, spawn, wait, &supervisor, &owner, &id, error))
        return false;
    if (strcmp(spr_supervisor_info(supervisor)->instance, spr_supervisor_info(own)->instance) == 0)
        owner = NULL;
    DkrProcess *process = process_new(context, life, owner, make_name(supervisor, id, owner));
    process->on_terminal = spawn->command->rows > 0 && spawn->command->columns > 0;
    *ret_process = process;
    return true;
}

/* ------------------------------------------------------------------------- find, list */

static bool fail_unknown(const char *name, GError **error)
{
    return spr_fail(error, SPR_E_NOT_FOUND, "process-not-found",
                    "the sandbox has no process \"%s\": it was forgotten, or ended with an "
                    "earlier life of the sandbox",
                    name);
}

bool dkr_process_find(const DkrContext *context, DkrLife *life, const char *name,
                      const SprWait *wait, DkrProcess **ret_process, GError **error)
{
    g_autofree char *plain = plain_name(name);
    const char *user = strchr(name, '@');
    g_auto(GStrv) users = NULL;
    g_autoptr(SprSupervisor) supervisor = NULL;
    SprProcessInfo info;
    guint64 id;
    if (!get_supervisor(life, NULL, wait, &supervisor, error))
        return false;
    if (user) { /* asking for one starts it */
        g_clear_pointer(&supervisor, spr_supervisor_unref);
        if (!dkr_link_users(dkr_life_link(life), wait, &users, error))
            return false;
        if (!g_strv_contains((const char *const *)users, user + 1))
            return fail_unknown(name, error);
        if (!get_supervisor(life, user + 1, wait, &supervisor, error))
            return false;
    }
    if (!spr_process_parse_name(supervisor, plain, &id, NULL))
        return fail_unknown(name, error);
    if (!spr_process_find(supervisor, id, wait, &info, error))
        return false;
    *ret_process =
        process_new(context, life, user ? user + 1 : NULL, make_name(supervisor, id, user));
    (*ret_process)->on_terminal = info.on_terminal;
    return true;
}

typedef struct {
    SprSupervisor *supervisor;
    const char *user;
    GPtrArray *found; /* JSON */
} Listing;

static bool on_listed(void *ctx, const SprProcessInfo *info)
{
    Listing *listing = ctx;
    g_autofree char *name = make_name(listing->supervisor, info->id, listing->user);
    json_auto_t *object = json_pack("{s:s, s:s, s:b, s:b, s:I}", "id", name, "command",
                                    info->command, "running", !info->ended, "terminal",
                                    info->on_terminal, "startedMs", (json_int_t)info->started_ms);
    if (info->pid > 0)
        json_object_set_new(object, "pid", json_integer(info->pid));
    if (listing->user)
        json_object_set_new(object, "user",
                            json_stringn(listing->user, strcspn(listing->user, ":")));
    if (info->ended) {
        json_object_set_new(object, "exitCode", json_integer(info->exit.exit_code));
        json_object_set_new(object, "signal", json_integer(info->exit.term_signal));
        json_object_set_new(object, "killed", json_boolean(info->exit.flags & SPR_EXIT_KILLED));
        json_object_set_new(object, "timedOut",
                            json_boolean(info->exit.flags & SPR_EXIT_TIMED_OUT));
        json_object_set_new(object, "durationMs",
                            json_integer((json_int_t)(info->exit.duration_us / 1000)));
    }
    char *text = json_dumps(object, JSON_COMPACT);
    if (text)
        g_ptr_array_add(listing->found, g_strdup(text));
    free(text);
    return true;
}

static bool list_of(DkrLife *life, const char *user, GPtrArray *found, const SprWait *wait,
                    GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    if (!get_supervisor(life, user, wait, &supervisor, error))
        return false;
    Listing listing = {supervisor, user, found};
    return spr_process_list(supervisor, on_listed, &listing, wait, error);
}

/* Handed over at the end: the host's each() must not hold back the connection. */
bool dkr_process_list(const DkrContext *context, DkrLife *life,
                      void (*each)(void *ctx, const char *json), void *ctx, const SprWait *wait,
                      GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    if (!list_of(life, NULL, found, wait, error))
        return false;
    g_auto(GStrv) users = NULL;
    if (!dkr_link_users(dkr_life_link(life), wait, &users, error))
        return false;
    for (char **user = users; *user; user++) {
        g_autoptr(GError) why = NULL;
        if (list_of(life, *user, found, wait, &why))
            continue;
        if (!spr_wait_check(wait, error))
            return false;
        spr_log(dkr_context_log(context), SPR_LOG_WARNING, "supervisor",
                "the processes of user %s are not listed: %s", *user, why->message);
    }
    for (guint i = 0; i < found->len; i++)
        each(ctx, found->pdata[i]);
    return true;
}
