#include "engine/demux.h"

#include "base/error.h"

#include <string.h>

/* Engines send at most 32 KiB in a frame; nothing is allocated by this number. */
#define FRAME_MOST (64u << 20)

static bool check_header(const guint8 *h, guint32 size, GError **error)
{
    bool known = h[0] == DKR_STREAM_OUT || h[0] == DKR_STREAM_ERR || h[0] == DKR_STREAM_ENGINE;
    if (known && h[1] == 0 && h[2] == 0 && h[3] == 0 && size <= FRAME_MOST)
        return true;
    return spr_fail(error, SPR_E_IO, "bad-frame",
                    "the engine's output stream makes no sense: frame %02x%02x%02x%02x of %u bytes",
                    h[0], h[1], h[2], h[3], size);
}

bool dkr_demux_push(DkrDemux *demux, const guint8 *data, gsize size, DkrDemuxFn emit, void *ctx,
                    GError **error)
{
    while (size > 0) {
        if (demux->left > 0) {
            gsize n = MIN(size, demux->left);
            emit(ctx, demux->header[0], data, n);
            demux->left -= (guint32)n;
            data += n;
            size -= n;
            continue;
        }
        gsize n = MIN(size, sizeof demux->header - demux->have);
        memcpy(demux->header + demux->have, data, n);
        demux->have += (guint)n;
        data += n;
        size -= n;
        if (demux->have < sizeof demux->header)
            return true;
        guint32 length;
        memcpy(&length, demux->header + 4, sizeof length);
        length = GUINT32_FROM_BE(length);
        if (!check_header(demux->header, length, error))
            return false;
        demux->left = length;
        demux->have = 0;
    }
    return true;
}

bool dkr_demux_is_whole(const DkrDemux *demux)
{
    return demux->have == 0 && demux->left == 0;
}
