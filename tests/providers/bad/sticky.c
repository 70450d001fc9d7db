/* Sin: the environment of a command stays with its handle. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (sandbox && request && request->struct_size == sizeof *request && request->env)
        mock_lifecycle.set_env(sandbox, request->env, NULL);
    return mock_api.exec(sandbox, request, call, result, error);
}

BAD_ENTRY(exec, exec)
