#include "base/latch.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct SprLatch {
    gatomicrefcount refs;
    int fd;
    GMutex lock; /* of the listeners */
    GQueue listeners;
};

SprLatch *spr_latch_new(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return NULL;
    SprLatch *latch = g_new0(SprLatch, 1);
    g_atomic_ref_count_init(&latch->refs);
    latch->fd = fd;
    g_mutex_init(&latch->lock);
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
    g_mutex_clear(&latch->lock);
    g_free(latch);
}

void spr_latch_open(SprLatch *latch)
{
    g_mutex_lock(&latch->lock);
    eventfd_write(latch->fd, 1);
    for (GList *link; (link = g_queue_pop_head_link(&latch->listeners));) {
        SprLatchListener *listener = link->data;
        listener->opened(listener->ctx);
        link->data = NULL;
    }
    g_mutex_unlock(&latch->lock);
}

bool spr_latch_is_open(const SprLatch *latch)
{
    struct pollfd p = {.fd = latch->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int spr_latch_fd(const SprLatch *latch)
{
    return latch->fd;
}

void spr_latch_listen(SprLatch *latch, SprLatchListener *listener)
{
    g_mutex_lock(&latch->lock);
    bool open = spr_latch_is_open(latch);
    listener->link = (GList){.data = open ? NULL : listener};
    if (open)
        listener->opened(listener->ctx);
    else
        g_queue_push_tail_link(&latch->listeners, &listener->link);
    g_mutex_unlock(&latch->lock);
}

void spr_latch_unlisten(SprLatch *latch, SprLatchListener *listener)
{
    g_mutex_lock(&latch->lock);
    if (listener->link.data)
        g_queue_unlink(&latch->listeners, &listener->link);
    g_mutex_unlock(&latch->lock);
}

bool spr_latch_wait(SprLatch *latch, const SprWait *wait, GError **error)
{
    struct pollfd p = {.fd = latch->fd, .events = POLLIN};
    int ready;
    return spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error);
}
