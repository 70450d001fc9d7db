#include "relay.h"

#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_FOR_SERVER_MS 10000
#define BUFFER (256 * 1024)

/* Anybody may have put a socket of that name there: what answers must be our own user's. */
static int connect_to(const struct sockaddr_un *name)
{
    int64_t until = sup_after_ms(WAIT_FOR_SERVER_MS);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) == 0;
        if (fd < 0 || (connected && sup_peer_is_own(fd)))
            return fd;
        int error = connected ? EACCES : errno;
        close(fd);
        errno = error;
        if ((error != ENOENT && error != ECONNREFUSED) || sup_now_ms() >= until)
            return -1;
        struct timespec time = {0, 2000000};
        nanosleep(&time, NULL);
    }
}

/* One direction: read when empty, written when not; `from` is -1 once it ended. */
typedef struct {
    int from, to;
    size_t start, end;
    bool is_input;
    char bytes[BUFFER];
} Way;

static short wanted_events(const Way *way, bool reading)
{
    bool empty = way->start == way->end;
    return reading ? (empty && way->from >= 0 ? POLLIN : 0) : (empty ? 0 : POLLOUT);
}

static void end_way(Way *way)
{
    way->from = -1;
    if (way->is_input)
        shutdown(way->to, SHUT_WR);
}

/* False when nobody takes the bytes any more. */
static bool drain_way(Way *way)
{
    while (way->start < way->end) {
        ssize_t n = write(way->to, way->bytes + way->start, way->end - way->start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        way->start += (size_t)n;
    }
    way->start = way->end = 0;
    return true;
}

/* Reads once and passes on at once: small frames need no second round of poll(). */
static bool fill_way(Way *way)
{
    ssize_t n = read(way->from, way->bytes, sizeof way->bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        end_way(way);
        return way->is_input;
    }
    way->end = (size_t)n;
    return drain_way(way);
}

static void copy_both(int fd)
{
    static Way up, down;
    up.is_input = true;
    up.from = 0;
    up.to = down.from = fd;
    down.to = 1;
    for (bool going = true; going;) {
        struct pollfd fds[] = {
            {.fd = up.from, .events = wanted_events(&up, true)},
            {.fd = fd, .events = (short)(wanted_events(&up, false) | wanted_events(&down, true))},
            {.fd = down.start < down.end ? 1 : -1, .events = POLLOUT},
        };
        if (fds[0].events == 0)
            fds[0].fd = -1;
        if (fds[1].events == 0)
            fds[1].fd = -1;
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return;
        if (fds[1].revents & POLLOUT)
            going = drain_way(&up);
        if (going && fds[0].revents)
            going = fill_way(&up);
        if (going && fds[2].revents)
            going = drain_way(&down);
        if (going && (fds[1].revents & ~POLLOUT) && down.start == down.end)
            going = fill_way(&down);
    }
}

int sup_relay(const char *directory)
{
    struct sockaddr_un name;
    prctl(PR_SET_DUMPABLE, 0);
    int fd = sup_socket_name(directory, &name) ? connect_to(&name) : -1;
    if (fd < 0) {
        dprintf(2, "sprov: no supervisor in %s: %s\n", directory, strerror(errno));
        return 125;
    }
    sup_reset_signals();
    signal(SIGPIPE, SIG_IGN);
    if (!sup_set_nonblocking(fd) || !sup_set_nonblocking(0) || !sup_set_nonblocking(1))
        return 125;
    copy_both(fd);
    return 0;
}
