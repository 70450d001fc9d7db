#include "base/turn.h"

#include "base/error.h"

bool spr_turn_take(SprTurn *turn, const SprWait *wait, GError **error)
{
    bool ok = true;
    g_mutex_lock(&turn->lock);
    while (ok && turn->taken) {
        g_autoptr(SprLatch) latch = spr_latch_ref(turn->taken);
        g_mutex_unlock(&turn->lock);
        ok = wait ? spr_latch_wait(latch, wait, error)
                  : spr_fail(error, SPR_E_WOULD_BLOCK, "would-block",
                             "another call is at it on another thread");
        g_mutex_lock(&turn->lock);
    }
    if (ok && !(turn->taken = spr_latch_new()))
        ok =
            spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor", "the process has no descriptor left");
    g_mutex_unlock(&turn->lock);
    return ok;
}

void spr_turn_leave(SprTurn *turn)
{
    g_mutex_lock(&turn->lock);
    SprLatch *latch = g_steal_pointer(&turn->taken);
    g_mutex_unlock(&turn->lock);
    spr_latch_open(latch);
    spr_latch_unref(latch);
}
