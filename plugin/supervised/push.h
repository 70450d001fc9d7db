/*
 * Output of a spawned process pushed to sinks: a thread for each process that has some, which calls
 * them one at a time. Made by whoever spawns; every other function from any thread.
 */
#pragma once

#include "supervised/process.h"

typedef enum {
    DKR_FLOW_CONTINUE,
    DKR_FLOW_STOP,
    DKR_FLOW_PAUSE /* until dkr_push_resume() */
} DkrFlow;

typedef struct {
    DkrFlow (*write)(void *ctx, const void *data, gsize size); /* NULL: not pushed */
    void *ctx;
} DkrPushSink;

typedef struct {
    DkrPushSink out, err;
    void (*changed)(void *ctx); /* whether it is settled may have changed; no lock is held */
    void (*ended)(void *ctx);   /* the thread's last act, from which on the push may be freed */
    void *ctx;
} DkrPushOwner;

typedef struct DkrPush DkrPush;

/* Makes the thread, which waits for dkr_push_begin(). */
bool dkr_push_new(const DkrPushOwner *owner, DkrPush **ret_push, GError **error);

/* From here on sinks are called, until the thread has ended. */
void dkr_push_begin(DkrPush *push, DkrProcess *process);

/* No write begins any more; never waits for one that runs. */
void dkr_push_stop(DkrPush *push);

/* Of one that has ended() or never began. NULL does nothing. */
void dkr_push_free(DkrPush *push);

/* Undoes a pause of the stream, also one that a write which runs now is about to ask for. */
void dkr_push_resume(DkrPush *push, SprStream stream);

/* Settled: nothing is left that would be pushed without a resume. NULL wait: SPR_E_WOULD_BLOCK. */
bool dkr_push_wait_settled(DkrPush *push, const SprWait *wait, GError **error);
bool dkr_push_is_settled(DkrPush *push);
