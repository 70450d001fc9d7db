/* Sin: a wait whose deadline passes ends the process. */
#include "bad.h"

#include <signal.h>

static sprov_status wait_for(sprov_process *process, const sprov_call *call,
                             sprov_exec_result *result, sprov_error *error)
{
    sprov_status status = mock_processes.wait(process, call, result, error);
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = SIGKILL;
    if (status == SPROV_E_TIMEOUT)
        mock_processes.kill(process, &request, NULL, NULL);
    return status;
}

BAD_PROCESSES(wait, wait_for)
