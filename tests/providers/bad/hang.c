/* Sin: reading a file never comes back, not even when its thread is told to end. */
#include "bad.h"

#include <signal.h>
#include <unistd.h>

static sprov_status read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                              const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (sandbox)
        pause();
    return mock_api.read_file(sandbox, request, call, result, error);
}

BAD_ENTRY(read_file, read_file)
