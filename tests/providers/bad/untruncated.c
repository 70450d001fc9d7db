/* Sin: writes over the old file, whose end stays when it was longer. */
#include "bad.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const sprov_source *inner;
    char *old;
    size_t old_size, at;
    bool has_ended;
} Overlay;

static sprov_flow keep_old(void *ctx, const void *data, size_t size)
{
    Overlay *overlay = ctx;
    overlay->old = realloc(overlay->old, overlay->old_size + size);
    memcpy(overlay->old + overlay->old_size, data, size);
    overlay->old_size += size;
    return SPROV_FLOW_CONTINUE;
}

static sprov_source_status read_over(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Overlay *overlay = ctx;
    if (!overlay->has_ended) {
        sprov_source_status status =
            overlay->inner->read(overlay->inner->ctx, buffer, capacity, count);
        overlay->at += *count;
        overlay->has_ended = status == SPROV_SOURCE_OK && *count == 0;
        if (!overlay->has_ended)
            return status;
    }
    size_t left = overlay->old_size > overlay->at ? overlay->old_size - overlay->at : 0;
    *count = left < capacity ? left : capacity;
    if (*count > 0)
        memcpy(buffer, overlay->old + overlay->at, *count);
    overlay->at += *count;
    return SPROV_SOURCE_OK;
}

static void tell_done(void *ctx)
{
    const Overlay *overlay = ctx;
    if (overlay->inner->done)
        overlay->inner->done(overlay->inner->ctx);
}

static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    bool is_small = request && request->struct_size == sizeof *request && request->source &&
                    mock_check_source(request->source, "source", NULL) == SPROV_OK &&
                    request->source->size < 1000;
    if (!is_small)
        return mock_api.write_file(sandbox, request, call, error);
    Overlay overlay = {.inner = request->source};
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &overlay;
    sink.write = keep_old;
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = request->path;
    read.sink = &sink;
    mock_api.read_file(sandbox, &read, call, NULL, NULL);
    sprov_source source = SPROV_INIT(sprov_source);
    source.fd = request->source->fd;
    source.size = UINT64_MAX;
    source.ctx = &overlay;
    source.read = read_over;
    source.done = tell_done;
    sprov_write_request own = *request;
    own.source = &source;
    sprov_status status = mock_api.write_file(sandbox, &own, call, error);
    free(overlay.old);
    return status;
}

BAD_ENTRY(write_file, write_file)
