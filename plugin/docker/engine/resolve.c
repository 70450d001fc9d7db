#include "engine/resolve.h"

#include "base/error.h"
#include "base/latch.h"
#include "base/thread.h"
#include "engine/failure.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct DkrAddresses {
    gatomicrefcount refs;
    char *host;
    char port[8];
    SprLatch *done; /* what follows is the thread's until it opens */
    int code;
    struct addrinfo *found;
};

void dkr_addresses_unref(DkrAddresses *addresses)
{
    if (!addresses || !g_atomic_ref_count_dec(&addresses->refs))
        return;
    if (addresses->found)
        freeaddrinfo(addresses->found);
    if (addresses->done)
        spr_latch_unref(addresses->done);
    g_free(addresses->host);
    g_free(addresses);
}

static void look_up(DkrAddresses *addresses, int flags)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    addresses->code = getaddrinfo(addresses->host, addresses->port, &hints, &addresses->found);
}

static void *run(void *data)
{
    DkrAddresses *addresses = data;
    look_up(addresses, AI_ADDRCONFIG);
    spr_latch_open(addresses->done);
    dkr_addresses_unref(addresses);
    return NULL;
}

static bool look_up_aside(DkrAddresses *addresses, const SprWait *wait, GError **error)
{
    addresses->done = spr_latch_new();
    if (!addresses->done)
        return spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor",
                        "the process has no descriptor left");
    g_atomic_ref_count_inc(&addresses->refs);
    GThread *thread = spr_thread_start("sprov-resolve", run, addresses, error);
    if (!thread) {
        dkr_addresses_unref(addresses);
        return false;
    }
    g_thread_unref(thread);
    return spr_latch_wait(addresses->done, wait, error);
}

bool dkr_resolve(const DkrEndpoint *endpoint, const SprWait *wait, DkrAddresses **ret_addresses,
                 GError **error)
{
    g_autoptr(DkrAddresses) addresses = g_new0(DkrAddresses, 1);
    g_atomic_ref_count_init(&addresses->refs);
    addresses->host = g_strdup(endpoint->host);
    g_snprintf(addresses->port, sizeof addresses->port, "%d", endpoint->port);
    look_up(addresses, AI_NUMERICHOST | AI_NUMERICSERV);
    if (addresses->code != 0 && !look_up_aside(addresses, wait, error))
        return false;
    if (addresses->code != 0)
        return dkr_failure_unreachable(error, endpoint, EHOSTUNREACH,
                                       gai_strerror(addresses->code));
    *ret_addresses = g_steal_pointer(&addresses);
    return true;
}

const struct addrinfo *dkr_addresses_first(const DkrAddresses *addresses)
{
    return addresses->found;
}
