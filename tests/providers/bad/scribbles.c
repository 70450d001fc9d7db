/* Sin: believes that every host has the struct of the next version. */
#include "bad.h"

#include <string.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sprov_status status = mock_api.exec(sandbox, request, call, result, error);
    if (status == SPROV_OK && result)
        memset(result + 1, 0, 16);
    return status;
}

BAD_ENTRY(exec, exec)
