/*
 * A thing that happens once, to be waited for together with deadline and cancel token: an eventfd
 * that becomes readable and stays so, and whoever has to do something then. Shared by reference;
 * any thread.
 */
#pragma once

#include "base/wait.h"

/* NULL when the process has no descriptor left. */
SprLatch *spr_latch_new(void);
SprLatch *spr_latch_ref(SprLatch *latch);
void spr_latch_unref(SprLatch *latch);

void spr_latch_open(SprLatch *latch);
bool spr_latch_is_open(const SprLatch *latch);
int spr_latch_fd(const SprLatch *latch);

/* opened() is called once, by who opens the latch, with its lock held: it must not use it. */
typedef struct {
    void (*opened)(void *ctx);
    void *ctx;
    GList link;
} SprLatchListener;

/* Kept by the caller until spr_latch_unlisten(). At once where it is open. */
void spr_latch_listen(SprLatch *latch, SprLatchListener *listener);

/* opened() does not run any more. */
void spr_latch_unlisten(SprLatch *latch, SprLatchListener *listener);

/* False as spr_wait_check() when the wait ended first. */
bool spr_latch_wait(SprLatch *latch, const SprWait *wait, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprLatch, spr_latch_unref)
