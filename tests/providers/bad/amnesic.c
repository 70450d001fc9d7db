/* Sin: a process is forgotten though it still runs. */
#include "bad.h"

#include <signal.h>

static sprov_status forget(sprov_process *process, const sprov_call *call, sprov_error *error)
{
    sprov_status status = mock_processes.forget(process, call, error);
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = SIGKILL;
    if (status != SPROV_E_CONFLICT)
        return status;
    mock_processes.kill(process, &request, NULL, NULL);
    return mock_processes.forget(process, call, error);
}

BAD_PROCESSES(forget, forget)
