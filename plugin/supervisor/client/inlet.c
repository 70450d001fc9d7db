#include "supervisor/client/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIDE (1024 * 1024) /* or what an unprivileged process may have */

/* Only our end must not block: the flag is of each end by itself. */
bool spr_inlet_open(SprInlet *inlet)
{
    int ends[2], wide = WIDE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &wide, sizeof wide);
    shutdown(ends[1], SHUT_RD); /* the sandbox has nothing to say here */
    *inlet = (SprInlet){.fd = ends[1], .read_end = ends[0], .bytes = g_malloc(SPR_INLET_ROOM)};
    return true;
}

void spr_inlet_close(SprInlet *inlet)
{
    if (inlet->fd < 0)
        return;
    close(inlet->fd);
    close(inlet->read_end);
    g_free(inlet->bytes);
    *inlet = (SprInlet){.fd = -1, .read_end = -1};
}

bool spr_inlet_push(SprInlet *inlet)
{
    while (inlet->at < inlet->end) {
        gssize n = send(inlet->fd, inlet->bytes + inlet->at, inlet->end - inlet->at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        inlet->at += (gsize)n;
    }
    inlet->at = inlet->end = 0;
    return true;
}
