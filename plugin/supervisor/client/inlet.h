/*
 * A pipe of ours that a request takes its input from, so that it passes nobody on its way: we
 * write, and hand the read end in. It is a socket that goes one way: those move bytes in pieces
 * larger than a page, which pipes don't, and hold nothing of the user's pages for pipes. We keep
 * the read end as well, so that we hear of a reader who leaves by the answer alone. But whoever has
 * that end may shut it for all. For exec.c; of one call.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define SPR_INLET_ROOM (256u * 1024)

typedef struct {
    int fd; /* the write end, which never blocks; -1: none, or closed */
    int read_end;
    guint8 *bytes; /* SPR_INLET_ROOM; those from `at` to `end` are still to be written */
    gsize at, end;
} SprInlet;

/* False with errno. */
bool spr_inlet_open(SprInlet *inlet);
void spr_inlet_close(SprInlet *inlet);

/* Writes what the pipe takes now. False with errno when it takes nothing any more: it was shut. */
bool spr_inlet_push(SprInlet *inlet);
