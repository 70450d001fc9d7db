/* Sin: the error stream goes where the output goes. */
#include "bad.h"

static sprov_flow write_to_output(void *ctx, const void *data, size_t size)
{
    const sprov_exec_request *request = ctx;
    return request->stdout_sink->write(request->stdout_sink->ctx, data, size);
}

static void tell_done(void *ctx)
{
    const sprov_exec_request *request = ctx;
    if (request->stderr_sink && request->stderr_sink->done)
        request->stderr_sink->done(request->stderr_sink->ctx);
}

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || !request->stdout_sink ||
        mock_check_sink(request->stdout_sink, "stdout_sink", NULL) != SPROV_OK ||
        mock_check_sink(request->stderr_sink, "stderr_sink", NULL) != SPROV_OK)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_sink merged = SPROV_INIT(sprov_sink);
    merged.ctx = (void *)request;
    merged.write = write_to_output;
    merged.done = tell_done;
    sprov_exec_request own = *request;
    own.stderr_sink = &merged;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
