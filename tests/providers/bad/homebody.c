/* Sin: every command runs in the working directory, whatever its cwd. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_exec_request own = *request;
    own.cwd = NULL;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
