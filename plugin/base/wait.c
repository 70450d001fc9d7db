#include "base/wait.h"

#include "base/error.h"
#include "base/latch.h"

#include <errno.h>
#include <string.h>

#define CANCEL_TICK_US (100 * 1000)
#define MAX_FDS 14

gint64 spr_deadline_after(gint64 ms)
{
    if (ms < 0 || ms > (SPR_NEVER / 4) / 1000)
        return SPR_NEVER;
    return g_get_monotonic_time() + ms * 1000;
}

SprWait spr_wait_for(gint64 timeout_ms)
{
    return (SprWait){.deadline_us = spr_deadline_after(timeout_ms), .cancel_fd = -1};
}

SprWait spr_wait_within(const SprWait *parent, gint64 timeout_ms)
{
    SprWait wait = *parent;
    wait.deadline_us = MIN(parent->deadline_us, spr_deadline_after(timeout_ms));
    return wait;
}

SprWait spr_wait_to_tidy(const SprWait *call, gint64 limit_ms)
{
    SprWait wait = spr_wait_for(limit_ms);
    if (call->deadline_us < SPR_NEVER - SPR_TIDY_MS * 1000)
        wait.deadline_us = MIN(wait.deadline_us, call->deadline_us + SPR_TIDY_MS * 1000);
    return wait;
}

bool spr_wait_is_cancelled(const SprWait *wait)
{
    if (wait->is_cancelled && wait->is_cancelled(wait->cancel_ctx))
        return true;
    if (wait->cancel_fd < 0)
        return false;
    struct pollfd p = {.fd = wait->cancel_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

bool spr_wait_is_over(const SprWait *wait)
{
    return wait->deadline_us != SPR_NEVER && g_get_monotonic_time() >= wait->deadline_us;
}

bool spr_wait_is_gone(const SprWait *wait)
{
    return wait->gone && spr_latch_is_open(wait->gone);
}

bool spr_wait_check(const SprWait *wait, GError **error)
{
    if (spr_wait_is_cancelled(wait))
        return spr_fail(error, SPR_E_CANCELLED, "cancelled", "cancelled by the caller");
    if (spr_wait_is_gone(wait))
        return spr_fail(error, SPR_E_NOT_READY, "gone", "what the call is about was taken away");
    if (spr_wait_is_over(wait))
        return spr_fail(error, SPR_E_TIMEOUT, "deadline", "the call's deadline passed");
    return true;
}

/* Milliseconds to the next event of the wait itself, rounded up, -1 for never. */
static int next_timeout_ms(const SprWait *wait, gint64 step_us)
{
    gint64 until = MIN(wait->deadline_us, step_us);
    gint64 now = g_get_monotonic_time();
    if (wait->is_cancelled)
        until = MIN(until, now + CANCEL_TICK_US);
    if (until == SPR_NEVER)
        return -1;
    return (int)CLAMP((until - now + 999) / 1000, 0, 3600 * 1000);
}

bool spr_wait_poll(const SprWait *wait, struct pollfd *fds, guint n_fds, gint64 step_us,
                   int *ret_ready, GError **error)
{
    struct pollfd all[MAX_FDS + 2];
    n_fds = MIN(n_fds, MAX_FDS);
    for (;;) {
        for (guint i = 0; i < n_fds; i++) {
            all[i] = fds[i];
            all[i].revents = 0;
        }
        all[n_fds] = (struct pollfd){.fd = wait->cancel_fd, .events = POLLIN};
        all[n_fds + 1] =
            (struct pollfd){.fd = wait->gone ? spr_latch_fd(wait->gone) : -1, .events = POLLIN};
        int n = poll(all, n_fds + 2, next_timeout_ms(wait, step_us));
        if (n < 0 && errno != EINTR)
            return spr_fail_errno(error, SPR_E_INTERNAL, errno, "poll", "poll");
        if (!spr_wait_check(wait, error))
            return false;
        int ready = 0;
        for (guint i = 0; i < n_fds; i++) {
            fds[i].revents = n > 0 ? all[i].revents : 0;
            ready += fds[i].revents != 0;
        }
        if (ready > 0 || (step_us != SPR_NEVER && g_get_monotonic_time() >= step_us)) {
            *ret_ready = ready;
            return true;
        }
    }
}
