/* A whole host: example-host PROVIDER.so OPTIONS, where OPTIONS is JSON for create(). */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <sandbox_provider.h>

static sprov_flow print(void *ctx, const void *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size ? SPROV_FLOW_CONTINUE : SPROV_FLOW_STOP;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    sprov_entry_fn entry = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    if (!entry) {
        fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "usage: example-host PROVIDER.so OPTIONS");
        return 125;
    }
    const sprov_api *api = entry()->api;
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    sprov_sink to_stdout = SPROV_INIT(sprov_sink);
    to_stdout.write = print;
    to_stdout.ctx = stdout;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo hello";
    request.stdout_sink = &to_stdout;
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);

    bool started = api->open(NULL, NULL, &provider, &error) == SPROV_OK &&
                   api->create(provider, argv[2], NULL, &sandbox, &error) == SPROV_OK &&
                   api->start(sandbox, NULL, NULL, &error) == SPROV_OK;
    bool ran = started && api->exec(sandbox, &request, NULL, &result, &error) == SPROV_OK;
    if (!ran)
        fprintf(stderr, "%s\n", error.message);
    if (started && api->destroy(sandbox, NULL, &error) != SPROV_OK)
        fprintf(stderr, "%s\n", error.message);
    api->release(sandbox);
    if (provider)
        api->close(provider, NULL);
    return ran ? result.exit_code : 125;
}
