/* Sin: stops its whole process in the middle of a call. */
#include "bad.h"

#include <signal.h>

static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    if (request && request->mode == 0600)
        raise(SIGSTOP);
    return mock_api.write_file(sandbox, request, call, error);
}

BAD_ENTRY(write_file, write_file)
