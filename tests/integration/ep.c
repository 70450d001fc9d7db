#include "ep.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <dlfcn.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LABEL "sprov-test-run"
#define RUN_VARIABLE "SPROV_TEST_RUN"
/* The option "supervisor", where a test sets none. */
#define MODE_VARIABLE "SPROV_TEST_SUPERVISOR"
#define TEST_LIMIT_S 240

/* ------------------------------------------------------------------- small things */

static char *keep(char *text)
{
    static char **kept;
    static size_t count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cr_assert_not_null(text);
    pthread_mutex_lock(&lock);
    kept = realloc(kept, (count + 1) * sizeof *kept);
    kept[count++] = text;
    pthread_mutex_unlock(&lock);
    return text;
}

__attribute__((format(printf, 1, 0))) static char *vformat(const char *format, va_list args)
{
    char *text = NULL;
    return vasprintf(&text, format, args) >= 0 ? keep(text) : NULL;
}

char *ep_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = vformat(format, args);
    va_end(args);
    return text;
}

char *ep_sha256(const void *data, size_t size)
{
    unsigned char digest[32];
    char *hex = keep(malloc(65));
    cr_assert(EVP_Digest(data, size, digest, NULL, EVP_sha256(), NULL));
    for (int i = 0; i < 32; i++)
        sprintf(hex + 2 * i, "%02x", digest[i]);
    return hex;
}

char *ep_random(size_t size)
{
    char *bytes = keep(malloc(size + 1));
    for (size_t have = 0; have < size;) {
        ssize_t n = getrandom(bytes + have, size - have, 0);
        have += n > 0 ? (size_t)n : 0;
    }
    bytes[size] = '\0';
    return bytes;
}

double ep_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void ep_note(const char *format, ...)
{
    FILE *notes = getenv("SPROV_TEST_NOTES") ? fopen(getenv("SPROV_TEST_NOTES"), "ae") : NULL;
    va_list args;
    if (!notes)
        return;
    va_start(args, format);
    vfprintf(notes, format, args);
    va_end(args);
    fputc('\n', notes);
    fclose(notes);
}

bool ep_wait_until(bool (*condition)(void *ctx), void *ctx)
{
    for (double end = ep_now() + 15; ep_now() < end; usleep(50000)) {
        if (condition(ctx))
            return true;
    }
    return condition(ctx);
}

void *ep_start_one(void *starter)
{
    EpStarter *s = starter;
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    s->error = (sprov_error)SPROV_INIT(sprov_error);
    s->status = ep_api()->start(s->sandbox, NULL, &result, &s->error);
    s->outcome = result.outcome;
    return NULL;
}

