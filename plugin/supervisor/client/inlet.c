#include "supervisor/client/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define WIDE (1024 * 1024)

/* Only our end must not block: the flag is of each end by itself. */
bool spr_inlet_open(SprInlet *inlet)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETPIPE_SZ, WIDE); /* as it is, where that is too much */
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
        gssize n = write(inlet->fd, inlet->bytes + inlet->at, inlet->end - inlet->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        inlet->at += (gsize)n;
    }
    inlet->at = inlet->end = 0;
    return true;
}
