/* Sin: nobody looks at the token of a command. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!call || call->struct_size != sizeof *call)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_call own = *call;
    own.cancel = NULL;
    return mock_api.exec(sandbox, request, &own, result, error);
}

BAD_ENTRY(exec, exec)
