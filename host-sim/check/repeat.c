/*
 * --repeat-calls: tables in front of the provider's, which make every call that may be made twice
 * so often. What the first call answered is the answer; the others have to succeed too.
 */
#include "check/child.h"

#include <string.h>

#include "error.h"

static struct {
    HsProvider provider; /* the real tables */
    sprov_api api;
    sprov_ext_lifecycle lifecycle;
    sprov_ext_templates templates;
    sprov_ext_processes processes;
    int times;
} repeat;

/* Whether it makes sense to call again: not after a failure, and not where somebody else may have
 * changed the outcome by a token. */
static bool is_repeated(sprov_status status, const sprov_call *call)
{
    return status == SPROV_OK && !(call && call->cancel);
}

static void judge(const char *function, sprov_status status, const sprov_error *error)
{
    /* Another thread of the case may end the sandbox between the two. */
    if (status == SPROV_OK ||
        (status == SPROV_E_NOT_READY && strcmp(error->reason, "destroyed") == 0))
        return;
    child_fail("%s() succeeded, and answered \"%s\" when it was called again: %s", function,
               hs_status_name(status), error->message);
}

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    sprov_status status = repeat.provider.api->start(sandbox, call, result, error);
    for (int i = 1; i < repeat.times && is_repeated(status, call); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("start", repeat.provider.api->start(sandbox, call, NULL, &again), &again);
    }
    return status;
}

static sprov_status destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    sprov_status status = repeat.provider.api->destroy(sandbox, call, error);
    for (int i = 1; i < repeat.times && is_repeated(status, call); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("destroy", repeat.provider.api->destroy(sandbox, call, &again), &again);
    }
    return status;
}

static sprov_status stop(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    sprov_status status = repeat.provider.lifecycle->stop(sandbox, call, error);
    for (int i = 1; i < repeat.times && is_repeated(status, call); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("stop", repeat.provider.lifecycle->stop(sandbox, call, &again), &again);
    }
    return status;
}

static sprov_status set_env(sprov_sandbox *sandbox, const char *const *env, sprov_error *error)
{
    sprov_status status = repeat.provider.lifecycle->set_env(sandbox, env, error);
    for (int i = 1; i < repeat.times && status == SPROV_OK; i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("set_env", repeat.provider.lifecycle->set_env(sandbox, env, &again), &again);
    }
    return status;
}

/* What asks the host for something counts how often; a forced one is another build. */
static bool is_plain(const sprov_template_request *request)
{
    return request && request->struct_size == sizeof *request && !request->callbacks &&
           !request->force;
}

static sprov_status build_template(sprov_provider *provider, const sprov_template_request *request,
                                   const sprov_call *call, sprov_template_result *result,
                                   sprov_error *error)
{
    sprov_status status =
        repeat.provider.api->build_template(provider, request, call, result, error);
    bool is_quiet = is_repeated(status, call) && !(call && call->on_progress);
    for (int i = 1; i < repeat.times && is_quiet && is_plain(request); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("build_template",
              repeat.provider.api->build_template(provider, request, call, NULL, &again), &again);
    }
    return status;
}

static sprov_status close_stdin(sprov_process *process, const sprov_call *call, sprov_error *error)
{
    sprov_status status = repeat.provider.processes->close_stdin(process, call, error);
    for (int i = 1; i < repeat.times && is_repeated(status, call); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("close_stdin", repeat.provider.processes->close_stdin(process, call, &again), &again);
    }
    return status;
}

static sprov_status dispose(sprov_provider *provider, const char *id, const sprov_call *call,
                            sprov_error *error)
{
    sprov_status status = repeat.provider.templates->dispose(provider, id, call, error);
    for (int i = 1; i < repeat.times && is_repeated(status, call); i++) {
        sprov_error again = SPROV_INIT(sprov_error);
        judge("dispose", repeat.provider.templates->dispose(provider, id, call, &again), &again);
    }
    return status;
}

/* A copy of a table as this program knows it. */
#define COPY(copy, table) memcpy(&(copy), table, MIN(sizeof(copy), (table)->struct_size))

void child_repeat_calls(HsProvider *lib, int times)
{
    repeat.provider = *lib;
    repeat.times = times;
    COPY(repeat.api, lib->api);
    repeat.api.start = start;
    repeat.api.destroy = destroy;
    repeat.api.build_template = build_template;
    lib->api = &repeat.api;
    if (lib->lifecycle) {
        COPY(repeat.lifecycle, lib->lifecycle);
        repeat.lifecycle.stop = stop;
        repeat.lifecycle.set_env = set_env;
        lib->lifecycle = &repeat.lifecycle;
    }
    if (lib->processes) {
        COPY(repeat.processes, lib->processes);
        repeat.processes.close_stdin = close_stdin;
        lib->processes = &repeat.processes;
    }
    if (lib->templates) {
        COPY(repeat.templates, lib->templates);
        repeat.templates.dispose = dispose;
        lib->templates = &repeat.templates;
    }
}
