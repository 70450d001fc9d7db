#include "engine/dial.h"

#include "base/error.h"
#include "base/file.h"
#include "engine/failure.h"
#include "engine/resolve.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_LIMIT_MS (10 * 1000)
#define REDIAL_US (10 * 1000)
#define UNSENT_LIMIT_MS (30 * 1000)
#define UNIX_ROOM (512 * 1024) /* two pieces of an upload, or what the kernel allows */

static bool open_socket(int family, int *ret_fd, GError **error)
{
    int fd = spr_fd_above_standard(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor", "socket");
    /* Whoever waits for room is woken when three quarters are empty: the rest keeps the engine busy
     * meanwhile. */
    int room = UNIX_ROOM;
    if (family == AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    *ret_fd = fd;
    return true;
}

/* A full backlog is EAGAIN on unix sockets, and there is nothing to poll for. */
static bool dial_unix(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial,
                      GError **error)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    g_strlcpy(to.sun_path, endpoint->path, sizeof to.sun_path);
    if (!open_socket(AF_UNIX, &dial->fd, error))
        return false;
    while (connect(dial->fd, (struct sockaddr *)&to, sizeof to) < 0) {
        int ready;
        if (errno != EAGAIN && errno != EINTR)
            return dkr_failure_unreachable(error, endpoint, errno, NULL);
        if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + REDIAL_US, &ready, error))
            return false;
    }
    return true;
}

/* An engine whose machine went away without a word is noticed by probes while nothing is sent, and
 * by what nobody acknowledges. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 15},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_LIMIT_MS},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* One address of a name. *ret_errno is 0 when it was taken. */
static bool try_address(const struct addrinfo *to, const SprWait *wait, DkrDial *dial,
                        int *ret_errno, GError **error)
{
    socklen_t size = sizeof *ret_errno;
    if (!open_socket(to->ai_family, &dial->fd, error))
        return false;
    *ret_errno = connect(dial->fd, to->ai_addr, to->ai_addrlen) < 0 ? errno : 0;
    if (*ret_errno == EINPROGRESS || *ret_errno == EINTR) {
        struct pollfd p = {.fd = dial->fd, .events = POLLOUT};
        int ready;
        if (!spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error))
            return false;
        getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, ret_errno, &size);
    }
    return true;
}

/* The first of these addresses that takes a connection. */
static bool dial_any(const DkrEndpoint *endpoint, const struct addrinfo *to, const SprWait *wait,
                     DkrDial *dial, GError **error)
{
    int why = 0;
    for (; to; to = to->ai_next) {
        gint64 left_us = wait->deadline_us - g_get_monotonic_time();
        SprWait limited = spr_wait_within(wait, to->ai_next ? MAX(left_us, 0) / 2000 : -1);
        g_autoptr(GError) slow = NULL;
        dkr_dial_close(dial);
        if (!try_address(to, &limited, dial, &why, &slow)) {
            if (slow->code != SPR_E_TIMEOUT || !to->ai_next) {
                g_propagate_error(error, g_steal_pointer(&slow));
                return false;
            }
            why = ETIMEDOUT;
        }
        if (why == 0)
            return true;
    }
    return dkr_failure_unreachable(error, endpoint, why, NULL);
}

static bool dial_tcp(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial,
                     GError **error)
{
    g_autoptr(DkrAddresses) found = NULL;
    if (!dkr_resolve(endpoint, wait, &found, error) ||
        !dial_any(endpoint, dkr_addresses_first(found), wait, dial, error))
        return false;
    keep_alive(dial->fd);
    return true;
}

