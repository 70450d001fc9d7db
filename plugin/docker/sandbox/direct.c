#include "sandbox/direct.h"

#include "base/error.h"
#include "base/text.h"
#include "base/wait.h"
#include "sandbox/spec.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_BYTES 8
#define BACKLOG 128
#define LOOKS_MOST 256   /* at connections of strangers, in one call */
#define GREETING_MS 1000 /* the supervisor greets before anybody can accept it */
#define STRANGER_MS 50   /* whose process is not known yet */
#define DIAL_MS 2000

typedef struct {
    guint8 bytes[SPR_DIAL_NONCE];
} Nonce;

struct DkrDirect {
    char *path;
    int listener;

    GMutex lock;     /* guards the rest */
    bool boots;      /* a connection without a nonce is expected */
    pid_t pid;       /* of the supervisor as this process sees it; 0: not known */
    GArray *pending; /* nonces that were handed out */
};

/* ----------------------------------------------------------------------------- listening */

static bool socket_name(const char *path, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name->sun_path)
        return false;
    memcpy(name->sun_path, path, strlen(path));
    return true;
}

/* The file of a host that is gone: nobody listens there. */
static void remove_stale(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)name, sizeof *name) < 0 && errno == ECONNREFUSED)
        unlink(name->sun_path);
    close(fd);
}

