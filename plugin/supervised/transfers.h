/*
 * The calls that move bytes in a life: a stop or destroy ends them rather than wait for the last
 * byte. A member of each provider's DkrLife; any thread.
 */
#pragma once

#include "base/wait.h"

typedef struct {
    GMutex lock; /* guards all below */
    GCond left;
    guint running;
    SprLatch *ending; /* opens when they have to end; NULL before the first */
} DkrTransfers;

void dkr_transfers_init(DkrTransfers *transfers);
void dkr_transfers_clear(DkrTransfers *transfers);

/* Around such a call, which waits by *ret_wait from then on. False when the process has no
 * descriptor left. */
bool dkr_transfers_enter(DkrTransfers *transfers, const SprWait *wait, SprWait *ret_wait,
                         GError **error);
void dkr_transfers_leave(DkrTransfers *transfers, const SprWait *entered);

/* Before the sandbox is stopped or removed: ends them, gives them a moment to tidy up, and lets
 * none begin, until that failed and the life goes on. */
void dkr_transfers_end(DkrTransfers *transfers);
void dkr_transfers_go_on(DkrTransfers *transfers);
