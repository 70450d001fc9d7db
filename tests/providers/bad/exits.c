/* Sin: takes a wrong mode so ill that it ends the process, as if all were well. */
#include "bad.h"

#include <stdlib.h>

static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    if (request && request->struct_size == sizeof *request && request->mode > 0777)
        exit(0);
    return mock_api.write_file(sandbox, request, call, error);
}

BAD_ENTRY(write_file, write_file)
