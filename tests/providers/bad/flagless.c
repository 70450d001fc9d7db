/* Sin: the result of a killed command has no flags. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sprov_status status = mock_api.exec(sandbox, request, call, result, error);
    if (status == SPROV_OK && result)
        result->flags = 0;
    return status;
}

BAD_ENTRY(exec, exec)
