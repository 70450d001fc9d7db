/*
 * Waits for several things of one spawned process at once: output of either stream, and its end.
 * For a thread that follows a process; one at a time uses a watch. What is asked for is told once.
 */
#pragma once

#include "supervisor/client/process.h"

typedef struct SprWatch SprWatch;

typedef enum {
    SPR_WATCH_NOTHING = -1, /* the extra descriptor is ready */
    SPR_WATCH_END = 0,
    SPR_WATCH_OUT = SPR_STREAM_OUT,
    SPR_WATCH_ERR = SPR_STREAM_ERR
} SprWatchKind;

typedef struct {
    SprWatchKind kind;
    guint64 offset; /* of the first byte; what lay between was dropped */
    const guint8 *bytes;
    gsize size; /* 0: the stream is at its end */
} SprWatchEvent;

bool spr_watch_new(SprSupervisor *supervisor, guint64 id, SprWatch **ret_watch, GError **error);
void spr_watch_free(SprWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprWatch, spr_watch_free)

/* Asks for at most `most` bytes from offset on; all before it was taken. Not again before the
 * event of the stream came. */
bool spr_watch_output(SprWatch *watch, SprStream stream, guint64 offset, gsize most,
                      GError **error);
bool spr_watch_end(SprWatch *watch, GError **error);

/* The bytes of the event last until the next call. SPR_E_NOT_FOUND when the process is not there
 * any more. */
bool spr_watch_next(SprWatch *watch, const SprWait *wait, struct pollfd *extra,
                    SprWatchEvent *ret_event, GError **error);
