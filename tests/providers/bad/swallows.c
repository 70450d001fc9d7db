/* Sin: input for a process that has ended is taken, and gone. */
#include "bad.h"

static sprov_status write_stdin(sprov_process *process, const void *data, size_t size,
                                size_t *written, const sprov_call *call, sprov_error *error)
{
    sprov_status status = mock_processes.write_stdin(process, data, size, written, call, error);
    if (status != SPROV_E_CONFLICT)
        return status;
    *written = size;
    return SPROV_OK;
}

BAD_PROCESSES(write_stdin, write_stdin)
