/* Sin: prints on the standard output of the host. */
#include "bad.h"

#include <stdio.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    puts("running a command");
    fflush(stdout);
    return mock_api.exec(sandbox, request, call, result, error);
}

BAD_ENTRY(exec, exec)
