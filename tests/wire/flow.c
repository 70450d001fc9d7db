#include "wire/flow.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define UNREAD_LEAST_US 50
#define UNREAD_MOST_US 5000
#define ENDLESS_LINES 64
/* Whoever takes so many lines takes any number, and this is about 80 MB. */
#define ENDLESS_MOST 1000000
#define COMPACT_ABOVE (1u << 20)
/* Others get their turn after so many writes. */
#define WRITES_MOST 256

typedef enum {
    ITEM_BYTES,
    ITEM_PAUSE,
    ITEM_ENDLESS,
    ITEM_END
} ItemKind;

typedef struct {
    ItemKind kind;
    GByteArray *bytes;
    gsize used;
    WireShape shape;
    gint64 added_us; /* the last bytes */
    gint64 pause_us;
    WireEnd end;
} Item;

struct WireFlow {
    GQueue items;
    gsize size;
    gint64 not_before_us;
    gint64 unread_us; /* how long to wait until a split piece was read */
    guint piece;      /* of the shape's sizes */
    gsize piece_left; /* of a piece that was written in part */
    guint endless;
};

static void item_free(Item *item)
{
    if (item->bytes)
        g_byte_array_unref(item->bytes);
    g_free(item);
}

static Item *add(WireFlow *flow, ItemKind kind)
{
    Item *item = g_new0(Item, 1);
    item->kind = kind;
    g_queue_push_tail(&flow->items, item);
    return item;
}

WireFlow *wire_flow_new(void)
{
    WireFlow *flow = g_new0(WireFlow, 1);
    g_queue_init(&flow->items);
    return flow;
}

void wire_flow_free(WireFlow *flow)
{
    if (!flow)
        return;
    g_queue_clear_full(&flow->items, (GDestroyNotify)item_free);
    g_free(flow);
}

void wire_flow_bytes(WireFlow *flow, const void *data, gsize size, const WireShape *shape)
{
    static const WireShape plain;
    Item *last = g_queue_peek_tail(&flow->items);
    if (size == 0)
        return;
    if (!shape)
        shape = &plain;
    if (!last || last->kind != ITEM_BYTES || memcmp(&last->shape, shape, sizeof *shape) != 0) {
        last = add(flow, ITEM_BYTES);
        last->bytes = g_byte_array_new();
        last->shape = *shape;
    }
    g_byte_array_append(last->bytes, data, (guint)size);
    last->added_us = g_get_monotonic_time();
    flow->size += size;
}

void wire_flow_pause(WireFlow *flow, gint64 ms)
{
    add(flow, ITEM_PAUSE)->pause_us = ms * 1000;
}

void wire_flow_end(WireFlow *flow, WireEnd end)
{
    add(flow, ITEM_END)->end = end;
}

void wire_flow_endless(WireFlow *flow)
{
    add(flow, ITEM_ENDLESS);
}

gsize wire_flow_size(const WireFlow *flow)
{
    return flow->size;
}

/* ------------------------------------------------------------------------- pumping */

/* True when the reader has taken all that was written: then the next piece is one read of its
 * own. Only unix sockets can tell. */
static bool was_read(int fd)
{
    int unread = 0, domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain != AF_UNIX)
        return true;
    return ioctl(fd, SIOCOUTQ, &unread) < 0 || unread == 0;
}

/* How much of the item may go out in the next write; 0: not before flow->not_before_us. */
static gsize next_write(WireFlow *flow, Item *item, int fd, gint64 now)
{
    const WireShape *shape = &item->shape;
    gsize left = item->bytes->len - item->used;
    bool is_last = g_queue_peek_tail(&flow->items) == item;
    if (shape->join > 0 && left < shape->join && is_last &&
        now < item->added_us + shape->quiet_us) {
        flow->not_before_us = item->added_us + shape->quiet_us;
        return 0;
    }
    if (shape->n_sizes == 0)
        return left;
    if (flow->piece_left > 0)
        return MIN(flow->piece_left, left);
    if (!was_read(fd)) {
        flow->unread_us = CLAMP(flow->unread_us * 2, UNREAD_LEAST_US, UNREAD_MOST_US);
        flow->not_before_us = now + flow->unread_us;
        return 0;
    }
    flow->unread_us = 0;
    flow->piece_left = shape->sizes[flow->piece++ % shape->n_sizes];
    return MIN(flow->piece_left, left);
}

