#include "engine/chunks.h"

#include "base/error.h"

#include <string.h>

#define LINE_MOST (64u << 10)

enum {
    PART_SIZE,
    PART_DATA,
    PART_BEHIND,
    PART_TRAILER
};

static bool bad(GError **error)
{
    return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's chunked stream makes no sense");
}

static bool end_line(DkrChunks *chunks, GError **error)
{
    char *end = chunks->line;
    bool is_empty = chunks->line_size == 0;
    chunks->line[MIN(chunks->line_size, sizeof chunks->line - 1)] = '\0';
    chunks->line_size = 0;
    if (chunks->part == PART_SIZE) {
        chunks->left = g_ascii_strtoull(chunks->line, &end, 16);
        chunks->part = chunks->left > 0 ? PART_DATA : PART_TRAILER;
        return end != chunks->line || bad(error);
    }
    if (chunks->part == PART_TRAILER) {
        chunks->ended = is_empty;
        return true;
    }
    chunks->part = PART_SIZE;
    return is_empty || bad(error);
}

static bool take_line_byte(DkrChunks *chunks, guint8 byte, GError **error)
{
    if (byte == '\n')
        return end_line(chunks, error);
    if (byte == '\r')
        return true;
    if (chunks->line_size < sizeof chunks->line - 1)
        chunks->line[chunks->line_size] = (char)byte;
    chunks->line_size++;
    return chunks->line_size <= LINE_MOST || bad(error);
}

bool dkr_chunks_decode(DkrChunks *chunks, guint8 *data, gsize size, gsize *ret_size, GError **error)
{
    gsize kept = 0;
    for (gsize at = 0; at < size && !chunks->ended;) {
        if (chunks->part != PART_DATA) {
            if (!take_line_byte(chunks, data[at++], error))
                return false;
            continue;
        }
        gsize n = (gsize)MIN(chunks->left, size - at);
        memmove(data + kept, data + at, n);
        kept += n;
        at += n;
        chunks->left -= n;
        if (chunks->left == 0)
            chunks->part = PART_BEHIND;
    }
    *ret_size = kept;
    return true;
}
