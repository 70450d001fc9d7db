/* Sin: shell commands begin with a signal ignored, as after a host that ignores it. */
#include "bad.h"

#include <stdio.h>
#include <stdlib.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sprov_exec_request own;
    char *command = NULL;
    if (!request || request->struct_size != sizeof own || request->argv || !request->command ||
        !*request->command || asprintf(&command, "trap '' HUP; %s", request->command) < 0)
        return mock_api.exec(sandbox, request, call, result, error);
    own = *request;
    own.command = command;
    sprov_status status = mock_api.exec(sandbox, &own, call, result, error);
    free(command);
    return status;
}

BAD_ENTRY(exec, exec)