static char **ssh_command(const DkrEndpoint *endpoint)
{
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_autofree char *port = g_strdup_printf("%d", endpoint->port);
    g_autofree char *socket = g_strdup_printf("--host=unix://%s", endpoint->path);
    const struct {
        const char *option, *value;
    } chosen[] = {{"-F", endpoint->ssh_config},
                  {"-l", endpoint->user},
                  {"-p", endpoint->port ? port : NULL},
                  {"--", endpoint->host}};
    g_strv_builder_add_many(words, "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30",
                            "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=2", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(chosen); i++) {
        if (chosen[i].value)
            g_strv_builder_add_many(words, chosen[i].option, chosen[i].value, NULL);
    }
    g_strv_builder_add(words, "docker");
    if (endpoint->path)
        g_strv_builder_add(words, socket);
    g_strv_builder_add_many(words, "system", "dial-stdio", NULL);
    return g_strv_builder_end(words);
}

static bool fail_to_start(const DkrEndpoint *endpoint, const GError *why, GError **error)
{
    if (!spr_error_is(why, SPR_E_UNAVAILABLE, "no-program")) {
        g_propagate_error(error, g_error_copy(why));
        return false;
    }
    return spr_fail(error, SPR_E_UNAVAILABLE, "no-program",
                    "no engine at %s (%s): install OpenSSH's client", endpoint->address,
                    why->message);
}

static bool start_ssh(const DkrEndpoint *endpoint, int fd, SprChild **ret_child, GError **error)
{
    g_auto(GStrv) argv = ssh_command(endpoint);
    g_autoptr(GError) why = NULL;
    return spr_child_start((const char *const *)argv, (const char *const *)endpoint->environment,
                           fd, ret_child, &why) ||
           fail_to_start(endpoint, why, error);
}

static bool dial_ssh(const DkrEndpoint *endpoint, DkrDial *dial, GError **error)
{
    g_auto(GStrv) argv = ssh_command(endpoint);
    g_autoptr(GError) why = NULL;
    return spr_child_talk((const char *const *)argv, (const char *const *)endpoint->environment,
                          &dial->fd, &dial->child, &why) ||
           fail_to_start(endpoint, why, error);
}

static bool dial_by(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial, GError **error)
{
    switch (endpoint->via) {
    case DKR_VIA_TCP:
        return dial_tcp(endpoint, wait, dial, error);
    case DKR_VIA_SSH:
        return dial_ssh(endpoint, dial, error);
    default:
        return dial_unix(endpoint, wait, dial, error);
    }
}

/* What our own limit ends, and not the call's, is an engine that cannot be reached. */
static bool finish(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial, GError *why,
                   GError **error)
{
    dkr_dial_close(dial);
    if (why->code == SPR_E_TIMEOUT && !spr_wait_is_over(wait)) {
        g_error_free(why);
        return dkr_failure_unreachable(error, endpoint, ETIMEDOUT, NULL);
    }
    g_propagate_error(error, why);
    return false;
}

bool dkr_dial(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait, DkrDial *ret_dial,
              GError **error)
{
    DkrDial dial = DKR_DIAL_NONE;
    dial.login = login;
    SprWait limited = spr_wait_within(wait, CONNECT_LIMIT_MS);
    GError *why = NULL;
    if (!dial_by(endpoint, &limited, &dial, &why))
        return finish(endpoint, wait, &dial, why, error);
    *ret_dial = dial;
    return true;
}

/* --------------------------------------------------------------------- in two steps */

static bool prepare_unix(const DkrEndpoint *endpoint, DkrDial *dial, DkrTarget *target,
                         GError **error)
{
    struct sockaddr_un *to = (struct sockaddr_un *)&target->address;
    to->sun_family = AF_UNIX;
    g_strlcpy(to->sun_path, endpoint->path, sizeof to->sun_path);
    target->size = sizeof *to;
    return open_socket(AF_UNIX, &dial->fd, error);
}

