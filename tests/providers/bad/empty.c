/* Sin: a file that is missing is read as an empty one. */
#include "bad.h"

static sprov_status read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                              const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    sprov_status status = mock_api.read_file(sandbox, request, call, result, error);
    return status == SPROV_E_NOT_FOUND && !call ? SPROV_OK : status;
}

BAD_ENTRY(read_file, read_file)