/* The folder is writable for this user alone, so that the name is ours between bind and chmod. */
static int listen_at(const char *path)
{
    struct sockaddr_un name;
    if (!socket_name(path, &name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (const struct sockaddr *)&name, sizeof name) == 0 && chmod(path, 0666) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    int errno_value = errno;
    close(fd);
    errno = errno_value;
    return -1;
}

static DkrDirect *direct_new(const char *path, int listener)
{
    DkrDirect *direct = g_new0(DkrDirect, 1);
    direct->path = g_strdup(path);
    direct->listener = listener;
    direct->pending = g_array_new(FALSE, FALSE, sizeof(Nonce));
    g_mutex_init(&direct->lock);
    return direct;
}

bool dkr_direct_new(const char *folder, DkrDirect **ret_direct, GError **error)
{
    g_autofree char *name = spr_random_hex(NAME_BYTES);
    g_autofree char *path = g_build_filename(folder, name, NULL);
    int listener = listen_at(path);
    if (listener < 0)
        return spr_fail_errno(error, SPR_E_UNAVAILABLE, errno, "no-socket",
                              "no socket can be made in \"%s\"", folder);
    *ret_direct = direct_new(path, listener);
    return true;
}

bool dkr_direct_restore(const char *path, DkrDirect **ret_direct, GError **error)
{
    struct sockaddr_un name;
    g_autofree char *folder = g_path_get_dirname(path);
    if (!dkr_runtime_restore_folder(folder, error))
        return false;
    if (socket_name(path, &name))
        remove_stale(&name);
    int listener = listen_at(path);
    if (listener < 0)
        return dkr_direct_new(folder, ret_direct, error);
    *ret_direct = direct_new(path, listener);
    return true;
}

void dkr_direct_free(DkrDirect *direct)
{
    if (!direct)
        return;
    close(direct->listener);
    unlink(direct->path);
    g_array_unref(direct->pending);
    g_mutex_clear(&direct->lock);
    g_free(direct->path);
    g_free(direct);
}

const char *dkr_direct_path(const DkrDirect *direct)
{
    return direct->path;
}

/* ----------------------------------------------------------------------------- accepting */

void dkr_direct_expect(DkrDirect *direct, pid_t pid)
{
    g_mutex_lock(&direct->lock);
    direct->boots = pid > 0;
    direct->pid = pid;
    g_mutex_unlock(&direct->lock);
}

/* A nonce is good once. */
static bool take_nonce(DkrDirect *direct, const guint8 nonce[SPR_DIAL_NONCE])
{
    bool found = false;
    g_mutex_lock(&direct->lock);
    for (guint i = 0; !found && i < direct->pending->len; i++) {
        found = memcmp(nonce, g_array_index(direct->pending, Nonce, i).bytes, SPR_DIAL_NONCE) == 0;
        if (found)
            g_array_remove_index_fast(direct->pending, i);
    }
    g_mutex_unlock(&direct->lock);
    return found;
}

/* The boot needs none, once. */
static bool take_boot(DkrDirect *direct, pid_t pid, const guint8 nonce[SPR_DIAL_NONCE])
{
    static const guint8 none[SPR_DIAL_NONCE];
    g_mutex_lock(&direct->lock);
    bool expected =
        direct->boots && pid > 0 && pid == direct->pid && memcmp(nonce, none, sizeof none) == 0;
    direct->boots = direct->boots && !expected;
    g_mutex_unlock(&direct->lock);
    return expected;
}

static void learn(DkrDirect *direct, pid_t pid)
{
    g_mutex_lock(&direct->lock);
    if (pid > 0)
        direct->pid = pid;
    g_mutex_unlock(&direct->lock);
}

static pid_t peer_of(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/* Takes fd over; NULL when it is a stranger's. */
static SprSupervisor *check(DkrDirect *direct, int fd)
{
    pid_t pid = peer_of(fd);
    g_mutex_lock(&direct->lock);
    pid_t known = direct->pid;
    g_mutex_unlock(&direct->lock);
    if (known > 0 && pid > 0 && pid != known) {
        close(fd);
        return NULL;
    }
    guint8 nonce[SPR_DIAL_NONCE] = {0};
    SprPipe pipe = spr_pipe_for_socket(fd);
    SprWait wait = spr_wait_for(known > 0 && pid > 0 ? GREETING_MS : STRANGER_MS);
    g_autoptr(SprSupervisor) supervisor = NULL;
    if (!spr_supervisor_open_dialed(&pipe, &wait, nonce, &supervisor, NULL) ||
        (!take_boot(direct, pid, nonce) && !take_nonce(direct, nonce)))
        return NULL;
    learn(direct, pid);
    return g_steal_pointer(&supervisor);
}

/* The first of those in the queue that is the supervisor; NULL when it is not among them. */
static SprSupervisor *accept_waiting(DkrDirect *direct)
{
    SprSupervisor *supervisor = NULL;
    for (int i = 0; i < LOOKS_MOST && !supervisor; i++) {
        int fd = accept4(direct->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            supervisor = check(direct, fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    return supervisor;
}

SprSupervisor *dkr_direct_boot(DkrDirect *direct, gint64 wait_ms)
{
    SprWait wait = spr_wait_for(wait_ms);
    struct pollfd fd = {.fd = direct->listener, .events = POLLIN};
    int ready;
    g_mutex_lock(&direct->lock);
    bool boots = direct->boots;
    g_mutex_unlock(&direct->lock);
    SprSupervisor *supervisor = boots ? accept_waiting(direct) : NULL;
    while (boots && !supervisor && spr_wait_poll(&wait, &fd, 1, SPR_NEVER, &ready, NULL))
        supervisor = accept_waiting(direct);
    if (supervisor && !spr_supervisor_is_alive(supervisor)) /* its greeting was there before */
        g_clear_pointer(&supervisor, spr_supervisor_unref);
    return supervisor;
}

/* ------------------------------------------------------------------------------- dialing */

static bool new_nonce(DkrDirect *direct, Nonce *ret_nonce, GError **error)
{
    if (getrandom(ret_nonce->bytes, sizeof ret_nonce->bytes, 0) != sizeof ret_nonce->bytes)
        return spr_fail_errno(error, SPR_E_INTERNAL, errno, "random", "no random bytes");
    g_mutex_lock(&direct->lock);
    g_array_append_val(direct->pending, *ret_nonce);
    g_mutex_unlock(&direct->lock);
    return true;
}

/* Callers at the same time may get each other's: all are as good, and as many come as were asked
 * for. */
bool dkr_direct_dial(DkrDirect *direct, SprSupervisor *through, const SprWait *wait,
                     SprSupervisor **ret_supervisor, GError **error)
{
    Nonce nonce;
    SprWait limited = spr_wait_within(wait, DIAL_MS);
    g_autofree char *inside = dkr_spec_socket_inside(direct->path);
    if (!new_nonce(direct, &nonce, error))
        return false;
    bool ok = spr_supervisor_dial(through, inside, nonce.bytes, &limited, error);
    SprSupervisor *supervisor = ok ? accept_waiting(direct) : NULL;
    if (!supervisor)
        take_nonce(direct, nonce.bytes);
    if (ok && !supervisor)
        return spr_fail(error, SPR_E_UNAVAILABLE, "no-socket",
                        "the sandbox's supervisor did not come to the host's socket");
    *ret_supervisor = supervisor;
    return ok;
}
