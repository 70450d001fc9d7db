/* Sin: each command leaves a descriptor open. */
#include "bad.h"

#include <fcntl.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
        return mock_fail(error, SPROV_E_EXHAUSTED, NULL, 0, "no descriptor is left");
    return mock_api.exec(sandbox, request, call, result, error);
}

BAD_ENTRY(exec, exec)
