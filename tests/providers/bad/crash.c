/* Sin: destroy() crashes. */
#include "bad.h"

#include <signal.h>

static sprov_status destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    if (sandbox)
        raise(SIGSEGV);
    return mock_api.destroy(sandbox, call, error);
}

BAD_ENTRY(destroy, destroy)
