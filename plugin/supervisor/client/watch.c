#include "supervisor/client/watch.h"

#include "base/error.h"
#include "supervisor/client/link.h"

/* All requests go over one channel: their answers tell streams and end apart by themselves. */
struct SprWatch {
    SprChannel *channel;
    guint64 id;
    guint64 offsets[3]; /* asked for, by stream */
    gsize most[3];      /* 0: nothing is asked for */
};

bool spr_watch_new(SprSupervisor *supervisor, guint64 id, SprWatch **ret_watch, GError **error)
{
    SprChannel *channel = spr_channel_new(supervisor, error);
    if (!channel)
        return false;
    SprWatch *watch = g_new0(SprWatch, 1);
    watch->channel = channel;
    watch->id = id;
    *ret_watch = watch;
    return true;
}

void spr_watch_free(SprWatch *watch)
{
    if (!watch)
        return;
    spr_channel_send(watch->channel, SPR_WIRE_CANCEL, SPR_WIRE_IN, 0, NULL, 0, NULL);
    spr_channel_free(watch->channel);
    g_free(watch);
}

bool spr_watch_output(SprWatch *watch, SprStream stream, guint64 offset, gsize most, GError **error)
{
    guint8 payload[20];
    SprWireWriter w = {payload, sizeof payload, false};
    watch->offsets[stream] = offset;
    watch->most[stream] = MIN(most, SPR_WIRE_MAX_DATA);
    spr_wire_put(&w, watch->id, 8);
    spr_wire_put(&w, offset, 8);
    spr_wire_put(&w, watch->most[stream], 4);
    return spr_channel_send(watch->channel, SPR_WIRE_READ, (SprWireStream)stream,
                            SPR_WIRE_WAIT_FOR_IT | SPR_WIRE_TAKE, payload, sizeof payload, error);
}

bool spr_watch_end(SprWatch *watch, GError **error)
{
    guint8 payload[8];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, watch->id, 8);
    return spr_channel_send(watch->channel, SPR_WIRE_WAIT, SPR_WIRE_IN, SPR_WIRE_WAIT_FOR_IT,
                            payload, sizeof payload, error);
}

static bool on_output(SprWatch *watch, const SprFrame *frame, SprWatchEvent *ret_event,
                      GError **error)
{
    SprWireReader r = {frame->payload, frame->header.size, false};
    guint8 stream = frame->header.stream;
    guint64 at = spr_wire_get(&r, 8);
    bool is_end = frame->header.flags & SPR_WIRE_END;
    if (watch->most[stream] < MAX(r.left, 1) || is_end != (r.left == 0) ||
        (at < watch->offsets[stream] && !is_end))
        return spr_channel_break(watch->channel, "its output makes no sense", error);
    watch->most[stream] = 0;
    *ret_event = (SprWatchEvent){(SprWatchKind)stream, at, r.at, r.left};
    return true;
}

static bool on_done(SprWatch *watch, const SprFrame *frame, GError **error)
{
    int errno_value;
    guint64 value;
    if (!spr_codec_done(frame->payload, frame->header.size, &errno_value, &value) ||
        errno_value == 0)
        return spr_channel_break(watch->channel, "it answered what was not asked", error);
    return spr_fail_errno(error, SPR_E_NOT_FOUND, errno_value, "process-not-found",
                          "the sandbox has no process %" G_GUINT64_FORMAT, watch->id);
}

bool spr_watch_next(SprWatch *watch, const SprWait *wait, struct pollfd *extra,
                    SprWatchEvent *ret_event, GError **error)
{
    SprFrame frame;
    if (!spr_channel_next(watch->channel, wait, extra, extra ? 1 : 0, SPR_NEVER, &frame, error))
        return false;
    *ret_event = (SprWatchEvent){.kind = SPR_WATCH_NOTHING};
    switch (frame.header.type) {
    case 0:
        return true;
    case SPR_WIRE_OUTPUT:
        return on_output(watch, &frame, ret_event, error);
    case SPR_WIRE_EXITED:
        ret_event->kind = SPR_WATCH_END;
        return true;
    case SPR_WIRE_DONE:
        return on_done(watch, &frame, error);
    default:
        return spr_channel_break(watch->channel, "it answered what was not asked", error);
    }
}
