#include "base/latch.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct SprLatch {
    gatomicrefcount refs;
    int fd;
};

SprLatch *spr_latch_new(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return NULL;
    SprLatch *latch = g_new0(SprLatch, 1);
    g_atomic_ref_count_init(&latch->refs);
    latch->fd = fd;
    return latch;
}

SprLatch *spr_latch_ref(SprLatch *latch)
{
    g_atomic_ref_count_inc(&latch->refs);
    return latch;
}

void spr_latch_unref(SprLatch *latch)
{
    if (!latch || !g_atomic_ref_count_dec(&latch->refs))
        return;
    close(latch->fd);
    g_free(latch);
}

void spr_latch_open(SprLatch *latch)
{
    eventfd_write(latch->fd, 1);
}

bool spr_latch_wait(SprLatch *latch, const SprWait *wait, GError **error)
{
    struct pollfd p = {.fd = latch->fd, .events = POLLIN};
    int ready;
    return spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error);
}
