/*
 * What one handle has read of its process: a cursor for each stream, and the descriptors that tell
 * an event loop when to read on. A thread watches the process once the first descriptor was asked
 * for. Any thread.
 */
#pragma once

#include "supervised/process.h"
#include "supervisor/client/watch.h"

typedef struct {
    bool (*may_end)(void *ctx); /* whether an ended process may be told as ended already */
    void (*started)(void *ctx); /* before the thread is */
    void (*ended)(void *ctx);   /* its last act, from which on the cursors may be freed */
    void *ctx;
} DkrCursorsOwner;

typedef struct DkrCursors DkrCursors;

DkrCursors *dkr_cursors_new(DkrProcess *process, const DkrCursorsOwner *owner);

/* Of those without a thread, or whose thread has ended. NULL does nothing. */
void dkr_cursors_free(DkrCursors *cursors);

/* Ends the thread; does not wait for it. */
void dkr_cursors_stop(DkrCursors *cursors);

/* may_end() may answer otherwise now. */
void dkr_cursors_wake(DkrCursors *cursors);

/* dkr_process_read() at the cursor of the stream; calls at the same time take turns. */
bool dkr_cursors_read(DkrCursors *cursors, SprStream stream, void *buffer, gsize room,
                      gsize *ret_count, const SprWait *wait, bool nowait, GError **error);

/* Readable while there is something to tell; the same each time, -1 when there can be none. */
int dkr_cursors_fd(DkrCursors *cursors, SprWatchKind kind);
