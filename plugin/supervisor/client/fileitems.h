/*
 * The input of a request about files (filerecords.h) as the source of a command: items and chunks,
 * put together as they are taken, as many at a time as there is room for. One thread at a time.
 */
#pragma once

#include "supervisor/client/filecodec.h"
#include "supervisor/client/supervisor.h"

typedef struct SprItems SprItems;

struct SprItems {
    /* More of it: appended to items->pending, or *ret_count bytes at `to`; END sets items->ended.
     */
    SprSourceStatus (*next)(void *ctx, guint8 *to, gsize room, gsize *ret_count);
    void *ctx;
    GByteArray *pending;
    gsize used;
    bool ended;
    SprSource source; /* its fd: what next() waits for when it says AGAIN */
};

void spr_items_init(SprItems *items,
                    SprSourceStatus (*next)(void *ctx, guint8 *to, gsize room, gsize *ret_count),
                    void *ctx);
void spr_items_clear(SprItems *items);

void spr_items_end(SprItems *items);
