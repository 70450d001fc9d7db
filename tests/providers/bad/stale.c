/* Sin: a failure writes its code and its message, and leaves the rest as an earlier one had it. */
#include "bad.h"

static sprov_status read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                              const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    sprov_error own = SPROV_INIT(sprov_error);
    sprov_status status = mock_api.read_file(sandbox, request, call, result, error ? &own : NULL);
    if (status == SPROV_OK || !error)
        return status;
    error->code = own.code;
    memcpy(error->message, own.message, sizeof error->message);
    return status;
}

BAD_ENTRY(read_file, read_file)
