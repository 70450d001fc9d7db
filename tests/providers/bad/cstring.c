/* Sin: takes output for a C string, so that it ends at the first NUL. */
#include "bad.h"

#include <string.h>

static sprov_flow write_text(void *ctx, const void *data, size_t size)
{
    const sprov_sink *sink = ctx;
    size_t length = strnlen(data, size);
    return length > 0 ? sink->write(sink->ctx, data, length) : SPROV_FLOW_CONTINUE;
}

static void tell_done(void *ctx)
{
    const sprov_sink *sink = ctx;
    if (sink->done)
        sink->done(sink->ctx);
}

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || !request->stdout_sink ||
        mock_check_sink(request->stdout_sink, "stdout_sink", NULL) != SPROV_OK)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_sink text = SPROV_INIT(sprov_sink);
    text.ctx = (void *)request->stdout_sink;
    text.write = write_text;
    text.done = tell_done;
    sprov_exec_request own = *request;
    own.stdout_sink = &text;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
