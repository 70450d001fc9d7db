#include "supervisor/client/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Only our end must not block: the flag is of each end by itself. */
bool spr_tap_open(SprTap *tap, gsize wide, int *ret_write_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *tap = (SprTap){.fd = ends[0], .wide = wide};
    *ret_write_end = ends[1];
    return true;
}

void spr_tap_close(SprTap *tap)
{
    if (tap->fd >= 0)
        close(tap->fd);
    tap->fd = -1;
}

gsize spr_tap_read(SprTap *tap, guint8 *into, gsize room)
{
    gssize n;
    do
        n = read(tap->fd, into, room);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        spr_tap_close(tap);
        return 0;
    }
    if ((gsize)n == room && tap->wide > 0) {
        fcntl(tap->fd, F_SETPIPE_SZ, (int)tap->wide);
        tap->wide = 0;
    }
    tap->owed -= MIN(tap->owed, (guint64)n);
    return (gsize)n;
}

void spr_tap_mark(SprTap *tap)
{
    int waiting = 0;
    if (tap->fd >= 0 && ioctl(tap->fd, FIONREAD, &waiting) == 0 && waiting > 0)
        tap->owed = (guint64)waiting;
}
