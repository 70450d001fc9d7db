#include "supervised/transfers.h"

#include "base/error.h"
#include "base/latch.h"

/* Most that a stop or destroy waits for transfers that it ended. A callback of the host may hold
 * one for ever. */
#define LEAVE_LIMIT_US (2 * G_USEC_PER_SEC)

void dkr_transfers_init(DkrTransfers *transfers)
{
    g_mutex_init(&transfers->lock);
    g_cond_init(&transfers->left);
}

void dkr_transfers_clear(DkrTransfers *transfers)
{
    spr_latch_unref(transfers->ending);
    g_cond_clear(&transfers->left);
    g_mutex_clear(&transfers->lock);
}

bool dkr_transfers_enter(DkrTransfers *transfers, const SprWait *wait, SprWait *ret_wait,
                         GError **error)
{
    g_mutex_lock(&transfers->lock);
    if (!transfers->ending)
        transfers->ending = spr_latch_new();
    SprLatch *ending = transfers->ending ? spr_latch_ref(transfers->ending) : NULL;
    transfers->running += ending != NULL;
    g_mutex_unlock(&transfers->lock);
    *ret_wait = *wait;
    ret_wait->gone = ending;
    return ending ||
           spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor", "the process has no descriptor left");
}

void dkr_transfers_leave(DkrTransfers *transfers, const SprWait *entered)
{
    g_mutex_lock(&transfers->lock);
    transfers->running--;
    g_cond_broadcast(&transfers->left);
    g_mutex_unlock(&transfers->lock);
    spr_latch_unref(entered->gone);
}

void dkr_transfers_end(DkrTransfers *transfers)
{
    gint64 until_us = g_get_monotonic_time() + LEAVE_LIMIT_US;
    g_mutex_lock(&transfers->lock);
    if (!transfers->ending)
        transfers->ending = spr_latch_new();
    if (transfers->ending)
        spr_latch_open(transfers->ending);
    while (transfers->running > 0 &&
           g_cond_wait_until(&transfers->left, &transfers->lock, until_us))
        ;
    g_mutex_unlock(&transfers->lock);
}

void dkr_transfers_go_on(DkrTransfers *transfers)
{
    g_mutex_lock(&transfers->lock);
    g_clear_pointer(&transfers->ending, spr_latch_unref);
    g_mutex_unlock(&transfers->lock);
}
