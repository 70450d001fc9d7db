#include "supervisor/client/fileitems.h"

#define LEAST_ROOM 64 /* for a chunk to be worth it */
/* What a slow source gave goes out, so that the end of the call is seen between two pieces. */
#define SLOW_US (50 * 1000)

static gsize take_pending(SprItems *items, guint8 *to, gsize room)
{
    gsize n = MIN(room, items->pending->len - items->used);
    memcpy(to, items->pending->data + items->used, n);
    items->used += n;
    if (items->used == items->pending->len) {
        g_byte_array_set_size(items->pending, 0);
        items->used = 0;
    }
    return n;
}

static SprSourceStatus next_into(SprItems *items, guint8 *to, gsize room, gsize *ret_count)
{
    guint8 few[LEAST_ROOM];
    if (room >= LEAST_ROOM)
        return items->next(items->ctx, to, room, ret_count);
    gsize n = 0;
    SprSourceStatus status = items->next(items->ctx, few, sizeof few, &n);
    g_byte_array_append(items->pending, few, (guint)n);
    return status;
}

/* Nothing of a file is seen before its end, so nothing is lost by waiting for more of it; and small
 * files travel together. */
static SprSourceStatus read_items(void *ctx, void *buffer, gsize room, gsize *ret_count)
{
    SprItems *items = ctx;
    guint8 *to = buffer;
    SprSourceStatus status = SPR_SOURCE_OK;
    gsize done = 0;
    gint64 until_us = g_get_monotonic_time() + SLOW_US;
    while (done < room && status == SPR_SOURCE_OK) {
        gsize n = 0;
        if (done > 0 && g_get_monotonic_time() >= until_us)
            break;
        if (items->pending->len > 0)
            n = take_pending(items, to + done, room - done);
        else if (!items->ended)
            status = next_into(items, to + done, room - done, &n);
        else
            break;
        done += n;
    }
    *ret_count = done;
    return done > 0 && status == SPR_SOURCE_AGAIN ? SPR_SOURCE_OK : status;
}

void spr_items_init(SprItems *items,
                    SprSourceStatus (*next)(void *ctx, guint8 *to, gsize room, gsize *ret_count),
                    void *ctx)
{
    *items = (SprItems){.next = next, .ctx = ctx, .pending = g_byte_array_new()};
    items->source = (SprSource){items, -1, read_items};
}

void spr_items_clear(SprItems *items)
{
    g_byte_array_unref(items->pending);
}

void spr_items_end(SprItems *items)
{
    items->ended = true;
    spr_file_put_item(items->pending, SPR_FILE_END, 0, 0, NULL, NULL);
}
