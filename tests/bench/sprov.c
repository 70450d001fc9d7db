#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <ext/lifecycle.h>

static const sprov_api *api;
static const sprov_ext_lifecycle *lifecycle;
static sprov_provider *provider;

static void check(sprov_status status, const char *what, const sprov_error *error)
{
    if (status != SPROV_OK)
        bench_die("sprov: %s: %s", what, error->message);
}

void bench_sprov_load(const char *path)
{
    sprov_error error = SPROV_INIT(sprov_error);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sprov_entry_fn entry = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    if (!entry)
        bench_die("sprov: %s", dlerror());
    api = entry()->api;
    lifecycle = entry()->get_extension(SPROV_EXT_LIFECYCLE);
    check(api->open(NULL, NULL, &provider, &error), "open", &error);
}

typedef struct {
    const char *wanted;
    bool found;
} Mode;

static void look_for_mode(void *ctx, const char *text, size_t size)
{
    Mode *mode = ctx;
    const char *at = strstr(text, "\"supervisor\"");
    const char *value = at ? strstr(at, "\"mode\"") : NULL;
    if (!value || !strstr(value, mode->wanted))
        bench_die("sprov: not the transport to be measured: %s", at ? at : text);
    mode->found = true;
}

void *bench_sprov_make(const char *image, bool supervised, double *ret_start_ms)
{
    char options[256];
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    Mode mode = {.wanted = supervised ? "\"on\"" : "\"off\""};
    double start = bench_now_ms();
    snprintf(options, sizeof options, "{\"image\":\"%s\",\"supervisor\":\"%s\"}", image,
             supervised ? "auto" : "off");
    check(api->create(provider, options, NULL, &sandbox, &error), "create", &error);
    check(api->start(sandbox, NULL, NULL, &error), "start", &error);
    *ret_start_ms = bench_now_ms() - start;
    check(lifecycle->info(sandbox, NULL, look_for_mode, &mode, &error), "info", &error);
    if (!mode.found)
        bench_die("sprov: info() told nothing");
    return sandbox;
}

typedef struct {
    char bytes[16];
    size_t size;
} Output;

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    Output *output = ctx;
    if (output->size + size > sizeof output->bytes)
        return SPROV_FLOW_STOP;
    memcpy(output->bytes + output->size, data, size);
    output->size += size;
    return SPROV_FLOW_CONTINUE;
}

void bench_sprov_run(void *sandbox)
{
    Output output = {0};
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    static const char *const argv[] = {"sh", "-c", "echo hi", NULL};
    sink.ctx = &output;
    sink.write = take;
    request.argv = argv;
    request.stdout_sink = &sink;
    check(api->exec(sandbox, &request, NULL, &result, &error), "exec", &error);
    if (result.exit_code != 0 || output.size != 3 || memcmp(output.bytes, "hi\n", 3) != 0)
        bench_die("sprov: wrong result");
}

void bench_sprov_stop(void *sandbox)
{
    sprov_error error = SPROV_INIT(sprov_error);
    check(lifecycle->stop(sandbox, NULL, &error), "stop", &error);
}

void bench_sprov_drop(void *sandbox)
{
    sprov_error error = SPROV_INIT(sprov_error);
    check(api->destroy(sandbox, NULL, &error), "destroy", &error);
    api->release(sandbox);
}
