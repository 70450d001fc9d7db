/* Sin: a command creates its sandbox even where that was forbidden. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!call || call->struct_size != sizeof *call)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_call own = *call;
    own.flags &= ~(uint32_t)SPROV_CALL_NO_CREATE;
    return mock_api.exec(sandbox, request, &own, result, error);
}

BAD_ENTRY(exec, exec)
