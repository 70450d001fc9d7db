#include "sandbox/link.h"

#include "base/error.h"
#include "base/latch.h"
#include "engine/containers.h"
#include "engine/execs.h"
#include "sandbox/layout.h"
#include "supervised/pool.h"
#include "sandbox/relaypipe.h"
#include "sandbox/startfail.h"
#include "supervisor/client/files.h"

#include <string.h>

#define OPEN_LIMIT_MS (30 * 1000)  /* for the engine to take the relay's exec, */
#define RUN_LIMIT_MS (60 * 1000)   /* to run it, when much is to be done, */
#define HELLO_LIMIT_MS (10 * 1000) /* and then for the supervisor to greet */
#define LOOK_MS 1000
#define ASK_MS 2000
#define USERS_MOST 256    /* that are looked for */
#define BOOT_LIMIT_MS 500 /* the engine says that the container runs: it dials within this */
#define REST_STEP_US (10 * 1000)
#define REST_TIMES 2 /* so often seen, a program is past its own beginning */

/* The connection of one user. */
typedef struct {
    SprSupervisor *supervisor; /* NULL before the first, and after a failure */
    SprLatch *opening;         /* opens when somebody's attempt is over */
} Entry;

struct DkrLink {
    const DkrContext *context;
    char *container;
    char *sandbox;
    DkrLinkKind kind;
    char *program;
    bool is_required;
    bool is_visit;
    char *transport;
    char *socket_path;
    DkrPool *pool;

    DkrDirect *direct; /* of who opens the own user's connection; stays once it is by socket */

