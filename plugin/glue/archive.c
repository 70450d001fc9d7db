/* The extension sprov.archive/1. */
#include "glue/extensions.h"

#include "base/text.h"
#include "supervised/filecalls.h"

/* --------------------------------------------------------------------------- write_files */

typedef struct {
    GlueCall *gc;
    gsize count;
    sprov_write_request *requests;
    GlueSource *sources;
    DkrFileWrite *files;
} Writes;

static void writes_clear(Writes *writes)
{
    for (gsize i = 0; i < writes->count; i++)
        dkr_file_write_clear(&writes->files[i]);
    g_free(writes->requests);
    g_free(writes->sources);
    g_free(writes->files);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Writes, writes_clear)

static bool attempt_writes(void *ctx, DkrLife *life, GError **error)
{
    Writes *writes = ctx;
    return dkr_files_write(writes->gc->sandbox->context, life, writes->files, writes->count,
                           &writes->gc->wait, error);
}

static bool writes_may_repeat(void *ctx)
{
    const Writes *writes = ctx;
    for (gsize i = 0; i < writes->count; i++) {
        if (writes->sources[i].touched)
            return false;
    }
    return true;
}

static bool take_one(Writes *writes, gsize i, const sprov_write_request *from, GError **error)
{
    sprov_write_request *request = &writes->requests[i];
    if (!glue_check_pointer(from, "files[i]", error) ||
        !glue_take_write(request, &writes->sources[i], writes->gc->provider, from, error)) {
        g_prefix_error(error, "file %" G_GSIZE_FORMAT ": ", i);
        return false;
    }
    writes->files[i] = (DkrFileWrite){.path = request->path,
                                      .mode = request->mode,
                                      .size = writes->sources[i].source.size,
                                      .source = glue_source(&writes->sources[i])};
    return true;
}

static bool take_writes(Writes *writes, const sprov_write_request *const *from, gsize count,
                        GError **error)
{
    if (count > 0 && !glue_check_pointer(from, "files", error))
        return false;
    writes->requests = g_try_new0(sprov_write_request, count);
    writes->sources = g_try_new0(GlueSource, count);
    writes->files = g_try_new0(DkrFileWrite, count);
    if (count > 0 && (!writes->requests || !writes->sources || !writes->files))
        return spr_fail(error, SPR_E_EXHAUSTED, "memory",
                        "no memory for %" G_GSIZE_FORMAT " files at once", count);
    writes->count = count;
    for (gsize i = 0; i < count; i++) {
        if (!take_one(writes, i, from[i], error))
            return false;
    }
    return true;
}

static bool check_results(sprov_file_result *const *results, gsize count, GError **error)
{
    for (gsize i = 0; results && i < count; i++) {
        if (!glue_check_pointer(results[i], "results[i]", error) ||
            !glue_check_result(results[i], sizeof **results, "results[i]", error))
            return false;
    }
    return true;
}

static void set_result(sprov_file_result *result, sprov_status status, const char *reason)
{
    result->status = status;
    spr_copy_text(result->reason, sizeof result->reason, reason ? reason : "");
}

/* The whole call's error tells better than the file's own that the sandbox went away. */
static const GError *failure_of(const Writes *writes, gsize i)
{
    const GError *own = writes->files[i].failure;
    return spr_error_is(own, SPR_E_NOT_READY, "gone") ? writes->gc->failure : own;
}

/* A failure of none of them kept all from being tried. */
static void fill_results(const Writes *writes, bool ok, sprov_file_result *const *results)
{
    bool tried = ok;
    for (gsize i = 0; i < writes->count; i++)
        tried = tried || writes->files[i].failure;
    for (gsize i = 0; results && i < writes->count; i++) {
        const GError *failure = failure_of(writes, i);
        if (failure)
            set_result(results[i], failure->code, spr_error_extra(failure)->reason);
        else if (tried)
            set_result(results[i], SPROV_OK, NULL);
    }
}

