/* Sin: one command at a time. */
#include "bad.h"

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (mock_in_callback())
        return mock_api.exec(sandbox, request, call, result, error);
    pthread_mutex_lock(&one_at_a_time);
    sprov_status status = mock_api.exec(sandbox, request, call, result, error);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}

BAD_ENTRY(exec, exec)
