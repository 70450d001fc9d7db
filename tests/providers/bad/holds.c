/* Sin: output that nobody reads holds every process, not only those that asked for it. */
#include "bad.h"

static sprov_status spawn(sprov_sandbox *sandbox, const sprov_spawn_request *request,
                          const sprov_call *call, sprov_process **process, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || request->overflow != 0)
        return mock_processes.spawn(sandbox, request, call, process, error);
    sprov_spawn_request own = *request;
    own.overflow = SPROV_OVERFLOW_HOLD;
    return mock_processes.spawn(sandbox, &own, call, process, error);
}

BAD_PROCESSES(spawn, spawn)
