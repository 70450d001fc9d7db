/*
 * The connection below the calls: channels that send frames and wait for theirs. Whichever call
 * waits first becomes the leader and reads for all; frames of others are copied to them, its own
 * stay where they were received. When it leaves, another takes over. What a channel can hold is
 * bounded by the credit it gave. Internal to client/; any thread.
 */
#pragma once

#include "supervisor/client/codec.h"

typedef struct SprChannel SprChannel;

typedef struct {
    SprWireHeader header;
    const guint8 *payload; /* until the next spr_channel_next() or _free() of this channel */
} SprFrame;

/* NULL when the connection is broken or the process has no descriptor left. */
SprChannel *spr_channel_new(SprSupervisor *supervisor, GError **error);
void spr_channel_free(SprChannel *channel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprChannel, spr_channel_free)

guint32 spr_channel_id(const SprChannel *channel);

/* Sends one frame, never waits: what the pipe does not take goes out while somebody waits. */
bool spr_channel_send(SprChannel *channel, SprWireType type, SprWireStream stream, guint16 flags,
                      const void *payload, gsize size, GError **error);

/* The same for frames already put together; they are wiped from every buffer once sent. */
bool spr_channel_send_secret(SprChannel *channel, const guint8 *frames, gsize size, GError **error);

/* Whether descriptors can go with a frame: over a socket that is this call's own. */
bool spr_channel_passes_descriptors(const SprChannel *channel);

/* Whether one of them can be a command's input. */
bool spr_channel_passes_input(const SprChannel *channel);

/* As send_secret, with up to three descriptors, which stay the caller's. */
bool spr_channel_send_with(SprChannel *channel, const guint8 *frames, gsize size, const int *fds,
                           guint n_fds, GError **error);

#define SPR_EXTRA_MOST 3

/* The next frame of the channel. True without one (type 0) when step_us has come or one of n_extra
 * descriptors is ready. */
bool spr_channel_next(SprChannel *channel, const SprWait *wait, struct pollfd *extra, guint n_extra,
                      gint64 step_us, SprFrame *ret_frame, GError **error);

/* What spr_supervisor_set_on_silence() was given; NULL: nothing. */
SprSilenceFn spr_channel_on_silence(const SprChannel *channel, void **ret_ctx);

/* The connection broke a rule: ends it for everybody, false with SPR_E_IO. */
bool spr_channel_break(SprChannel *channel, const char *what, GError **error);

/* One request, one answer: sends and waits for the next frame, cancels the request when the wait
 * ended. */
bool spr_channel_ask(SprChannel *channel, SprWireType type, SprWireStream stream, guint16 flags,
                     const void *payload, gsize size, const SprWait *wait, SprFrame *ret_frame,
                     GError **error);
