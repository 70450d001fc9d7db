#include "engine/jsonstream.h"

#include "base/error.h"

#include <string.h>

struct DkrJsonStream {
    DkrJsonStreamFn on_object;
    void *ctx;
    GByteArray *pending; /* the beginning of an object that earlier pushes brought */
    guint depth;         /* of braces and brackets; 0: between objects */
    bool in_string;
    bool escaped;
};

DkrJsonStream *dkr_json_stream_new(DkrJsonStreamFn on_object, void *ctx)
{
    DkrJsonStream *stream = g_new0(DkrJsonStream, 1);
    stream->on_object = on_object;
    stream->ctx = ctx;
    stream->pending = g_byte_array_new();
    return stream;
}

void dkr_json_stream_free(DkrJsonStream *stream)
{
    if (!stream)
        return;
    g_byte_array_unref(stream->pending);
    g_free(stream);
}

static bool bad(const char *what, const char *data, gsize size, GError **error)
{
    char shown[40];
    gsize n = MIN(size, sizeof shown - 1);
    for (gsize i = 0; i < n; i++)
        shown[i] = g_ascii_isprint(data[i]) ? data[i] : '?';
    shown[n] = '\0';
    return spr_fail(error, SPR_E_IO, "bad-stream", "the engine's answer %s: \"%s\"", what, shown);
}

/* Takes one byte of an object; true when it closes the object. */
static bool closes(DkrJsonStream *stream, char c)
{
    if (stream->in_string) {
        bool escaped = stream->escaped;
        stream->escaped = c == '\\' && !escaped;
        stream->in_string = c != '"' || escaped;
        return false;
    }
    if (c == '"')
        stream->in_string = true;
    else if (c == '{' || c == '[')
        stream->depth++;
    else if (c == '}' || c == ']')
        stream->depth--;
    return stream->depth == 0;
}

static bool hand_out(DkrJsonStream *stream, const char *data, gsize size, GError **error)
{
    json_error_t where;
    json_t *object = json_loadb(data, size, JSON_ALLOW_NUL, &where);
    if (!object)
        return bad("holds a line that is no JSON", data, size, error);
    bool ok = stream->on_object(stream->ctx, object, error);
    json_decref(object);
    return ok;
}

/* An object ended at end; its beginning is at start, or in what was pending. */
static bool finish_object(DkrJsonStream *stream, const char *start, const char *end, GError **error)
{
    gsize size = (gsize)(end - start);
    if (stream->pending->len == 0)
        return hand_out(stream, start, size, error);
    g_byte_array_append(stream->pending, (const guint8 *)start, (guint)size);
    bool ok = hand_out(stream, (const char *)stream->pending->data, stream->pending->len, error);
    g_byte_array_set_size(stream->pending, 0);
    return ok;
}

static bool check_size(const DkrJsonStream *stream, const char *start, const char *at,
                       GError **error)
{
    if (stream->pending->len + (gsize)(at - start) <= DKR_JSON_STREAM_MAX)
        return true;
    return bad("holds an object of more than 16 MiB", start, (gsize)(at - start), error);
}

bool dkr_json_stream_push(DkrJsonStream *stream, const void *data, gsize size, GError **error)
{
    if (size == 0) /* data may be NULL then */
        return true;
    const char *start = data, *end = start + size;
    for (const char *at = start; at < end; at++) {
        if (stream->depth > 0) {
            if (!closes(stream, *at))
                continue;
            if (!check_size(stream, start, at, error) ||
                !finish_object(stream, start, at + 1, error))
                return false;
        } else if (*at == '{') {
            start = at;
            stream->depth = 1;
        } else if (!strchr(" \t\r\n", *at) || *at == '\0') {
            return bad("is no sequence of JSON objects", at, (gsize)(end - at), error);
        }
    }
    if (stream->depth == 0)
        return true;
    if (!check_size(stream, start, end, error))
        return false;
    g_byte_array_append(stream->pending, (const guint8 *)start, (guint)(end - start));
    return true;
}

bool dkr_json_stream_finish(DkrJsonStream *stream, GError **error)
{
    if (stream->depth == 0)
        return true;
    return bad("ends in the middle of an object", (const char *)stream->pending->data,
               stream->pending->len, error);
}
