#include "template/buildstream.h"

#include "engine/jsonstream.h"

#include <string.h>

struct DkrBuildStream {
    DkrBuildTraceFn on_trace;
    DkrBuildTextFn on_text;
    void *ctx;
    DkrJsonStream *lines;
    char *image_id;
    char *error;
    int error_code;
};

/* The engine puts an empty "aux" into some traces. */
static void take_trace(DkrBuildStream *stream, const char *base64)
{
    gsize size;
    g_autofree guchar *record = g_base64_decode(base64, &size);
    if (size > 0)
        stream->on_trace(stream->ctx, record, size);
}

/* The first error is the cause. */
static void take_error(DkrBuildStream *stream, const json_t *detail, const json_t *text)
{
    const char *message = json_string_value(json_object_get(detail, "message"));
    if (!message)
        message = json_string_value(text);
    const json_t *code = json_object_get(detail, "code");
    if (!stream->error && json_is_integer(code) && json_integer_value(code) > 0)
        stream->error_code = (int)MIN(json_integer_value(code), 255);
    if (!stream->error)
        stream->error = g_strdup(message && *message ? message : "the engine did not say why");
}

static bool on_line(void *ctx, json_t *line, GError **error)
{
    DkrBuildStream *stream = ctx;
    const char *id = json_string_value(json_object_get(line, "id"));
    const json_t *aux = json_object_get(line, "aux");
    const char *image_id = json_string_value(json_object_get(aux, "ID"));
    const json_t *detail = json_object_get(line, "errorDetail");
    const json_t *error_text = json_object_get(line, "error");
    const char *text = json_string_value(json_object_get(line, "stream"));

    if (json_is_string(aux) && g_strcmp0(id, "moby.buildkit.trace") == 0)
        take_trace(stream, json_string_value(aux));
    if (text)
        stream->on_text(stream->ctx, text);
    if (image_id && *image_id) {
        g_free(stream->image_id);
        stream->image_id = g_strdup(image_id);
    }
    if (detail || error_text)
        take_error(stream, detail, error_text);
    return true;
}

DkrBuildStream *dkr_build_stream_new(DkrBuildTraceFn on_trace, DkrBuildTextFn on_text, void *ctx)
{
    DkrBuildStream *stream = g_new0(DkrBuildStream, 1);
    stream->on_trace = on_trace;
    stream->on_text = on_text;
    stream->error_code = -1;
    stream->ctx = ctx;
    stream->lines = dkr_json_stream_new(on_line, stream);
    return stream;
}

void dkr_build_stream_free(DkrBuildStream *stream)
{
    if (!stream)
        return;
    dkr_json_stream_free(stream->lines);
    g_free(stream->image_id);
    g_free(stream->error);
    g_free(stream);
}

bool dkr_build_stream_push(DkrBuildStream *stream, const void *data, gsize size, GError **error)
{
    return dkr_json_stream_push(stream->lines, data, size, error);
}

bool dkr_build_stream_finish(DkrBuildStream *stream, GError **error)
{
    return dkr_json_stream_finish(stream->lines, error);
}

const char *dkr_build_stream_image_id(const DkrBuildStream *stream)
{
    return stream->image_id;
}

const char *dkr_build_stream_error(const DkrBuildStream *stream)
{
    return stream->error;
}

int dkr_build_stream_error_code(const DkrBuildStream *stream)
{
    return stream->error_code;
}