    GMutex lock;     /* guards all below */
    char *no_socket; /* why it can't be by socket */
    bool by_socket;
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

void dkr_link_socket_clear(DkrLinkSocket *socket)
{
    g_clear_pointer(&socket->direct, dkr_direct_free);
    g_clear_pointer(&socket->reason, g_free);
}

/* Why there can be no socket whatever happens, or NULL. */
static char *reason_against(const DkrLinkSpec *spec)
{
    if (strcmp(spec->transport, "stream") == 0)
        return g_strdup("asked for in the options");
    if (spec->socket && spec->socket->reason)
        return g_steal_pointer(&spec->socket->reason);
    return spec->socket_path ? NULL : g_strdup("its container was made without a socket");
}

DkrLink *dkr_link_new(const DkrContext *context, const DkrLinkSpec *spec)
{
    DkrLink *link = g_new0(DkrLink, 1);
    link->context = context;
    link->container = g_strdup(spec->container);
    link->sandbox = g_strdup(spec->sandbox);
    link->kind = spec->kind;
    link->program = g_strdup(spec->program);
    link->is_required = spec->is_required;
    link->is_visit = spec->is_visit;
    link->transport = g_strdup(spec->transport);
    link->socket_path = g_strdup(spec->socket_path);
    link->no_socket = reason_against(spec);
    link->pool = dkr_pool_new();
    if (spec->socket)
        link->direct = g_steal_pointer(&spec->socket->direct);
    if (link->direct && link->kind == DKR_LINK_MAIN)
        dkr_direct_expect(link->direct, spec->pid);
    link->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    g_mutex_init(&link->lock);
    return link;
}

void dkr_link_free(DkrLink *link)
{
    if (!link)
        return;
    g_hash_table_unref(link->entries);
    dkr_pool_free(link->pool);
    dkr_direct_free(link->direct);
    g_mutex_clear(&link->lock);
    g_free(link->no_socket);
    g_free(link->socket_path);
    g_free(link->transport);
    g_free(link->broken);
    g_free(link->program);
    g_free(link->sandbox);
    g_free(link->container);
    g_free(link);
}

static bool is_by_socket(DkrLink *link)
{
    g_mutex_lock(&link->lock);
    bool by_socket = link->by_socket;
    g_mutex_unlock(&link->lock);
    return by_socket;
}

/* The supervisor is silent: frozen with its sandbox, cut off by an engine that is, or slow? */
static bool ask_whether_it_can_answer(void *ctx, GError **error)
{
    DkrLink *link = ctx;
    DkrClient *client = link->context->client;
    SprWait wait = spr_wait_for(ASK_MS);
    json_auto_t *inspect = NULL;
    g_autoptr(GError) silent = NULL;
    if (!dkr_client_answers(client, &wait, &silent)) {
        if (is_by_socket(link))
            return true;
        g_propagate_error(error, g_steal_pointer(&silent));
        return false;
    }
    if (!dkr_container_inspect(client, link->container, &wait, &inspect, NULL) ||
        !json_is_true(json_object_get(json_object_get(inspect, "State"), "Paused")))
        return true;
    return spr_fail(error, SPR_E_NOT_READY, "paused", "the sandbox is paused: start resumes it");
}

/* One attempt to be greeted through a relay. */
typedef struct {
    DkrLink *link;
    const SprWait *call;
    const char *exec;
    gint64 look_us;         /* when to look next whether the exec runs, */
    gint64 silent_us;       /* and since it does: when nothing came of it */
    SprSupervisor **dialed; /* by the supervisor at its boot, if that comes first; or NULL */
} Greeting;

/* Engines take an exec at once and run it when they come to it. */
static bool runs(const Greeting *greeting)
{
    SprWait wait = spr_wait_within(greeting->call, ASK_MS);
    DkrExecState state;
    return dkr_exec_inspect(greeting->link->context->client, greeting->exec, &wait, &state, NULL) &&
           state.pid > 0;
}

/* Asked all the while that a greeting is waited for. */
static int is_decided(void *ctx)
{
    Greeting *greeting = ctx;
    const SprWait *call = greeting->call;
    DkrLink *link = greeting->link;
    if (call->is_cancelled && call->is_cancelled(call->cancel_ctx))
        return 1;
    if (greeting->dialed && !*greeting->dialed && link->direct)
        *greeting->dialed = dkr_direct_boot(link->direct, 0);
    if (greeting->dialed && *greeting->dialed)
        return 1;
    if (greeting->silent_us == SPR_NEVER && g_get_monotonic_time() >= greeting->look_us) {
        greeting->look_us = spr_deadline_after(LOOK_MS);
        if (runs(greeting))
            greeting->silent_us = spr_deadline_after(HELLO_LIMIT_MS);
    }
    return g_get_monotonic_time() >= greeting->silent_us;
}

/* The caller's own deadline is told as such, our limit as what it says of the supervisor. */
static bool greet(Greeting *greeting, const SprPipe *pipe, SprSupervisor **ret_supervisor,
                  GError **error)
{
    const DkrLink *link = greeting->link;
    SprWait limited = spr_wait_within(greeting->call, RUN_LIMIT_MS);
    g_autoptr(GError) why = NULL;
    limited.is_cancelled = is_decided;
    limited.cancel_ctx = greeting;
    greeting->look_us = spr_deadline_after(LOOK_MS);
    greeting->silent_us = SPR_NEVER;
    if ((link->is_visit ? spr_supervisor_visit : spr_supervisor_open)(pipe, &limited,
                                                                      ret_supervisor, &why) ||
        (greeting->dialed && *greeting->dialed))
        return true;
    bool is_ours = why->code == SPR_E_TIMEOUT || why->code == SPR_E_CANCELLED;
    if (!is_ours || !spr_wait_check(greeting->call, NULL)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    spr_fail(error, SPR_E_IO, "supervisor-silent",
             "the supervisor of the sandbox \"%s\" did not answer in %d s: stop the sandbox and "
             "start it again, or do without by the option \"supervisor\"",
             link->sandbox,
             (greeting->silent_us == SPR_NEVER ? RUN_LIMIT_MS : HELLO_LIMIT_MS) / 1000);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

/* Whether *why is of a relay that never ran: what came in place of frames is the engine's, and
 * tells more. That its sandbox has ended is seen by the broken connection. */
static void explain_unstarted(const Greeting *greeting, DkrRelayWords *words, GError **why)
{
    SprWait wait = spr_wait_within(greeting->call, ASK_MS);
    DkrExecState state;
    int exit_code;
    g_autofree char *line = NULL;
    g_autoptr(GError) told = NULL;
    if (words->first_size == 0 || !spr_error_is(*why, SPR_E_IO, "supervisor-lost") ||
        !dkr_exec_outcome(greeting->link->context->client, greeting->exec, ASK_MS, &wait, &state,
                          NULL) ||
        state.pid != 0)
        return;
    if (!dkr_start_failure(words->first, greeting->link->program, "/", NULL, &exit_code, &line,
                           &told) &&
        told->code == SPR_E_EXHAUSTED) {
        g_clear_error(why);
        *why = g_steal_pointer(&told);
        return;
    }
    g_autofree char *valid = g_utf8_make_valid(words->first, -1);
    g_clear_error(why);
    spr_fail(why, SPR_E_IO, "supervisor-lost",
             "the sandbox's supervisor could not be reached: the engine says: %s",
             g_strdelimit(g_strchomp(valid), "\r\n", ' '));
    spr_error_add_flags(why, SPR_ERROR_RETRYABLE);
}

/* The relay as an exec of its own, hello over it; or, where ret_dialed (NULL at first) is given,
 * the connection of the supervisor's boot, if that comes first. */
static bool open_relay(DkrLink *link, const char *user, const SprWait *wait,
                       SprSupervisor **ret_supervisor, SprSupervisor **ret_dialed, GError **error)
{
    const char *own[] = {link->program, "relay", DKR_SUPERVISOR_RUN_DIRECTORY, NULL};
    if (*user || link->kind != DKR_LINK_MAIN)
        own[1] = "start";
    DkrExecSpec spec = {.argv = own, .cwd = "/", .user = *user ? user : NULL, .with_stdin = true};
    DkrClient *client = link->context->client;
    SprWait limited = spr_wait_within(wait, OPEN_LIMIT_MS);
    g_autofree char *id = NULL;
    g_autoptr(DkrHijack) hijack = NULL;
    if (!dkr_exec_create(client, link->container, &spec, &limited, &id, error) ||
        !dkr_exec_start(client, id, &spec, &limited, &hijack, error))
        return false;
    if (!dkr_hijack_is_upgraded(hijack))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-upgrade",
                        "a proxy before the engine does not support upgrades");
    g_autoptr(DkrRelayWords) words = dkr_relay_words_new();
    SprPipe pipe = dkr_relay_pipe(g_steal_pointer(&hijack), words, &link->context->log);
    Greeting greeting = {.link = link, .call = wait, .exec = id, .dialed = ret_dialed};
    GError *why = NULL;
    if (greet(&greeting, &pipe, ret_supervisor, &why)) {
        words->is_greeted = true;
        return true;
    }
    explain_unstarted(&greeting, words, &why);
    g_strdelimit(g_strchomp(words->text), "\n", ' ');
    if (*words->text && spr_error_is(why, SPR_E_IO, "supervisor-lost")) {
        g_free(why->message);
        why->message = g_strdup(words->text);
    } else if (*words->text) {
        g_prefix_error(&why, "%s: ", words->text);
    }
    g_propagate_error(error, why);
    return false;
}

static bool needs_socket(const DkrLink *link)
{
    return strcmp(link->transport, "socket") == 0;
}

/* Over the stream the supervisor hears where to connect to. It may be another one than before, or
 * seen from here under another number than from the engine: the nonce tells. */
static bool dial_through(DkrLink *link, SprSupervisor *stream, const SprWait *wait,
                         SprSupervisor **ret_supervisor, GError **error)
{
    if (link->no_socket)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-socket", "%s", link->no_socket);
    if (!link->direct && !dkr_direct_restore(link->socket_path, &link->direct, error))
        return false;
    dkr_direct_expect(link->direct, 0);
    return dkr_direct_dial(link->direct, stream, wait, ret_supervisor, error);
}

/* Stays on the stream for this life, unless it was the caller who had no time. */
static void give_up_socket(DkrLink *link, const SprWait *wait, const char *why)
{
    if (link->no_socket || !spr_wait_check(wait, NULL))
        return;
    spr_log(&link->context->log, SPR_LOG_INFO, "supervisor", "by stream: %s", why);
    g_mutex_lock(&link->lock);
    link->no_socket = g_strdup(why);
    g_mutex_unlock(&link->lock);
}

/* For the container's own user: by socket, else by stream. */
static bool open_own(DkrLink *link, const SprWait *wait, SprSupervisor **ret_supervisor,
                     bool *ret_by_socket, GError **error)
{
    g_autoptr(SprSupervisor) stream = NULL;
    g_autoptr(GError) why = NULL;
    *ret_supervisor = link->direct ? dkr_direct_boot(link->direct, BOOT_LIMIT_MS) : NULL;
    *ret_by_socket = *ret_supervisor != NULL;
    if (*ret_by_socket)
        return true;
    if (!open_relay(link, "", wait, &stream, ret_supervisor, error))
        return false;
    *ret_by_socket = *ret_supervisor != NULL;
    if (*ret_by_socket)
        return true;
    *ret_by_socket = dial_through(link, stream, wait, ret_supervisor, &why);
    if (*ret_by_socket)
        return true;
    if (needs_socket(link))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-socket",
                        "transport: a socket is required, and there is none: %s", why->message);
    give_up_socket(link, wait, why->message);
    *ret_supervisor = g_steal_pointer(&stream);
    return true;
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
    bool by_socket = false;
    bool ok = *user ? open_relay(link, user, wait, &supervisor, NULL, error)
                    : open_own(link, wait, &supervisor, &by_socket, error);
    if (supervisor)
        spr_supervisor_set_on_silence(supervisor, ask_whether_it_can_answer, link);
    g_mutex_lock(&link->lock);
    entry->supervisor = supervisor;
    if (!*user)
        link->by_socket = by_socket;
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
    if (!ok && is_hopeless(link, why, wait) && !link->is_required && !needs_socket(link) && !user) {
        link->broken = g_strdup(why->message);
        ok = true;
    }
    g_mutex_unlock(&link->lock);
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&why));
    return ok;
}

