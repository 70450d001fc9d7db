/* Sin: keeps the options as the host handed them, and looks at them when the sandbox starts. */
#include "bad.h"

#include <string.h>

static const char *kept;

static sprov_status create(sprov_provider *provider, const char *options,
                           const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                           sprov_error *error)
{
    kept = options;
    return mock_api.create(provider, options, callbacks, sandbox, error);
}

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    if (sandbox && kept && !strchr(kept, '}'))
        return mock_fail(error, SPROV_E_INTERNAL, NULL, 0, "the options are no JSON: %.20s", kept);
    return mock_api.start(sandbox, call, result, error);
}

static const sprov_api *bad_api(void)
{
    static sprov_api api;
    api = mock_api;
    api.create = create;
    api.start = start;
    return &api;
}

BAD_TABLES(bad_api(), mock_get_extension)
