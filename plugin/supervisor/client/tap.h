/*
 * A pipe of ours that one stream of a command writes into, so that its output passes nobody on its
 * way: we keep the read end and hand the other one in. For exec.c; of one call.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    int fd;       /* the read end; -1: none, or at its end */
    guint64 owed; /* what had been written when the command ended, from the mark on */
    gsize wide;   /* its size once it is worth it; 0 then */
} SprTap;

/* False with errno. The write end is the caller's. wide: how large the pipe becomes when reads fill
 * their room. */
bool spr_tap_open(SprTap *tap, gsize wide, int *ret_write_end);
void spr_tap_close(SprTap *tap);

/* Reads once without waiting: 0 when there is nothing now or the end was seen. */
gsize spr_tap_read(SprTap *tap, guint8 *into, gsize room);

/* Notes how much is in the pipe: reads count against it. */
void spr_tap_mark(SprTap *tap);
