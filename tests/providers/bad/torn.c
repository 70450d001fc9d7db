/* Sin: a file is replaced in two steps, so that a reader may see its first half. */
#include "bad.h"

#include <stdlib.h>
#include <unistd.h>

#define MOST 1000000
#define HALF_US 5000 /* long enough that a reader comes by */

typedef struct {
    const sprov_source *inner;
    char *bytes;
    size_t size, at, end;
} Copy;

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Copy *copy = ctx;
    for (*count = 0; *count < capacity && copy->at < copy->end; (*count)++)
        ((char *)buffer)[*count] = copy->bytes[copy->at++];
    return SPROV_SOURCE_OK;
}

static sprov_status take_all(Copy *copy)
{
    for (size_t count = 1; count > 0 && copy->size <= copy->inner->size; copy->size += count) {
        if (copy->inner->read(copy->inner->ctx, copy->bytes + copy->size, MOST - copy->size,
                              &count) != SPROV_SOURCE_OK)
            return SPROV_E_REFUSED;
    }
    return copy->size == copy->inner->size ? SPROV_OK : SPROV_E_INVALID_ARGUMENT;
}

static sprov_status write_up_to(sprov_sandbox *sandbox, const sprov_write_request *request,
                                Copy *copy, size_t end, const sprov_call *call, sprov_error *error)
{
    sprov_source source = SPROV_INIT(sprov_source);
    sprov_write_request own = *request;
    copy->at = 0;
    copy->end = end;
    source.fd = -1;
    source.size = end;
    source.ctx = copy;
    source.read = give;
    own.source = &source;
    return mock_api.write_file(sandbox, &own, call, error);
}

static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    bool is_plain = sandbox && !call && request && request->struct_size == sizeof *request &&
                    request->path && request->mode <= 0777 && request->source &&
                    mock_check_source(request->source, "source", NULL) == SPROV_OK &&
                    request->source->size < MOST && !mock_in_callback() &&
                    !mock_is_destroyed(sandbox);
    if (!is_plain)
        return mock_api.write_file(sandbox, request, call, error);
    Copy copy = {.inner = request->source, .bytes = malloc(MOST)};
    mock_callback_begin();
    sprov_status status = take_all(&copy);
    if (request->source->done)
        request->source->done(request->source->ctx);
    mock_callback_end();
    if (status == SPROV_OK)
        status = write_up_to(sandbox, request, &copy, copy.size / 2, call, error);
    else
        mock_fail(error, status, "source", 0, "cannot write %s: its source", request->path);
    usleep(HALF_US);
    if (status == SPROV_OK)
        status = write_up_to(sandbox, request, &copy, copy.size, call, error);
    free(copy.bytes);
    return status;
}

BAD_ENTRY(write_file, write_file)