static bool run_writes(Writes *writes, sprov_file_result *const *results)
{
    DkrWork work = {attempt_writes, writes_may_repeat, writes};
    bool ok = glue_work(writes->gc, &work);
    fill_results(writes, ok, results);
    for (gsize i = 0; i < writes->count; i++)
        glue_source_done(&writes->sources[i]);
    return ok;
}

static sprov_status archive_write_files(sprov_sandbox *sandbox,
                                        const sprov_write_request *const *files, size_t count,
                                        sprov_file_result *const *results, const sprov_call *call,
                                        sprov_error *error)
{
    GlueCall gc;
    g_auto(Writes) writes = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              check_results(results, count, &gc.failure);
    for (size_t i = 0; ok && results && i < count; i++)
        set_result(results[i], SPROV_E_CANCELLED, "cancelled");
    ok = ok && take_writes(&writes, files, count, &gc.failure) && run_writes(&writes, results);
    return glue_end(&gc, ok);
}

/* ----------------------------------------------------------------------------------- put */

typedef struct {
    GlueCall *gc;
    sprov_put_request request;
    GlueSource source;
} Put;

static bool attempt_put(void *ctx, DkrLife *life, GError **error)
{
    Put *put = ctx;
    DkrSource source = glue_source(&put->source);
    return dkr_files_put(put->gc->sandbox->context, life, put->request.directory, put->request.user,
                         &source, &put->gc->wait, error);
}

static bool put_may_repeat(void *ctx)
{
    return !((const Put *)ctx)->source.touched;
}

static bool check_no_flags(uint32_t flags, GError **error)
{
    return flags == 0 || spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                                  "request->flags 0x%x has bits that are not known", flags);
}

static bool take_put(Put *put, const sprov_put_request *from, GError **error)
{
    sprov_put_request *r = &put->request;
    return glue_take_request(r, sizeof *r, from, "request", error) &&
           check_no_flags(r->flags, error) && glue_check_path(r->directory, error) &&
           glue_check_pointer(r->tar, "request->tar", error) &&
           glue_take_source(&put->source, put->gc->provider, r->tar, "request->tar", error);
}

static bool run_put(Put *put)
{
    DkrWork work = {attempt_put, put_may_repeat, put};
    bool ok = glue_work(put->gc, &work);
    glue_source_done(&put->source);
    return ok;
}

static sprov_status archive_put(sprov_sandbox *sandbox, const sprov_put_request *request,
                                const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    Put put = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              take_put(&put, request, &gc.failure) && run_put(&put);
    return glue_end(&gc, ok);
}

/* ----------------------------------------------------------------------------------- get */

typedef struct {
    GlueCall *gc;
    sprov_get_request request;
    GlueSink sink;
} Get;

static bool attempt_get(void *ctx, DkrLife *life, GError **error)
{
    Get *get = ctx;
    DkrSink sink = glue_sink(&get->sink);
    return dkr_files_get(get->gc->sandbox->context, life, get->request.path, &sink, &get->gc->wait,
                         error);
}

static bool get_may_repeat(void *ctx)
{
    return !((const Get *)ctx)->sink.touched;
}

static bool take_get(Get *get, const sprov_get_request *from, GError **error)
{
    sprov_get_request *r = &get->request;
    return glue_take_request(r, sizeof *r, from, "request", error) &&
           check_no_flags(r->flags, error) && glue_check_path(r->path, error) &&
           glue_check_pointer(r->tar, "request->tar", error) &&
           glue_take_sink(&get->sink, get->gc->provider, r->tar, "request->tar", error);
}

static bool run_get(Get *get)
{
    DkrWork work = {attempt_get, get_may_repeat, get};
    bool ok = glue_work(get->gc, &work);
    glue_sink_done(&get->sink);
    return ok;
}

static sprov_status archive_get(sprov_sandbox *sandbox, const sprov_get_request *request,
                                const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    Get get = {.gc = &gc};
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              take_get(&get, request, &gc.failure) && run_get(&get);
    return glue_end(&gc, ok);
}

const sprov_ext_archive glue_archive = {
    .struct_size = sizeof(sprov_ext_archive),
    .write_files = archive_write_files,
    .put = archive_put,
    .get = archive_get,
};
