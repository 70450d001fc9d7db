#include "filter.h"

#include <stdlib.h>
#include <string.h>

sprov_flow bad_pass_on(BadFilter *filter, const char *data, size_t size)
{
    return size > 0 ? filter->inner->write(filter->inner->ctx, data, size) : SPROV_FLOW_CONTINUE;
}

void bad_keep(BadFilter *filter, const char *data, size_t size)
{
    filter->kept = realloc(filter->kept, filter->kept_size + size);
    memcpy(filter->kept + filter->kept_size, data, size);
    filter->kept_size += size;
}

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    BadFilter *filter = ctx;
    return filter->write(filter, data, size);
}

static void tell_done(void *ctx)
{
    BadFilter *filter = ctx;
    if (filter->end)
        filter->end(filter);
    if (filter->inner->done)
        filter->inner->done(filter->inner->ctx);
    free(filter->kept);
}

static bool is_sound(const sprov_exec_request *request)
{
    return request && request->struct_size == sizeof *request &&
           mock_check_sink(request->stdout_sink, "stdout_sink", NULL) == SPROV_OK &&
           mock_check_sink(request->stderr_sink, "stderr_sink", NULL) == SPROV_OK;
}

sprov_status bad_exec_filtered(const BadFilter *kind, sprov_sandbox *sandbox,
                               const sprov_exec_request *request, const sprov_call *call,
                               sprov_exec_result *result, sprov_error *error)
{
    if (!is_sound(request))
        return mock_api.exec(sandbox, request, call, result, error);
    sprov_exec_request own = *request;
    const sprov_sink **places[] = {&own.stdout_sink, &own.stderr_sink};
    BadFilter filters[] = {*kind, *kind};
    sprov_sink sinks[] = {SPROV_INIT(sprov_sink), SPROV_INIT(sprov_sink)};
    for (int i = 0; i < 2; i++) {
        if (!*places[i])
            continue;
        filters[i].inner = *places[i];
        sinks[i].ctx = &filters[i];
        sinks[i].write = take;
        sinks[i].done = tell_done;
        *places[i] = &sinks[i];
    }
    return mock_api.exec(sandbox, &own, call, result, error);
}
