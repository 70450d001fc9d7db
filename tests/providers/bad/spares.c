/* Sin: a kill of the tree ends its leader alone, and says that all is gone. */
#include "bad.h"

#include <signal.h>

static sprov_status spare(sprov_process *process, const sprov_kill_request *request,
                          const sprov_call *call, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || request->signal != SIGKILL)
        return mock_processes.kill(process, request, call, error);
    sprov_kill_request own = *request;
    own.scope = SPROV_KILL_LEADER;
    return mock_processes.kill(process, &own, call, error);
}

BAD_PROCESSES(kill, spare)
