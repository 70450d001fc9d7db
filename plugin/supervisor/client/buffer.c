#include "supervisor/client/buffer.h"

#include <errno.h>
#include <string.h>

#define UNSENT_ROOM 4096
#define UNSENT_KEPT (64 * 1024)

SprReceived *spr_received_new(void)
{
    SprReceived *received = g_try_malloc(sizeof *received);
    if (!received)
        return NULL;
    received->refs = 1;
    received->start = received->end = 0;
    return received;
}

SprReceived *spr_received_ref(SprReceived *received)
{
    g_atomic_int_inc(&received->refs);
    return received;
}

void spr_received_unref(SprReceived *received)
{
    if (received && g_atomic_int_dec_and_test(&received->refs))
        g_free(received);
}

bool spr_received_make_room(SprReceived **received, gsize needed)
{
    SprReceived *from = *received, *to = from;
    gsize rest = from->end - from->start;
    bool alone = g_atomic_int_get(&from->refs) == 1;
    if (alone && rest == 0)
        from->start = from->end = 0;
    if (from->start + needed <= SPR_RECEIVED_ROOM && from->end < SPR_RECEIVED_ROOM &&
        (alone || SPR_RECEIVED_ROOM - from->end >= SPR_RECEIVED_ROOM / 4))
        return true;
    if (!alone) {
        to = spr_received_new();
        if (!to)
            return false;
    }
    memmove(to->bytes, from->bytes + from->start, rest);
    to->start = 0;
    to->end = rest;
    if (!alone) {
        spr_received_unref(from);
        *received = to;
    }
    return true;
}

static void wipe(SprUnsent *unsent)
{
    if (unsent->secret && unsent->bytes)
        explicit_bzero(unsent->bytes, unsent->room);
}

bool spr_unsent_append(SprUnsent *unsent, const void *data, gsize size)
{
    if (unsent->end + size > unsent->room) {
        gsize rest = unsent->end - unsent->start;
        gsize room = MAX(UNSENT_ROOM, rest + size);
        guint8 *bytes = g_try_malloc(room);
        if (!bytes)
            return false;
        if (rest > 0)
            memcpy(bytes, unsent->bytes + unsent->start, rest);
        wipe(unsent);
        g_free(unsent->bytes);
        *unsent = (SprUnsent){.bytes = bytes, .end = rest, .room = room, .secret = unsent->secret};
    }
    memcpy(unsent->bytes + unsent->end, data, size);
    unsent->end += size;
    return true;
}

bool spr_unsent_flush(SprUnsent *unsent, const SprPipe *pipe)
{
    while (unsent->start < unsent->end) {
        gssize n =
            pipe->write(pipe->ctx, unsent->bytes + unsent->start, unsent->end - unsent->start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        unsent->start += (gsize)n;
    }
    wipe(unsent);
    unsent->start = unsent->end = 0;
    unsent->secret = false;
    if (unsent->room > UNSENT_KEPT)
        spr_unsent_clear(unsent);
    return true;
}

void spr_unsent_clear(SprUnsent *unsent)
{
    wipe(unsent);
    g_free(unsent->bytes);
    *unsent = (SprUnsent){0};
}