bool dkr_link_settle(DkrLink *link, const SprWait *wait, GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    if (needs_socket(link))
        return dkr_link_get(link, NULL, wait, &supervisor, error);
    supervisor = link->direct ? dkr_direct_boot(link->direct, 0) : NULL;
    if (!supervisor)
        return true;
    spr_supervisor_set_on_silence(supervisor, ask_whether_it_can_answer, link);
    g_mutex_lock(&link->lock);
    entry_for(link, "")->supervisor = g_steal_pointer(&supervisor);
    link->by_socket = true;
    g_mutex_unlock(&link->lock);
    return true;
}

bool dkr_link_main_rests(DkrLink *link, guint64 words, gint64 limit_ms, const SprWait *wait)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    SprWait limited = spr_wait_within(wait, limit_ms);
    guint64 now = 0;
    int times = 0, ready;
    if (!dkr_link_get(link, NULL, &limited, &supervisor, NULL) || !supervisor)
        return false;
    while (spr_supervisor_main_rest(supervisor, &limited, &now, NULL)) {
        times = now == words ? times + 1 : 0;
        if (times == REST_TIMES)
            return true;
        if (!spr_wait_poll(&limited, NULL, 0, g_get_monotonic_time() + REST_STEP_US, &ready, NULL))
            return false;
    }
    return false;
}

