/* Sin: destroy() only stops the sandbox. */
#include "bad.h"

static sprov_status destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    if (!sandbox || mock_is_destroyed(sandbox) || mock_in_callback())
        return mock_api.destroy(sandbox, call, error);
    sprov_status status = mock_lifecycle.stop(sandbox, call, error);
    pthread_mutex_lock(&sandbox->mutex);
    sandbox->destroyed |= status == SPROV_OK;
    pthread_mutex_unlock(&sandbox->mutex);
    return status;
}

BAD_ENTRY(destroy, destroy)
