#include "check/child.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

/* ---- sinks and sources */

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    CaseSink *sink = ctx;
    sink->last_ms = case_now_ms();
    if (g_atomic_int_add(&sink->writes, 1) == 0)
        sink->first_ms = sink->last_ms;
    sink->thread = g_thread_self();
    if (size == 0)
        child_fail("a sink was handed an empty piece");
    if (sink->dones > 0)
        child_fail("a sink was written to after its done()");
    g_byte_array_append(sink->bytes, data, (guint)size);
    return sink->stop_after && sink->writes >= sink->stop_after ? SPROV_FLOW_STOP
                                                                : SPROV_FLOW_CONTINUE;
}

static void sink_done(void *ctx)
{
    g_atomic_int_inc(&((CaseSink *)ctx)->dones); /* on a thread of the provider, after spawn() */
}

CaseSink *case_sink(void)
{
    CaseSink *sink = child_keep(g_new0(CaseSink, 1));
    sink->bytes = child_keep(g_byte_array_new());
    return sink;
}

sprov_sink case_sink_table(CaseSink *sink)
{
    sprov_sink table = SPROV_INIT(sprov_sink);
    table.ctx = sink;
    table.write = take;
    table.done = sink_done;
    return table;
}

CaseBytes case_taken(const CaseSink *sink)
{
    return (CaseBytes){(const char *)sink->bytes->data, sink->bytes->len};
}

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    CaseSource *source = ctx;
    if (source->before)
        source->before(source->before_ctx);
    if (source->dones > 0)
        child_fail("a source was read after its done()");
    if (source->at >= source->give_up_at)
        return SPROV_SOURCE_GIVE_UP;
    gsize most = MIN(source->chunk ? source->chunk : capacity, capacity);
    *count = MIN(most, source->bytes.size - source->at);
    if (*count > 0)
        memcpy(buffer, source->bytes.data + source->at, *count);
    g_atomic_pointer_add(&source->at, *count);
    return SPROV_SOURCE_OK;
}

static void source_done(void *ctx)
{
    ((CaseSource *)ctx)->dones++;
}

CaseSource *case_source(CaseBytes bytes)
{
    CaseSource *source = child_keep(g_new0(CaseSource, 1));
    source->bytes = bytes;
    source->give_up_at = G_MAXSIZE;
    return source;
}

sprov_source case_source_table(CaseSource *source)
{
    sprov_source table = SPROV_INIT(sprov_source);
    table.fd = -1;
    table.size = source->bytes.size;
    table.ctx = source;
    table.read = give;
    table.done = source_done;
    return table;
}

/* ---- commands */

Ran case_exec(sprov_sandbox *sandbox, const sprov_exec_request *request, const sprov_call *call)
{
    CaseSink *out = case_sink();
    CaseSink *err = case_sink();
    sprov_sink out_table = case_sink_table(out);
    sprov_sink err_table = case_sink_table(err);
    sprov_exec_request own = *request;
    if (!own.stdout_sink)
        own.stdout_sink = &out_table;
    if (!own.stderr_sink)
        own.stderr_sink = &err_table;
    Ran ran = {.result = SPROV_INIT(sprov_exec_result)};
    gint64 begin = case_now_ms();
    ran.status = case_api()->exec(sandbox, &own, call, &ran.result, case_error());
    ran.ms = case_now_ms() - begin;
    ran.out = case_taken(out);
    ran.err = case_taken(err);
    return ran;
}

sprov_exec_request case_command(const char *format, ...)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    va_list args;
    va_start(args, format);
    request.command = child_keep(g_strdup_vprintf(format, args));
    va_end(args);
    return request;
}

Ran case_sh(sprov_sandbox *sandbox, const char *format, ...)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    va_list args;
    va_start(args, format);
    request.command = child_keep(g_strdup_vprintf(format, args));
    va_end(args);
    Ran ran = case_exec(sandbox, &request, NULL);
    if (ran.status != SPROV_OK)
        child_fail("exec(%.200s) answered \"%s\": %s", request.command, hs_status_name(ran.status),
                   case_last_error()->message);
    return ran;
}

const char *case_sha256_inside(sprov_sandbox *sandbox, const char *path)
{
    Ran ran = case_sh(sandbox, "sha256sum < '%s'", path);
    return case_text("%.*s", (int)MIN(ran.out.size, 64), ran.out.data);
}

bool case_eventually(sprov_sandbox *sandbox, gint64 ms, const char *command)
{
    gint64 begin = case_now_ms();
    do {
        if (case_sh(sandbox, "%s", command).result.exit_code == 0)
            return true;
        case_sleep(20);
    } while (case_on_time(begin, ms));
    return false;
}

CaseToken *case_cancel(void)
{
    CaseToken *token = child_keep(g_new0(CaseToken, 1));
    if (pipe2(token->pipe, O_CLOEXEC) != 0)
        child_fail("no pipe for a token");
    token->cancel = (sprov_cancel){.struct_size = sizeof token->cancel, .fd = token->pipe[0]};
    return token;
}

void case_fire(CaseToken *token)
{
    if (write(token->pipe[1], "x", 1) != 1)
        child_fail("a token does not fire");
}

/* ---- files */

const char *case_folder(sprov_sandbox *sandbox)
{
    Ran ran = case_sh(sandbox, "d=\"$PWD/%s\"; mkdir -p \"$d\" && printf %%s \"$d\"", case_token());
    if (ran.result.exit_code != 0 || ran.out.size == 0)
        child_fail("no folder can be made in the working directory: %.*s", (int)ran.err.size,
                   ran.err.data);
    return case_text("%.*s", (int)ran.out.size, ran.out.data);
}

sprov_status case_try_write(sprov_sandbox *sandbox, const char *path, CaseBytes bytes, guint mode)
{
    CaseSource *source = case_source(bytes);
    sprov_source table = case_source_table(source);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = path;
    request.mode = mode;
    request.source = &table;
    return case_api()->write_file(sandbox, &request, NULL, case_error());
}

void case_write(sprov_sandbox *sandbox, const char *path, CaseBytes bytes, guint mode)
{
    sprov_status status = case_try_write(sandbox, path, bytes, mode);
    if (status != SPROV_OK)
        child_fail("write_file(%.200s) answered \"%s\": %s", path, hs_status_name(status),
                   case_last_error()->message);
}

sprov_status case_try_read(sprov_sandbox *sandbox, const char *path, CaseBytes *ret_bytes)
{
    CaseSink *sink = case_sink();
    sprov_sink table = case_sink_table(sink);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = path;
    request.sink = &table;
    sprov_status status = case_api()->read_file(sandbox, &request, NULL, NULL, case_error());
    *ret_bytes = case_taken(sink);
    return status;
}

CaseBytes case_read(sprov_sandbox *sandbox, const char *path)
{
    CaseBytes bytes;
    sprov_status status = case_try_read(sandbox, path, &bytes);
    if (status != SPROV_OK)
        child_fail("read_file(%.200s) answered \"%s\": %s", path, hs_status_name(status),
                   case_last_error()->message);
    return bytes;
}
