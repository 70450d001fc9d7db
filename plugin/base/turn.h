/*
 * One at a time: a turn that is taken and left, waited for with deadline and cancel token. For what
 * a call does piece by piece and others must not get in between. Any thread.
 */
#pragma once

#include "base/latch.h"

/* Zeros are a turn that nobody has. */
typedef struct {
    GMutex lock;
    SprLatch *taken; /* opens when it is left; NULL: free */
} SprTurn;

/* NULL wait: fails with SPR_E_WOULD_BLOCK rather than wait. */
bool spr_turn_take(SprTurn *turn, const SprWait *wait, GError **error);
void spr_turn_leave(SprTurn *turn);
