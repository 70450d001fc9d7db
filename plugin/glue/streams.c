#include "glue/glue.h"

bool glue_take_sink(GlueSink *into, const sprov_provider *provider, const sprov_sink *sink,
                    const char *what, GError **error)
{
    *into = (GlueSink){.provider = provider};
    if (!sink)
        return true;
    if (!glue_take_table(&into->sink, sizeof into->sink, sink, what, error))
        return false;
    if (!into->sink.write || into->sink.reserved != 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-sink",
                        "%s has no write function, or a reserved member that is not zero", what);
    into->is_set = true;
    return true;
}

bool glue_take_source(GlueSource *into, const sprov_provider *provider, const sprov_source *source,
                      const char *what, GError **error)
{
    *into = (GlueSource){.provider = provider};
    if (!source)
        return true;
    if (!glue_take_table(&into->source, sizeof into->source, source, what, error))
        return false;
    if (!into->source.read)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-source", "%s has no read function",
                        what);
    into->is_set = true;
    return true;
}

static bool write_sink(void *ctx, const void *data, gsize size)
{
    GlueSink *sink = ctx;
    sink->touched = true;
    const sprov_provider *before = glue_enter_callback(sink->provider);
    sprov_flow flow = sink->sink.write(sink->sink.ctx, data, size);
    glue_leave_callback(before);
    return flow == SPROV_FLOW_CONTINUE;
}

static bool check_count(const GlueSource *source, bool ended, GError **error)
{
    guint64 announced = source->source.size;
    if (announced == UINT64_MAX ||
        (source->count <= announced && (!ended || source->count == announced)))
        return true;
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "source-size",
                    "the source gave %s than the %" G_GUINT64_FORMAT " bytes it announced",
                    ended ? "fewer" : "more", announced);
}

static bool read_source(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                        GError **error)
{
    GlueSource *source = ctx;
    size_t count = SIZE_MAX; /* left so by a binding that lost an exception: not the end */
    source->touched = true;
    const sprov_provider *before = glue_enter_callback(source->provider);
    sprov_source_status status = source->source.read(source->source.ctx, buffer, capacity, &count);
    glue_leave_callback(before);
    *ret_size = 0;
    *ret_again_fd = -1;
    if (status == SPROV_SOURCE_OK && count <= capacity) {
        source->count += count;
        *ret_size = count;
        return check_count(source, count == 0, error);
    }
    if (status == SPROV_SOURCE_AGAIN && source->source.fd > 0) {
        *ret_again_fd = source->source.fd;
        return true;
    }
    return spr_fail(error, SPR_E_REFUSED, "source-gave-up", "the source of the bytes gave up");
}

DkrSink glue_sink(GlueSink *sink)
{
    return sink->is_set ? (DkrSink){write_sink, sink} : (DkrSink){0};
}

DkrSource glue_source(GlueSource *source)
{
    return source->is_set ? (DkrSource){read_source, source} : (DkrSource){0};
}

void glue_sink_done(const GlueSink *sink)
{
    glue_done(sink->provider, sink->sink.done, sink->sink.ctx);
}

void glue_source_done(const GlueSource *source)
{
    glue_done(source->provider, source->source.done, source->source.ctx);
}
