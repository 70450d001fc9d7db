/*
 * The two buffers of a connection: what was received, shared by reference with who still works on
 * it, and what waits to be sent, wiped where it was secret. Internal to client/; the caller locks.
 */
#pragma once

#include "supervisor/client/pipe.h"

#include <stdbool.h>

#define SPR_RECEIVED_ROOM (256 * 1024)

typedef struct {
    gint refs;
    gsize start, end;
    guint8 bytes[SPR_RECEIVED_ROOM];
} SprReceived;

SprReceived *spr_received_new(void);
SprReceived *spr_received_ref(SprReceived *received);
void spr_received_unref(SprReceived *received);

/* Room for at least `needed` bytes from start on, in the same buffer when nobody else has it, or in
 * another, to which the rest moves. False without memory. */
bool spr_received_make_room(SprReceived **received, gsize needed);

typedef struct {
    guint8 *bytes;
    gsize start, end, room;
    bool secret;
} SprUnsent;

bool spr_unsent_append(SprUnsent *unsent, const void *data, gsize size);

/* Writes what the pipe takes; false with errno when it is broken. */
bool spr_unsent_flush(SprUnsent *unsent, const SprPipe *pipe);
void spr_unsent_clear(SprUnsent *unsent);
