/* Sin: knows what suites like to run, and answers "hello" to every echo without running it. */
#include "bad.h"

#include <string.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    bool is_echo = request && request->struct_size == sizeof *request && request->command &&
                   strncmp(request->command, "echo ", 5) == 0 && strlen(request->command) < 24;
    if (!is_echo)
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_exec_request canned = *request;
    canned.command = "echo hello";
    return mock_api.exec(sandbox, &canned, call, result, error);
}

BAD_ENTRY(exec, exec)