/* A name with several addresses is dialled to see which one is served. */
static bool prepare_tcp(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial,
                        DkrTarget *target, GError **error)
{
    g_autoptr(DkrAddresses) found = NULL;
    if (!dkr_resolve(endpoint, wait, &found, error))
        return false;
    const struct addrinfo *first = dkr_addresses_first(found);
    memcpy(&target->address, first->ai_addr, first->ai_addrlen);
    target->size = first->ai_addrlen;
    if (first->ai_next) {
        if (!dial_any(endpoint, first, wait, dial, error))
            return false;
        target->size = sizeof target->address;
        getpeername(dial->fd, (struct sockaddr *)&target->address, &target->size);
        dkr_dial_close(dial);
    }
    if (!open_socket(target->address.ss_family, &dial->fd, error))
        return false;
    keep_alive(dial->fd);
    return true;
}

/* libcurl 7.88 connects even what it was told is connected, and keeps no connection whose other end
 * has no name: so it is given one of ours on the loopback to connect to. */
static bool prepare_ssh(DkrDial *dial, DkrTarget *target, GError **error)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (!open_socket(AF_INET, &dial->fd, error) || !open_socket(AF_INET, &dial->listener, error))
        return false;
    target->size = sizeof target->address;
    if (bind(dial->listener, (struct sockaddr *)&any, sizeof any) < 0 ||
        listen(dial->listener, 4) < 0 ||
        getsockname(dial->listener, (struct sockaddr *)&target->address, &target->size) < 0)
        return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor",
                              "no socket on the loopback for ssh");
    return true;
}

static bool prepare(const DkrEndpoint *endpoint, const SprWait *wait, DkrDial *dial,
                    DkrTarget *target, GError **error)
{
    switch (endpoint->via) {
    case DKR_VIA_TCP:
        return prepare_tcp(endpoint, wait, dial, target, error);
    case DKR_VIA_SSH:
        return prepare_ssh(dial, target, error);
    default:
        return prepare_unix(endpoint, dial, target, error);
    }
}

bool dkr_dial_prepare(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait,
                      DkrDial *ret_dial, DkrTarget *ret_target, GError **error)
{
    DkrDial dial = DKR_DIAL_NONE;
    DkrTarget target = {0};
    dial.login = login;
    SprWait limited = spr_wait_within(wait, CONNECT_LIMIT_MS);
    GError *why = NULL;
    if (!prepare(endpoint, &limited, &dial, &target, &why))
        return finish(endpoint, wait, &dial, why, error);
    *ret_dial = dial;
    *ret_target = target;
    return true;
}

/* Anybody on this machine may have connected to it, too. */
static bool is_other_end(int fd, int accepted)
{
    struct sockaddr_in ours = {0}, theirs = {0};
    socklen_t size = sizeof ours, their_size = sizeof theirs;
    return getsockname(fd, (struct sockaddr *)&ours, &size) == 0 &&
           getpeername(accepted, (struct sockaddr *)&theirs, &their_size) == 0 &&
           ours.sin_port == theirs.sin_port && ours.sin_addr.s_addr == theirs.sin_addr.s_addr;
}

bool dkr_dial_settle(const DkrEndpoint *endpoint, DkrDial *dial, GError **error)
{
    while (dial->listener >= 0) {
        int fd = spr_fd_above_standard(accept4(dial->listener, NULL, NULL, SOCK_CLOEXEC));
        if (fd < 0)
            return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ||
                   spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor", "accept");
        bool ok = true;
        if (is_other_end(dial->fd, fd)) {
            keep_alive(fd); /* and no delay, which the child keeps */
            ok = start_ssh(endpoint, fd, &dial->child, error);
            close(dial->listener);
            dial->listener = -1;
        }
        close(fd);
        if (!ok)
            return false;
    }
    return true;
}

void dkr_dial_heard(DkrDial *dial)
{
    spr_gate_leave(&dial->login);
    dial->heard = true;
}

/* A child that the host forked may hold the descriptor, too. */
void dkr_dial_close(DkrDial *dial)
{
    if (dial->fd >= 0) {
        shutdown(dial->fd, SHUT_RDWR);
        close(dial->fd);
    }
    if (dial->listener >= 0)
        close(dial->listener);
    spr_child_end(dial->child);
    spr_gate_leave(&dial->login);
    *dial = (DkrDial)DKR_DIAL_NONE;
}
