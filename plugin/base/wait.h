/*
 * How long a call may wait and what ends it early: a monotonic deadline, the caller's cancel token,
 * and the end of what it is about. Every blocking loop of the plugin polls through spr_wait_poll(),
 * so that all are honoured everywhere. A SprWait belongs to one call on one thread.
 */
#pragma once

#include <glib.h>
#include <poll.h>
#include <stdbool.h>

#define SPR_NEVER G_MAXINT64
#define SPR_TIDY_MS (10 * 1000)

typedef struct SprLatch SprLatch;

typedef struct {
    gint64 deadline_us;          /* monotonic time, SPR_NEVER for none */
    int cancel_fd;               /* readable or hung up once cancelled; -1 for none */
    int (*is_cancelled)(void *); /* asked at least every 100 ms; may be NULL */
    void *cancel_ctx;
    SprLatch *gone; /* opens when what the call is about is taken away; borrowed, may be NULL */
} SprWait;

/* A wait without token that ends timeout_ms from now; below 0 never. */
SprWait spr_wait_for(gint64 timeout_ms);

/* The same token, but not longer than timeout_ms from now (below 0: as parent). */
SprWait spr_wait_within(const SprWait *parent, gint64 timeout_ms);

/* For what has to be tidied up when the wait of a call has ended: limit_ms from now, and never
 * later than SPR_TIDY_MS behind the call's deadline. No token ends it. */
SprWait spr_wait_to_tidy(const SprWait *call, gint64 limit_ms);

/* now + ms without overflow; SPR_NEVER for ms < 0 or far away. */
gint64 spr_deadline_after(gint64 ms);

bool spr_wait_is_cancelled(const SprWait *wait);
bool spr_wait_is_over(const SprWait *wait);
bool spr_wait_is_gone(const SprWait *wait);

/* False with SPR_E_CANCELLED, SPR_E_NOT_READY (reason "gone") or SPR_E_TIMEOUT when the token
 * fired, gone opened or the deadline passed. */
bool spr_wait_check(const SprWait *wait, GError **error);

/* Polls fds until one is ready, the wait ends, or step_us (a monotonic time, SPR_NEVER for none)
 * comes. Returns true with *ret_ready the number of ready descriptors (0: step_us came), or false
 * as spr_wait_check(). At most 14 descriptors. */
bool spr_wait_poll(const SprWait *wait, struct pollfd *fds, guint n_fds, gint64 step_us,
                   int *ret_ready, GError **error);
