#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ext/archive.h>
#include <ext/lifecycle.h>

static const sprov_api *api;
static const sprov_ext_lifecycle *lifecycle;
static const sprov_ext_archive *archive;
static sprov_provider *provider;
static const char *image;

static void check(sprov_status status, const char *what, const sprov_error *error)
{
    if (status != SPROV_OK)
        bench_die("%s: %s", what, error->message);
}

void bench_sprov_open(const char *path, const char *with_image, const char *runtime_dir)
{
    char config[512];
    sprov_error error = SPROV_INIT(sprov_error);
    image = with_image;
    if (!path)
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sprov_entry_fn entry = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    if (!entry)
        bench_die("%s", dlerror());
    api = entry()->api;
    lifecycle = entry()->get_extension(SPROV_EXT_LIFECYCLE);
    archive = entry()->get_extension(SPROV_EXT_ARCHIVE);
    snprintf(config, sizeof config, "{\"runtimeDir\":\"%s\"}", runtime_dir);
    check(api->open(NULL, config, &provider, &error), "open", &error);
}

static void *make(const char *more, double *ret_start_ms)
{
    char options[256];
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    double start = bench_now_ms();
    snprintf(options, sizeof options, "{\"image\":\"%s\",%s}", image, more);
    check(api->create(provider, options, NULL, &sandbox, &error), "create", &error);
    check(api->start(sandbox, NULL, NULL, &error), "start", &error);
    *ret_start_ms = bench_now_ms() - start;
    return sandbox;
}

static void *make_socket(double *ret_start_ms)
{
    return make("\"transport\":\"auto\"", ret_start_ms);
}

static void *make_stream(double *ret_start_ms)
{
    return make("\"transport\":\"stream\"", ret_start_ms);
}

static void *make_engine(double *ret_start_ms)
{
    return make("\"supervisor\":\"off\"", ret_start_ms);
}

/* --------------------------------------------------------------------- the transport */

static void look_for(void *ctx, const char *text, size_t size)
{
    const char *wanted = ctx, *at = strstr(text, "\"supervisor\"");
    (void)size;
    if (!at || !strstr(at, wanted))
        bench_die("not the transport to be measured: %s", at ? at : text);
}

static void expect(void *sandbox, const char *wanted)
{
    sprov_error error = SPROV_INIT(sprov_error);
    check(lifecycle->info(sandbox, NULL, look_for, (void *)wanted, &error), "info", &error);
}

static void check_socket(void *sandbox)
{
    expect(sandbox, "\"transport\":\"socket\"");
}

static void check_stream(void *sandbox)
{
    expect(sandbox, "\"transport\":\"stream\"");
}

static void check_engine(void *sandbox)
{
    expect(sandbox, "\"mode\":\"off\"");
}

/* -------------------------------------------------------------------------- commands */

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

static sprov_flow count(void *ctx, const void *data, size_t size)
{
    (void)data;
    *(size_t *)ctx += size;
    return SPROV_FLOW_CONTINUE;
}

static void exec(sprov_sandbox *sandbox, const char *const *argv, void *ctx,
                 sprov_flow (*write)(void *, const void *, size_t))
{
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    sink.ctx = ctx;
    sink.write = write;
    request.argv = argv;
    request.stdout_sink = &sink;
    check(api->exec(sandbox, &request, NULL, &result, &error), "exec", &error);
    if (result.exit_code != 0)
        bench_die("exit code %d", result.exit_code);
}

static void run(void *sandbox, const char *const *argv, const char *expected)
{
    Output output = {0};
    exec(sandbox, argv, &output, take);
    if (output.size != strlen(expected) || memcmp(output.bytes, expected, output.size) != 0)
        bench_die("wrong output");
}

static void stream(void *sandbox, const char *const *argv, size_t size)
{
    size_t got = 0;
    exec(sandbox, argv, &got, count);
    if (got != size)
        bench_die("%zu bytes instead of %zu", got, size);
}

/* ----------------------------------------------------------------------------- files */

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *ret_count)
{
    size_t *left = ctx;
    *ret_count = *left < capacity ? *left : capacity;
    memset(buffer, 0, *ret_count);
    *left -= *ret_count;
    return SPROV_SOURCE_OK;
}

typedef struct {
    char path[64];
    size_t left;
    sprov_source source;
    sprov_write_request request;
} File;

