/* read_file() and write_file() of the core vtable. */
#include "glue/glue.h"

#include "supervised/filecalls.h"

/* ---------------------------------------------------------------------------- read */

typedef struct {
    GlueCall *gc;
    sprov_read_request request;
    GlueSink sink;
    DkrReadResult result;
} Read;

static bool read_attempt(void *ctx, DkrLife *life, GError **error)
{
    Read *read = ctx;
    DkrSink sink = glue_sink(&read->sink);
    return dkr_files_read(read->gc->sandbox->context, life, read->request.path,
                          read->request.offset, read->request.max_bytes, &sink, &read->gc->wait,
                          &read->result, error);
}

static bool read_may_repeat(void *ctx)
{
    return !((const Read *)ctx)->sink.touched;
}

static bool take_read(Read *read, const sprov_read_request *from, GError **error)
{
    sprov_read_request *r = &read->request;
    if (!glue_take_request(r, sizeof *r, from, "request", error) ||
        !glue_check_path(r->path, error) || !glue_check_pointer(r->sink, "request->sink", error))
        return false;
    if (r->reserved != 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "reserved",
                        "request: a reserved member is not zero");
    return glue_take_sink(&read->sink, read->gc->provider, r->sink, "request->sink", error);
}

static bool run_read(Read *read, sprov_read_result *result)
{
    DkrWork work = {read_attempt, read_may_repeat, read};
    bool ok = glue_work(read->gc, &work);
    if (ok && result) {
        result->mode = read->result.mode;
        result->size = read->result.size;
        result->mtime_ns = read->result.mtime_ns;
        result->count = read->result.count;
    }
    glue_sink_done(&read->sink);
    return ok;
}

sprov_status glue_read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                            const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    GlueCall gc;
    Read read = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              take_read(&read, request, &gc.failure) && run_read(&read, result);
    return glue_end(&gc, ok);
}

/* --------------------------------------------------------------------------- write */

typedef struct {
    GlueCall *gc;
    sprov_write_request request;
    GlueSource source;
} Write;

static bool write_attempt(void *ctx, DkrLife *life, GError **error)
{
    Write *write = ctx;
    DkrFileWrite file = {.path = write->request.path,
                         .mode = write->request.mode,
                         .size = write->source.source.size,
                         .source = glue_source(&write->source)};
    bool ok = dkr_files_write(write->gc->sandbox->context, life, &file, 1, &write->gc->wait, error);
    dkr_file_write_clear(&file);
    return ok;
}

static bool write_may_repeat(void *ctx)
{
    return !((const Write *)ctx)->source.touched;
}

bool glue_take_write(sprov_write_request *r, GlueSource *source, const sprov_provider *provider,
                     const sprov_write_request *from, GError **error)
{
    if (!glue_take_request(r, sizeof *r, from, "request", error) ||
        !glue_check_path(r->path, error) ||
        !glue_check_pointer(r->source, "request->source", error))
        return false;
    if (r->mode > 0777)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-mode",
                        "mode 0%o: permission bits go from 0001 to 0777", r->mode);
    return glue_take_source(source, provider, r->source, "request->source", error);
}

static bool run_write(Write *write)
{
    DkrWork work = {write_attempt, write_may_repeat, write};
    bool ok = glue_work(write->gc, &work);
    glue_source_done(&write->source);
    return ok;
}

sprov_status glue_write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                             const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    Write write = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_take_write(&write.request, &write.source, gc.provider, request, &gc.failure) &&
              run_write(&write);
    return glue_end(&gc, ok);
}