void ep_threads(int count, void *(*run)(void *), void *ctx, size_t size)
{
    pthread_t threads[64];
    cr_assert_leq(count, 64);
    for (int i = 0; i < count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run, (char *)ctx + (size_t)i * size), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* -------------------------------------------------------------------- the engine */

/* A connection to the engine, or -1. */
static int dial(void)
{
    const char *host = getenv("DOCKER_HOST");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!host || strncmp(host, "unix://", 7) != 0)
        return -1;
    strncpy(to.sun_path, host + 7, sizeof to.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 120}; /* a stuck engine fails the test */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial_or_fail(void)
{
    int fd = dial();
    cr_assert_geq(fd, 0, "no engine answers at DOCKER_HOST=%s: the tests need one at unix:///path",
                  getenv("DOCKER_HOST") ? getenv("DOCKER_HOST") : "");
    return fd;
}

int ep_engine(const char *method, const char *path, const char *json, char **ret_body)
{
    int fd = dial_or_fail(), status = 0;
    char *request =
        ep_format("%s /v1.40%s HTTP/1.0\r\nHost: d\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, json ? strlen(json) : 0, json ? json : "");
    EpBytes answer = {0};
    sprov_sink sink = ep_sink(&answer);
    char block[16384];
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    for (ssize_t n; (n = recv(fd, block, sizeof block, 0)) > 0;)
        sink.write(sink.ctx, block, (size_t)n);
    close(fd);
    cr_assert(answer.data && sscanf(answer.data, "HTTP/1.%*d %d", &status) == 1,
              "the engine gave no answer to %s %s", method, path);
    char *body = strstr(answer.data, "\r\n\r\n");
    if (ret_body)
        *ret_body = body ? body + 4 : answer.data + answer.size;
    return status;
}

static char *list_containers(const char *label, const char *value)
{
    char *body;
    char *path = ep_format("/containers/json?all=1&filters=%%7B%%22label%%22:%%5B%%22%s%%3D%s"
                           "%%22%%5D%%7D",
                           label, value);
    cr_assert_eq(ep_engine("GET", path, NULL, &body), 200);
    return body;
}

/* The next container of a list: *list is moved behind it. */
static char *next_container(char **list)
{
    char *at = strstr(*list, "\"Id\":\"");
    if (!at)
        return NULL;
    *list = at + 6 + 64;
    return ep_format("%.64s", at + 6);
}

int ep_count(const char *id)
{
    char *list = list_containers("mastra.sandbox.id", id);
    int count = 0;
    while (next_container(&list))
        count++;
    return count;
}

int ep_count_helpers(void)
{
    const char *owner = ep_format(":%ld:", (long)getpid());
    char *list;
    int count = 0;
    cr_assert_eq(ep_engine("GET",
                           "/containers/json?all=1&filters=%7B%22label%22:%5B%22sprov.helper%22"
                           "%5D%7D",
                           NULL, &list),
                 200);
    while ((list = strstr(list, owner))) {
        list += strlen(owner);
        count++;
    }
    return count;
}

char *ep_container(const char *id)
{
    char *list = list_containers("mastra.sandbox.id", id);
    return next_container(&list);
}

static const char *escape_all(const char *text)
{
    const char *escaped = "";
    for (; *text; text++)
        escaped = ep_format("%s%%%02X", escaped, (unsigned char)*text);
    return escaped;
}

char *ep_image(const char *entrypoint)
{
    char *name = ep_format("sprov-test-%s", ep_new_id()), *made;
    cr_assert_eq(ep_engine("POST", "/containers/create", "{\"Image\":\"busybox:latest\"}", &made),
                 201);
    char *id = ep_format("%.64s", strstr(made, "\"Id\":\"") + 6);
    char *commit = ep_format("/commit?container=%s&repo=%s&tag=1&changes=%s", id, name,
                             escape_all(ep_format("ENTRYPOINT %s", entrypoint)));
    cr_assert_eq(ep_engine("POST", commit, "{}", NULL), 201);
    cr_assert_eq(ep_engine("DELETE", ep_format("/containers/%s", id), NULL, NULL), 204);
    return ep_format("%s:1", name);
}

/* ------------------------------------------------------------------- the whole run */

/* A call that never returns fails its test, and not the whole run. A test that takes longer names a
 * timeout of its own. (Criterion reads its own default nowhere.) */
static void limit_tests(struct criterion_test_set *tests)
{
    FOREACH_SET(struct criterion_suite_set * suite, tests->suites)
    {
        FOREACH_SET(struct criterion_test * test, suite->tests)
        {
            if (test->data->timeout == 0)
                test->data->timeout = TEST_LIMIT_S;
        }
    }
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
    char run[32];
    snprintf(run, sizeof run, "%ld", (long)getpid());
    setenv(RUN_VARIABLE, run, 1);
    limit_tests(tests);
}

static void remove_volumes(void)
{
    char *prefix = ep_format("\"Name\":\"it-%s-", getenv(RUN_VARIABLE)), *list;
    ep_engine("GET", "/volumes", NULL, &list);
    while ((list = strstr(list, prefix))) {
        list += strlen("\"Name\":\"");
        ep_engine("DELETE", ep_format("/volumes/%.*s", (int)strcspn(list, "\""), list), NULL, NULL);
    }
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    int fd = dial();
    if (fd < 0) /* each test said so; no assert may fail in a hook */
        return;
    close(fd);
    char *list = list_containers(LABEL, getenv(RUN_VARIABLE));
    for (char *container; (container = next_container(&list));)
        ep_engine("DELETE", ep_format("/containers/%s?force=1&v=1", container), NULL, NULL);
    remove_volumes();
}

/* ------------------------------------------------------------------- the provider */

static const sprov_entry *entry(void)
{
    static const sprov_entry *found;
    if (found)
        return found;
    void *library = dlopen(PROVIDER, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    sprov_entry_fn get = (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL);
    cr_assert_not_null(get);
    found = get();
    return found;
}

const sprov_api *ep_api(void)
{
    return entry()->api;
}

const void *ep_extension(const char *id)
{
    const void *extension = entry()->get_extension(id);
    cr_assert_not_null(extension, "%s", id);
    return extension;
}

const sprov_ext_lifecycle *ep_lifecycle(void)
{
    return ep_extension(SPROV_EXT_LIFECYCLE);
}

static sprov_provider *open_provider(const char *host, const char *more)
{
    sprov_provider *provider = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    char *config = ep_format("{\"host\":\"%s\"%s%s}", host, more ? "," : "", more ? more : "");
    cr_assert_eq(ep_api()->open(NULL, config, &provider, &error), SPROV_OK, "%s", error.message);
    return provider;
}

sprov_provider *ep_open_at(const char *host)
{
    return open_provider(host, NULL);
}

sprov_provider *ep_open_with(const char *more)
{
    close(dial_or_fail());
    return open_provider(getenv("DOCKER_HOST"), more);
}

sprov_provider *ep_open(void)
{
    return ep_open_with(NULL);
}

/* ---------------------------------------------------------------------- sandboxes */

const char *ep_new_id(void)
{
    static int count;
    return ep_format("it-%s-%ld-%d", getenv(RUN_VARIABLE), (long)getpid(),
                     __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
}

sprov_sandbox *ep_create(sprov_provider *provider, const char *id, const char *more)
{
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    bool has_image = more && (strstr(more, "\"image\":") || strstr(more, "\"template\":"));
    const char *mode = more && strstr(more, "\"supervisor\":") ? NULL : getenv(MODE_VARIABLE);
    char *options = ep_format("{\"id\":\"%s\",\"labels\":{\"" LABEL "\":\"%s\"}%s%s%s%s}", id,
                              getenv(RUN_VARIABLE), has_image ? "" : ",\"image\":\"" EP_DEBIAN "\"",
                              mode ? ep_format(",\"supervisor\":\"%s\"", mode) : "",
                              more ? "," : "", more ? more : "");
    cr_assert_eq(ep_api()->create(provider, options, NULL, &sandbox, &error), SPROV_OK, "%s",
                 error.message);
    return sandbox;
}

EpBox ep_box(const char *more)
{
    EpBox box = {.provider = ep_open(), .id = ep_new_id()};
    box.sandbox = ep_create(box.provider, box.id, more);
    return box;
}

EpBox ep_shared(void)
{
    EpBox box = {.provider = ep_open(), .id = ep_format("it-%s-shared", getenv(RUN_VARIABLE))};
    box.sandbox = ep_create(box.provider, box.id, NULL);
    ep_start(box.sandbox);
    return box;
}

void ep_leave(EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    ep_api()->release(box->sandbox);
    cr_assert_eq(ep_api()->close(box->provider, &error), SPROV_OK, "%s", error.message);
}

void ep_destroy(EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_api()->destroy(box->sandbox, NULL, &error), SPROV_OK, "%s", error.message);
    cr_assert_eq(ep_count(box->id), 0);
    ep_leave(box);
}

sprov_start_outcome ep_start(sprov_sandbox *sandbox)
{
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_api()->start(sandbox, NULL, &result, &error), SPROV_OK, "%s", error.message);
    return result.outcome;
}

/* ----------------------------------------------------------------------- commands */

static sprov_flow collect(void *ctx, const void *data, size_t size)
{
    EpBytes *bytes = ctx;
    if (bytes->size + size + 1 > bytes->capacity) {
        size_t capacity = 2 * (bytes->size + size) + 4096;
        char *larger = keep(malloc(capacity));
        memcpy(larger, bytes->data ? bytes->data : "", bytes->size);
        bytes->data = larger;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    bytes->data[bytes->size] = '\0';
    return SPROV_FLOW_CONTINUE;
}

static void count_done(void *ctx)
{
    ((EpBytes *)ctx)->done++;
}

sprov_sink ep_sink(EpBytes *into)
{
    return (sprov_sink){
        .struct_size = sizeof(sprov_sink), .ctx = into, .write = collect, .done = count_done};
}

EpRun ep_run(sprov_sandbox *sandbox, const sprov_exec_request *request, const sprov_call *call)
{
    EpRun run = {.error = SPROV_INIT(sprov_error), .result = SPROV_INIT(sprov_exec_result)};
    sprov_exec_request copy = *request;
    run.out.data = keep(calloc(1, 1));
    run.err.data = keep(calloc(1, 1));
    sprov_sink out = ep_sink(&run.out), err = ep_sink(&run.err);
    if (!copy.stdout_sink)
        copy.stdout_sink = &out;
    if (!copy.stderr_sink)
        copy.stderr_sink = &err;
    run.status = ep_api()->exec(sandbox, &copy, call, &run.result, &run.error);
    return run;
}

static EpRun run_line(sprov_sandbox *sandbox, const char *line)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = line;
    return ep_run(sandbox, &request, NULL);
}

EpRun ep_sh(sprov_sandbox *sandbox, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = vformat(format, args);
    va_end(args);
    return run_line(sandbox, line);
}

char *ep_ask(sprov_sandbox *sandbox, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = vformat(format, args);
    va_end(args);
    EpRun run = run_line(sandbox, line);
    cr_assert(run.status == SPROV_OK && run.result.exit_code == 0,
              "%s: status %d %s, code %d, out \"%.300s\", err \"%.300s\"", line, run.status,
              run.error.message, run.result.exit_code, run.out.data, run.err.data);
    if (run.out.size > 0 && run.out.data[run.out.size - 1] == '\n')
        run.out.data[run.out.size - 1] = '\0';
    return run.out.data;
}

bool ep_runs(sprov_sandbox *sandbox, const char *marker)
{
    /* The pattern does not match itself. */
    char *found = ep_ask(sandbox,
                         "for d in /proc/[0-9]*; do tr '\\0' ' ' <$d/cmdline; echo; done "
                         "2>/dev/null | grep -c '[%c]%s' || true",
                         marker[0], marker + 1);
    return strcmp(found, "0") != 0;
}

/* -------------------------------------------------------------------------- files */

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    EpSource *from = ctx;
    size_t n = from->size - from->used;
    if (from->give_up_at && from->used >= from->give_up_at)
        return SPROV_SOURCE_GIVE_UP;
    n = n < capacity ? n : capacity;
    memcpy(buffer, from->data + from->used, n);
    from->used += n;
    *count = n;
    return SPROV_SOURCE_OK;
}

static void count_source_done(void *ctx)
{
    ((EpSource *)ctx)->done++;
}

sprov_source ep_source(EpSource *from, bool size_known)
{
    return (sprov_source){.struct_size = sizeof(sprov_source),
                          .fd = -1,
                          .size = size_known ? from->size : UINT64_MAX,
                          .ctx = from,
                          .read = give,
                          .done = count_source_done};
}

sprov_status ep_write(sprov_sandbox *sandbox, const char *path, const void *data, size_t size,
                      uint32_t mode, sprov_error *error)
{
    EpSource from = {.data = data, .size = size};
    sprov_source source = ep_source(&from, true);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = path;
    request.mode = mode;
    request.source = &source;
    return ep_api()->write_file(sandbox, &request, NULL, error);
}

sprov_status ep_read(sprov_sandbox *sandbox, const char *path, EpBytes *into,
                     sprov_read_result *result, sprov_error *error)
{
    sprov_sink sink = ep_sink(into);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = path;
    request.sink = &sink;
    return ep_api()->read_file(sandbox, &request, NULL, result, error);
}