static void file_init(File *file, const char *name, size_t size)
{
    *file = (File){.left = size,
                   .source = SPROV_INIT(sprov_source),
                   .request = SPROV_INIT(sprov_write_request)};
    snprintf(file->path, sizeof file->path, BENCH_DIRECTORY "/%s", name);
    file->source.fd = -1;
    file->source.size = size;
    file->source.ctx = &file->left;
    file->source.read = give;
    file->request.path = file->path;
    file->request.source = &file->source;
}

static void put_files(void *sandbox, const char *name, size_t size, int count)
{
    File *files = calloc((size_t)count, sizeof *files);
    const sprov_write_request **requests = calloc((size_t)count, sizeof *requests);
    sprov_error error = SPROV_INIT(sprov_error);
    for (int i = 0; i < count; i++) {
        char numbered[32];
        snprintf(numbered, sizeof numbered, "%s-%d", name, i);
        file_init(&files[i], numbered, size);
        requests[i] = &files[i].request;
    }
    check(archive->write_files(sandbox, requests, (size_t)count, NULL, NULL, &error), "write_files",
          &error);
    free(requests);
    free(files);
}

static void put(void *sandbox, const char *name, size_t size, int count)
{
    File file;
    sprov_error error = SPROV_INIT(sprov_error);
    file_init(&file, name, size);
    if (count > 1)
        put_files(sandbox, name, size, count);
    else
        check(api->write_file(sandbox, &file.request, NULL, &error), "write_file", &error);
}

/* Many lie in one directory and come with it, as a tar stream that is not taken apart. */
static void get(void *sandbox, const char *name, size_t size, int files)
{
    char path[64];
    size_t got = 0;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    sprov_get_request whole = SPROV_INIT(sprov_get_request);
    sprov_error error = SPROV_INIT(sprov_error);
    snprintf(path, sizeof path, BENCH_DIRECTORY "/%s", name);
    sink.ctx = &got;
    sink.write = count;
    request.path = path;
    request.sink = whole.tar = &sink;
    whole.path = BENCH_DIRECTORY;
    if (files > 1)
        check(archive->get(sandbox, &whole, NULL, &error), "get", &error);
    else
        check(api->read_file(sandbox, &request, NULL, NULL, &error), "read_file", &error);
    if (files > 1 ? got < size * (size_t)files : got != size)
        bench_die("%zu bytes instead of %zu", got, size * (size_t)files);
}

static sprov_source_status give_program(void *ctx, void *buffer, size_t capacity, size_t *ret_count)
{
    *ret_count = fread(buffer, 1, capacity, ctx);
    return SPROV_SOURCE_OK;
}

static sprov_flow print(void *ctx, const void *data, size_t size)
{
    (void)ctx;
    fwrite(data, 1, size, stdout);
    return SPROV_FLOW_CONTINUE;
}

static void inside(void *sandbox, const char *program, const char *argument)
{
    sprov_source source = SPROV_INIT(sprov_source);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    sprov_error error = SPROV_INIT(sprov_error);
    const char *const argv[] = {BENCH_DIRECTORY "/spawn", argument, NULL};
    FILE *file = fopen(program, "rb");
    if (!file)
        bench_die("%s is not there", program);
    source.fd = -1;
    source.size = UINT64_MAX;
    source.ctx = file;
    source.read = give_program;
    request.path = argv[0];
    request.mode = 0755;
    request.source = &source;
    check(api->write_file(sandbox, &request, NULL, &error), "write_file", &error);
    fclose(file);
    exec(sandbox, argv, NULL, print);
}

/* ------------------------------------------------------------------------------ life */

static void stop(void *sandbox)
{
    sprov_error error = SPROV_INIT(sprov_error);
    check(lifecycle->stop(sandbox, NULL, &error), "stop", &error);
}

static void drop(void *sandbox)
{
    sprov_error error = SPROV_INIT(sprov_error);
    check(api->destroy(sandbox, NULL, &error), "destroy", &error);
    api->release(sandbox);
}

#define WAY(way)                                                                                   \
    {                                                                                              \
        .name = "sprov-" #way, .make = make_##way, .run = run, .stream = stream, .put = put,       \
        .get = get, .inside = inside, .stop = stop, .drop = drop, .check = check_##way             \
    }

const BenchSubject bench_sprov_socket = WAY(socket);
const BenchSubject bench_sprov_stream = WAY(stream);
const BenchSubject bench_sprov_engine = WAY(engine);
