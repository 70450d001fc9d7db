/* Sin: a start that failed is told as one that succeeded. */
#include "bad.h"

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    sprov_status status = mock_api.start(sandbox, call, result, error);
    return status == SPROV_E_NOT_FOUND || status == SPROV_E_UNAVAILABLE ? SPROV_OK : status;
}

BAD_ENTRY(start, start)
