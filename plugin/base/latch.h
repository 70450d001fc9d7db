/*
 * A thing that happens once, to be waited for together with deadline and cancel token: an eventfd
 * that becomes readable and stays so. Shared by reference; any thread.
 */
#pragma once

#include "base/wait.h"

typedef struct SprLatch SprLatch;

/* NULL when the process has no descriptor left. */
SprLatch *spr_latch_new(void);
SprLatch *spr_latch_ref(SprLatch *latch);
void spr_latch_unref(SprLatch *latch);

void spr_latch_open(SprLatch *latch);

/* False with SPR_E_CANCELLED or SPR_E_TIMEOUT when the wait ended first. */
bool spr_latch_wait(SprLatch *latch, const SprWait *wait, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprLatch, spr_latch_unref)