static void note_written(WireFlow *flow, Item *item, gsize n, gint64 now)
{
    item->used += n;
    flow->size -= n;
    if (item->shape.n_sizes > 0) {
        flow->piece_left -= n;
        if (item->used == item->bytes->len)
            flow->piece_left = 0;
        if (flow->piece_left == 0 && item->shape.gap_us > 0)
            flow->not_before_us = now + item->shape.gap_us;
    }
    if (item->used < item->bytes->len) {
        if (item->used > COMPACT_ABOVE) {
            g_byte_array_remove_range(item->bytes, 0, (guint)item->used);
            item->used = 0;
        }
        return;
    }
    if (g_queue_peek_tail(&flow->items) == item) {
        g_byte_array_set_size(item->bytes, 0); /* more of the same kind may come */
        item->used = 0;
    } else {
        g_queue_remove(&flow->items, item);
        item_free(item);
    }
}

static WirePump pump_bytes(WireFlow *flow, Item *item, int fd, gint64 now)
{
    if (item->used == item->bytes->len) {
        if (g_queue_peek_tail(&flow->items) == item)
            return WIRE_PUMP_EMPTY;
        note_written(flow, item, 0, now);
        return WIRE_PUMP_GO;
    }
    gsize want = next_write(flow, item, fd, now);
    if (want == 0)
        return WIRE_PUMP_LATER;
    gssize n = send(fd, item->bytes->data + item->used, want, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? WIRE_PUMP_WRITABLE : WIRE_PUMP_BROKEN;
    note_written(flow, item, (gsize)n, now);
    return WIRE_PUMP_GO;
}

/* Some lines more in front of the item itself. */
static void more_lines(WireFlow *flow)
{
    Item *lines = g_new0(Item, 1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; i < ENDLESS_LINES; i++)
        g_string_append_printf(text, "X-Endless-%u: %060d\r\n", flow->endless++, 0);
    lines->kind = ITEM_BYTES;
    lines->bytes = g_byte_array_new();
    g_byte_array_append(lines->bytes, (guint8 *)text->str, (guint)text->len);
    flow->size += text->len;
    g_queue_push_head(&flow->items, lines);
}

static void drop_head(WireFlow *flow)
{
    item_free(g_queue_pop_head(&flow->items));
}

static WirePump pump_end(WireFlow *flow, Item *item, int fd, WireEnd *ret_end)
{
    *ret_end = item->end;
    if (item->end != WIRE_END_SHUTDOWN)
        return WIRE_PUMP_ENDED;
    drop_head(flow);
    shutdown(fd, SHUT_WR);
    return WIRE_PUMP_GO;
}

static WirePump pump_item(WireFlow *flow, Item *item, int fd, gint64 now, WireEnd *ret_end)
{
    switch (item->kind) {
    case ITEM_BYTES:
        return pump_bytes(flow, item, fd, now);
    case ITEM_PAUSE:
        flow->not_before_us = now + item->pause_us;
        drop_head(flow);
        return WIRE_PUMP_GO;
    case ITEM_ENDLESS:
        if (flow->endless < ENDLESS_MOST)
            more_lines(flow);
        else
            item->kind = ITEM_END, item->end = WIRE_END_STALL;
        return WIRE_PUMP_GO;
    default:
        return pump_end(flow, item, fd, ret_end);
    }
}

WirePump wire_flow_pump(WireFlow *flow, int fd, gint64 *ret_wake_us, WireEnd *ret_end)
{
    for (int i = 0; i < WRITES_MOST; i++) {
        Item *item = g_queue_peek_head(&flow->items);
        gint64 now = g_get_monotonic_time();
        WirePump got = WIRE_PUMP_LATER;
        if (!item)
            return WIRE_PUMP_EMPTY;
        if (now >= flow->not_before_us)
            got = pump_item(flow, item, fd, now, ret_end);
        *ret_wake_us = flow->not_before_us;
        if (got != WIRE_PUMP_GO)
            return got;
    }
    return WIRE_PUMP_WRITABLE;
}
