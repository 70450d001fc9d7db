/*
 * libFuzzer target: any bytes as an engine's answer. Whole and in pieces, whose sizes the first
 * byte chooses, it gives the same objects and the same verdict.
 */
#include "base/error.h"
#include "engine/jsonstream.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool collect(void *ctx, json_t *object, GError **error)
{
    json_array_append(ctx, object);
    return true;
}

static bool split(const uint8_t *data, size_t size, size_t piece, json_t *objects)
{
    g_autoptr(DkrJsonStream) stream = dkr_json_stream_new(collect, objects);
    g_autoptr(GError) error = NULL;
    bool ok = true;
    for (size_t at = 0; ok && at < size; at += piece)
        ok = dkr_json_stream_push(stream, data + at, MIN(piece, size - at), &error);
    ok = ok && dkr_json_stream_finish(stream, &error);
    if (ok == (error != NULL))
        abort();
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    json_auto_t *whole = json_array(), *pieces = json_array();
    bool ok = split(data + 1, size - 1, size, whole);
    if (split(data + 1, size - 1, data[0] % 16 + 1u, pieces) != ok || !json_equal(whole, pieces))
        abort();
    return 0;
}
