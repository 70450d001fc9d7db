/* Sin: closes every descriptor of its host but the standard streams, those of the suite too. */
#include "bad.h"

#include <unistd.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sprov_status status = mock_api.exec(sandbox, request, call, result, error);
    closefrom(3);
    return status;
}

BAD_ENTRY(exec, exec)
