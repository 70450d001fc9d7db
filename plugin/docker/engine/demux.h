/*
 * The engine's framing of two output streams on one connection: 8 bytes of header (stream, three
 * zeros, big-endian length), then that many bytes. Incremental, any split of the input gives the
 * same bytes. Pure; one DkrDemux per connection.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum {
    DKR_STREAM_OUT = 1,
    DKR_STREAM_ERR = 2,
    DKR_STREAM_ENGINE = 3 /* text of the engine about an error of its own */
};

typedef struct {
    guint8 header[8];
    guint have;
    guint32 left;
} DkrDemux;

/* Called for each piece of payload; never with size 0. */
typedef void (*DkrDemuxFn)(void *ctx, int stream, const guint8 *data, gsize size);

/* False with SPR_E_IO when the bytes are no frames; the demux is of no further use then. */
bool dkr_demux_push(DkrDemux *demux, const guint8 *data, gsize size, DkrDemuxFn emit, void *ctx,
                    GError **error);

/* True at a frame's border: the stream did not end in the middle of one. */
bool dkr_demux_is_whole(const DkrDemux *demux);
