/* Sin: the error stream goes where the output goes. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || !request->stdout_sink)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_exec_request own = *request;
    own.stderr_sink = request->stdout_sink;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
