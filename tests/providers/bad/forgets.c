/* Sin: start() makes the sandbox anew, though there is one. */
#include "bad.h"

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    bool is_plain = sandbox && !call && !mock_in_callback() && !mock_is_destroyed(sandbox);
    if (is_plain && mock_store_get(sandbox->dir, NULL) != MOCK_ABSENT) {
        mock_store_kill(sandbox->dir);
        mock_store_remove(sandbox->dir);
    }
    return mock_api.start(sandbox, call, result, error);
}

BAD_ENTRY(start, start)
