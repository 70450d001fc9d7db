/* Sin: no command has a deadline. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_exec_request own = *request;
    own.run_timeout_ms = -1;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
