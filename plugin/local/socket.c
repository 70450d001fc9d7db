#include "local/socket.h"

#include "base/error.h"
#include "local/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO_LIMIT_MS (10 * 1000)
#define FULL_STEP_US (10 * 1000)

static int open_run(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "run", NULL);
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static char *supervisor_socket(void)
{
    return g_strdup_printf("%u.%u.sock", (unsigned)geteuid(), (unsigned)getegid());
}

/* By way of an open descriptor: the name of a socket has no room for a long path. */
static struct sockaddr_un by_descriptor(int fd, const char *below)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d%s%s", fd, *below ? "/" : "",
             below);
    return name;
}

static pid_t peer_of(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    return known && peer.uid == geteuid() ? peer.pid : -1;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* -------------------------------------------------------------------------- connecting */

/* A descriptor of the socket itself; -1 with errno. */
static int find_socket(const char *folder)
{
    g_autofree char *name = supervisor_socket();
    struct stat st;
    int run = open_run(folder);
    int found = run >= 0 ? openat(run, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    int why = errno;
    if (run >= 0)
        close(run);
    if (found >= 0 && (fstat(found, &st) < 0 || !S_ISSOCK(st.st_mode))) {
        close(found);
        found = -1;
        why = ENOTSOCK;
    }
    errno = why;
    return found;
}

/* Connects fd; waits where too many others do. */
static bool connect_to(int fd, int found, const SprWait *wait, GError **error)
{
    struct sockaddr_un name = by_descriptor(found, "");
    int ready;
    while (connect(fd, (const struct sockaddr *)&name, sizeof name) < 0) {
        if (errno != EAGAIN)
            return spr_fail_errno(error, SPR_E_IO, errno, "supervisor-lost",
                                  "the supervisor's socket does not answer");
        if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + FULL_STEP_US, &ready, error))
            return false;
    }
    return true;
}

typedef bool (*Opener)(const SprPipe *pipe, const SprWait *wait, SprSupervisor **ret_supervisor,
                       GError **error);

static bool connect_by(Opener opener, const char *folder, pid_t pid, const SprWait *wait,
                       SprSupervisor **ret_supervisor, GError **error)
{
    SprWait limited = spr_wait_within(wait, HELLO_LIMIT_MS);
    int found = find_socket(folder);
    int fd = found >= 0 ? new_socket() : -1;
    bool ok = fd >= 0 ? connect_to(fd, found, &limited, error)
                      : spr_fail_errno(error, SPR_E_IO, errno, "supervisor-lost",
                                       "the supervisor's socket in \"%s\" can't be opened", folder);
    if (found >= 0)
        close(found);
    if (ok && peer_of(fd) != pid)
        ok = spr_fail(error, SPR_E_IO, "supervisor-lost",
                      "the socket in \"%s\" is not the supervisor's: stop the sandbox and start it "
                      "again",
                      folder);
    if (!ok) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    SprPipe pipe = spr_pipe_for_socket(fd);
    pipe.write_with = NULL; /* the supervisor takes descriptors where it connected itself alone */
    return opener(&pipe, &limited, ret_supervisor, error);
}

bool local_socket_connect(const char *folder, pid_t pid, const SprWait *wait,
                          SprSupervisor **ret_supervisor, GError **error)
{
    return connect_by(spr_supervisor_open, folder, pid, wait, ret_supervisor, error);
}

bool local_socket_visit(const char *folder, pid_t pid, const SprWait *wait,
                        SprSupervisor **ret_supervisor, GError **error)
{
    return connect_by(spr_supervisor_visit, folder, pid, wait, ret_supervisor, error);
}

pid_t local_socket_peer(const char *folder)
{
    int found = find_socket(folder);
    int fd = found >= 0 ? new_socket() : -1;
    struct sockaddr_un name = by_descriptor(found, "");
    bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name) == 0;
    pid_t pid = connected ? peer_of(fd) : -1;
    if (found >= 0)
        close(found);
    if (fd >= 0)
        close(fd);
    return pid;
}

/* ----------------------------------------------------------------------------- booting */

bool local_socket_listen(const char *folder, int *ret_listener, GError **error)
{
    g_autofree char *old = supervisor_socket();
    int run = open_run(folder);
    int fd = run >= 0 ? new_socket() : -1;
    struct sockaddr_un name = by_descriptor(run, LOCAL_BOOT_SOCKET);
    if (run >= 0) {
        unlinkat(run, LOCAL_BOOT_SOCKET, 0);
        unlinkat(run, old, 0);
    }
    bool ok =
        fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 1) == 0;
    int why = errno;
    if (run >= 0)
        close(run);
    if (ok) {
        *ret_listener = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return spr_fail_errno(error, SPR_E_UNAVAILABLE, why, "no-socket",
                          "no socket can be made in \"%s/run\"", folder);
}

bool local_socket_accept(const char *folder, int listener, const SprWait *wait, pid_t *ret_pid,
                         SprSupervisor **ret_supervisor, GError **error)
{
    SprWait limited = spr_wait_within(wait, HELLO_LIMIT_MS);
    guint8 nonce[SPR_DIAL_NONCE];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int run = open_run(folder);
    if (run >= 0) {
        unlinkat(run, LOCAL_BOOT_SOCKET, 0);
        close(run);
    }
    if (fd < 0)
        return spr_fail_errno(error, SPR_E_IO, errno, "no-supervisor",
                              "the supervisor did not connect");
    *ret_pid = peer_of(fd);
    SprPipe pipe = spr_pipe_for_socket(fd);
    return spr_supervisor_open_dialed(&pipe, &limited, nonce, ret_supervisor, error);
}