static bool dial_again(void *ctx, SprSupervisor *shared, const SprWait *wait,
                       SprSupervisor **ret_supervisor)
{
    const DkrLink *link = ctx;
    return dkr_direct_dial(link->direct, shared, wait, ret_supervisor, NULL);
}

SprSupervisor *dkr_link_take_own(DkrLink *link, SprSupervisor *shared, const SprWait *wait)
{
    g_mutex_lock(&link->lock);
    bool by_socket = link->by_socket && entry_for(link, "")->supervisor == shared;
    g_mutex_unlock(&link->lock);
    SprSupervisor *own =
        by_socket ? dkr_pool_take(link->pool, dial_again, link, shared, wait) : NULL;
    if (own)
        spr_supervisor_set_on_silence(own, ask_whether_it_can_answer, link);
    return own;
}

void dkr_link_give_back(DkrLink *link, SprSupervisor *own, bool clean)
{
    dkr_pool_give_back(link->pool, own, clean);
}

const char *dkr_link_transport(DkrLink *link, char **ret_reason)
{
    g_mutex_lock(&link->lock);
    bool is_open = entry_for(link, "")->supervisor != NULL;
    bool by_socket = link->by_socket;
    *ret_reason = is_open && !by_socket ? g_strdup(link->no_socket) : NULL;
    g_mutex_unlock(&link->lock);
    return !is_open ? NULL : by_socket ? "socket" : "stream";
}

char *dkr_link_reason(DkrLink *link)
{
    g_mutex_lock(&link->lock);
    char *reason = g_strdup(link->broken);
    g_mutex_unlock(&link->lock);
    return reason;
}

typedef struct {
    const SprSupervisorInfo *own;
    GStrvBuilder *users;
    guint found;
} Search;

/* "UID.GID.sock" of that very user: a file that says so and is not is somebody's joke. */
static bool on_socket(void *ctx, const SprFileEntry *entry)
{
    Search *search = ctx;
    g_autofree char *name = g_strdup_printf("%u.%u.sock", entry->uid, entry->gid);
    const char *base = strrchr(entry->path, '/');
    bool is_own = entry->uid == search->own->uid && entry->gid == search->own->gid;
    if (entry->type != SPR_FILE_TYPE_SOCKET || is_own ||
        strcmp(base ? base + 1 : entry->path, name) != 0)
        return true;
    g_autofree char *user = g_strdup_printf("%u:%u", entry->uid, entry->gid);
    g_strv_builder_add(search->users, user);
    return ++search->found < USERS_MOST;
}

bool dkr_link_users(DkrLink *link, const SprWait *wait, char ***ret_users, GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();
    if (!dkr_link_get(link, NULL, wait, &supervisor, error))
        return false;
    Search search = {.users = users};
    if (supervisor && spr_files_are_served(supervisor)) {
        search.own = spr_supervisor_info(supervisor);
        if (!spr_files_list(supervisor, DKR_SUPERVISOR_RUN_DIRECTORY, 0, on_socket, &search, wait,
                            error))
            return false;
    }
    *ret_users = g_strv_builder_end(users);
    return true;
}
