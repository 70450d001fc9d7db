#include "local/link.h"

#include "base/error.h"
#include "base/proc.h"
#include "local/options.h"
#include "local/socket.h"
#include "supervised/pool.h"

#include <poll.h>
#include <unistd.h>

struct DkrLink {
    char *folder;
    pid_t pid;
    int process;
    DkrPool *pool;

    GMutex lock;
    SprSupervisor *shared; /* NULL before the first */
};

/* The supervisor is silent: stopped with its sandbox, or slow? */
static bool ask_whether_paused(void *ctx, GError **error)
{
    const DkrLink *link = ctx;
    return !spr_proc_is_stopped(link->pid) ||
           spr_fail(error, SPR_E_NOT_READY, "paused",
                    "the sandbox's processes were stopped: send them SIGCONT");
}

DkrLink *local_link_new(const char *folder, pid_t pid, int process, SprSupervisor *supervisor)
{
    DkrLink *link = g_new0(DkrLink, 1);
    link->folder = g_strdup(folder);
    link->pid = pid;
    link->process = process;
    link->pool = dkr_pool_new();
    link->shared = supervisor;
    if (supervisor)
        spr_supervisor_set_on_silence(supervisor, ask_whether_paused, link);
    g_mutex_init(&link->lock);
    return link;
}

void local_link_free(DkrLink *link)
{
    if (!link)
        return;
    dkr_pool_free(link->pool);
    if (link->shared)
        spr_supervisor_unref(link->shared);
    if (link->process >= 0)
        close(link->process);
    g_mutex_clear(&link->lock);
    g_free(link->folder);
    g_free(link);
}

bool local_link_is_over(const DkrLink *link, int limit_ms)
{
    struct pollfd p = {.fd = link->process, .events = POLLIN};
    return poll(&p, 1, limit_ms) > 0;
}

/* With the lock held. */
static SprSupervisor *take_shared(DkrLink *link)
{
    if (link->shared && !spr_supervisor_is_alive(link->shared))
        g_clear_pointer(&link->shared, spr_supervisor_unref);
    return link->shared ? spr_supervisor_ref(link->shared) : NULL;
}

static bool open_another(DkrLink *link, const SprWait *wait, SprSupervisor **ret_supervisor,
                         GError **error)
{
    if (!local_socket_connect(link->folder, link->pid, wait, ret_supervisor, error))
        return false;
    spr_supervisor_set_on_silence(*ret_supervisor, ask_whether_paused, link);
    return true;
}

bool dkr_link_get(DkrLink *link, const char *user, const SprWait *wait,
                  SprSupervisor **ret_supervisor, GError **error)
{
    if (user && !local_is_own_user(user))
        return spr_fail(
            error, SPR_E_UNSUPPORTED, "user-change",
            "user \"%s\": a local sandbox has one user, who is the host's: leave it out", user);
    g_mutex_lock(&link->lock);
    SprSupervisor *shared = take_shared(link);
    g_mutex_unlock(&link->lock);
    SprSupervisor *opened = NULL;
    if (!shared && !open_another(link, wait, &opened, error))
        return false;
    if (!shared) {
        g_mutex_lock(&link->lock);
        shared = take_shared(link);
        if (!shared) {
            shared = link->shared = g_steal_pointer(&opened);
            spr_supervisor_ref(shared);
        }
        g_mutex_unlock(&link->lock);
        if (opened)
            spr_supervisor_unref(opened);
    }
    *ret_supervisor = shared;
    return true;
}

static bool connect_again(void *ctx, SprSupervisor *shared, const SprWait *wait,
                          SprSupervisor **ret_supervisor)
{
    return open_another(ctx, wait, ret_supervisor, NULL);
}

SprSupervisor *dkr_link_take_own(DkrLink *link, SprSupervisor *shared, const SprWait *wait)
{
    return dkr_pool_take(link->pool, connect_again, link, shared, wait);
}

void dkr_link_give_back(DkrLink *link, SprSupervisor *own, bool clean)
{
    dkr_pool_give_back(link->pool, own, clean);
}

char **dkr_link_users(DkrLink *link)
{
    return g_new0(char *, 1);
}
