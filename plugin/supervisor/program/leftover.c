#include "leftover.h"

#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READS_A_ROUND 4

static void on_ready(SupWatch *watch, uint32_t events)
{
    static char scratch[65536];
    (void)events;
    for (int i = 0; i < READS_A_ROUND; i++) {
        ssize_t n = read(watch->fd, scratch, sizeof scratch);
        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        if (n == 0 || errno != EAGAIN) {
            sup_watch_close(watch);
            free(watch);
        }
        return;
    }
}

void sup_leftover_read(int fd)
{
    if (fd < 0)
        return;
    SupWatch *watch = calloc(1, sizeof *watch);
    bool watched = false;
    if (watch && sup_set_nonblocking(fd)) {
        *watch = (SupWatch){.fd = fd, .ready = on_ready};
        watched = sup_watch_set(watch, EPOLLIN);
    }
    if (!watched) {
        close(fd);
        free(watch);
    }
}
