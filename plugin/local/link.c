#include "local/link.h"

#include "base/error.h"
#include "base/proc.h"
#include "local/socket.h"
#include "local/user.h"
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

DkrLink *local_link_new(const char *folder, pid_t pid, int process, SprSupervisor *supervisor)
{
    DkrLink *link = g_new0(DkrLink, 1);
    link->folder = g_strdup(folder);
    link->pid = pid;
    link->process = process;
    link->pool = dkr_pool_new();
    link->shared = supervisor;
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

bool local_link_check_paused(pid_t pid, GError **error)
{
    return !spr_proc_is_stopped(pid) ||
           spr_fail(error, SPR_E_NOT_READY, "paused",
                    "the sandbox is paused: let its processes go on (SIGCONT), or stop it");
}

/* What was sent to a supervisor that is paused would be done when it goes on, perhaps long after
 * its caller. */
bool dkr_link_get(DkrLink *link, const char *user, const SprWait *wait,
                  SprSupervisor **ret_supervisor, GError **error)
{
    if ((user && !local_user_check(user, error)) || !local_link_check_paused(link->pid, error))
        return false;
    g_mutex_lock(&link->lock);
    SprSupervisor *shared = take_shared(link);
    g_mutex_unlock(&link->lock);
    SprSupervisor *opened = NULL;
    if (!shared && !local_socket_connect(link->folder, link->pid, wait, &opened, error))
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
    const DkrLink *link = ctx;
    return local_socket_connect(link->folder, link->pid, wait, ret_supervisor, NULL);
}

SprSupervisor *dkr_link_take_own(DkrLink *link, SprSupervisor *shared, const SprWait *wait)
{
    return dkr_pool_take(link->pool, connect_again, link, shared, wait);
}

void dkr_link_give_back(DkrLink *link, SprSupervisor *own, bool clean)
{
    dkr_pool_give_back(link->pool, own, clean);
}

bool dkr_link_users(DkrLink *link, const SprWait *wait, char ***ret_users, GError **error)
{
    *ret_users = g_new0(char *, 1);
    return true;
}
