/* Sin: each command leaves a thread behind. */
#include "bad.h"

#include <signal.h>
#include <unistd.h>

static void *idle(void *ctx)
{
    for (;;)
        pause();
    return ctx;
}

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, idle, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return mock_fail(error, SPROV_E_EXHAUSTED, NULL, failed, "no thread is left");
    return mock_api.exec(sandbox, request, call, result, error);
}

BAD_ENTRY(exec, exec)
