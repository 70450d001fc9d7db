#include "sandbox/link.h"

#include "base/error.h"
#include "base/latch.h"
#include "engine/execs.h"
#include "sandbox/layout.h"
#include "sandbox/relaypipe.h"

#include <string.h>

#define OPEN_LIMIT_MS (30 * 1000)

/* The connection of one user. */
typedef struct {
    SprSupervisor *supervisor; /* NULL before the first, and after a failure */
    SprLatch *opening;         /* opens when somebody's attempt is over */
} Entry;

struct DkrLink {
    const DkrContext *context;
    char *container;
    DkrLinkKind kind;
    char *program;
    bool is_required;

    GMutex lock; /* guards all below */
    GHashTable *entries; /* user, "" for the container's, to Entry */
    bool proven;         /* it was reached once */
    char *broken;        /* why it cannot be reached at all */
};

static void entry_free(void *data)
{
    Entry *entry = data;
    if (entry->supervisor)
        spr_supervisor_unref(entry->supervisor);
    g_free(entry);
}

DkrLink *dkr_link_new(const DkrContext *context, const char *container, DkrLinkKind kind,
                      const char *program, bool is_required)
{
    DkrLink *link = g_new0(DkrLink, 1);
    link->context = context;
    link->container = g_strdup(container);
    link->kind = kind;
    link->program = g_strdup(program);
    link->is_required = is_required;
    link->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    g_mutex_init(&link->lock);
    return link;
}

void dkr_link_free(DkrLink *link)
{
    if (!link)
        return;
    g_hash_table_unref(link->entries);
    g_mutex_clear(&link->lock);
    g_free(link->broken);
    g_free(link->program);
    g_free(link->container);
    g_free(link);
}

/* One attempt: the relay as an exec of its own, hello over it. */
static bool open_relay(DkrLink *link, const char *user, const SprWait *wait,
                       SprSupervisor **ret_supervisor, GError **error)
{
    const char *own[] = {link->program, "relay", DKR_SUPERVISOR_RUN_DIRECTORY, NULL};
    if (*user || link->kind != DKR_LINK_MAIN)
        own[1] = "start";
    DkrExecSpec spec = {
        .argv = own, .cwd = "/", .user = *user ? user : NULL, .with_stdin = true};
    DkrClient *client = link->context->client;
    SprWait limited = spr_wait_within(wait, OPEN_LIMIT_MS);
    g_autofree char *id = NULL;
    g_autoptr(DkrHijack) hijack = NULL;
    if (!dkr_exec_create(client, link->container, &spec, &limited, &id, error) ||
        !dkr_exec_start(client, id, &limited, &hijack, error))
        return false;
    if (!dkr_hijack_is_upgraded(hijack))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-upgrade",
                        "a proxy before the engine does not support upgrades");
    SprPipe pipe = dkr_relay_pipe(g_steal_pointer(&hijack), &link->context->log);
    return spr_supervisor_open(&pipe, &limited, ret_supervisor, error);
}

static Entry *entry_for(DkrLink *link, const char *user)
{
    Entry *entry = g_hash_table_lookup(link->entries, user);
    if (!entry) {
        entry = g_new0(Entry, 1);
        g_hash_table_insert(link->entries, g_strdup(user), entry);
    }
    return entry;
}

/* With the lock held, which is released while the engine works. */
static bool open_entry(DkrLink *link, Entry *entry, const char *user, const SprWait *wait,
                       GError **error)
{
    SprLatch *latch = spr_latch_new();
    if (!latch)
        return spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor",
                        "the process has no descriptor left");
    entry->opening = latch;
    g_mutex_unlock(&link->lock);
    SprSupervisor *supervisor = NULL;
    bool ok = open_relay(link, user, wait, &supervisor, error);
    g_mutex_lock(&link->lock);
    entry->supervisor = supervisor;
    entry->opening = NULL;
    link->proven |= ok;
    spr_latch_open(latch);
    spr_latch_unref(latch);
    return ok;
}

/* With the lock held. *ret_supervisor is a reference. */
static bool get_locked(DkrLink *link, const char *user, const SprWait *wait,
                       SprSupervisor **ret_supervisor, GError **error)
{
    Entry *entry = entry_for(link, user);
    while (entry->opening) {
        g_autoptr(SprLatch) latch = spr_latch_ref(entry->opening);
        g_mutex_unlock(&link->lock);
        bool ok = spr_latch_wait(latch, wait, error);
        g_mutex_lock(&link->lock);
        if (!ok)
            return false;
    }
    if (entry->supervisor && !spr_supervisor_is_alive(entry->supervisor))
        g_clear_pointer(&entry->supervisor, spr_supervisor_unref);
    if (!entry->supervisor && !open_entry(link, entry, user, wait, error))
        return false;
    *ret_supervisor = spr_supervisor_ref(entry->supervisor);
    return true;
}

/* What says that the program cannot serve here at all, rather than not now. In a container that was
 * not made for it, any failure of the first attempt does. */
static bool is_hopeless(const DkrLink *link, const GError *why, const SprWait *wait)
{
    return why->code == SPR_E_UNSUPPORTED || spr_error_is(why, SPR_E_IO, "no-supervisor") ||
           (link->kind == DKR_LINK_ADOPTED && !link->proven && !spr_wait_is_over(wait));
}

bool dkr_link_get(DkrLink *link, const char *user, const SprWait *wait,
                  SprSupervisor **ret_supervisor, GError **error)
{
    g_autoptr(GError) why = NULL;
    *ret_supervisor = NULL;
    g_mutex_lock(&link->lock);
    bool ok = link->broken || get_locked(link, user ? user : "", wait, ret_supervisor, &why);
    if (!ok && is_hopeless(link, why, wait) && !link->is_required && !user) {
        link->broken = g_strdup(why->message);
        ok = true;
    }
    g_mutex_unlock(&link->lock);
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&why));
    return ok;
}

char *dkr_link_reason(DkrLink *link)
{
    g_mutex_lock(&link->lock);
    char *reason = g_strdup(link->broken);
    g_mutex_unlock(&link->lock);
    return reason;
}

char **dkr_link_users(DkrLink *link)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();
    GHashTableIter iter;
    gpointer user, entry;
    g_mutex_lock(&link->lock);
    g_hash_table_iter_init(&iter, link->entries);
    while (g_hash_table_iter_next(&iter, &user, &entry)) {
        if (*(const char *)user && ((Entry *)entry)->supervisor)
            g_strv_builder_add(users, user);
    }
    g_mutex_unlock(&link->lock);
    return g_strv_builder_end(users);
}
