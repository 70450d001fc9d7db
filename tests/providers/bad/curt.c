/* Sin: a command that is ended gets no grace, whatever it was promised. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sprov_exec_request own;
    if (!request || request->struct_size != sizeof own)
        return mock_api.exec(sandbox, request, call, result, error);
    own = *request;
    own.grace_ms = 0;
    return mock_api.exec(sandbox, &own, call, result, error);
}

BAD_ENTRY(exec, exec)
