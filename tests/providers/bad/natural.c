/* Sin: the end of a process that was killed is told as one of its own. */
#include "bad.h"

static sprov_status wait_for(sprov_process *process, const sprov_call *call,
                             sprov_exec_result *result, sprov_error *error)
{
    sprov_status status = mock_processes.wait(process, call, result, error);
    if (status == SPROV_OK && result)
        result->flags &= ~(uint32_t)SPROV_EXEC_KILLED;
    return status;
}

BAD_PROCESSES(wait, wait_for)
