/* Sin: files are made with the umask of the provider, which it sets for the whole process. */
#include "bad.h"

#include <sys/stat.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    umask(022);
    return mock_api.exec(sandbox, request, call, result, error);
}

BAD_ENTRY(exec, exec)
