/* Sin: children of the host inherit a descriptor while a command runs. */
#include "bad.h"

#include <fcntl.h>
#include <unistd.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    int inherited = open("/dev/null", O_RDONLY);
    sprov_status status = mock_api.exec(sandbox, request, call, result, error);
    close(inherited);
    return status;
}

BAD_ENTRY(exec, exec)
