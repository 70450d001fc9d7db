/* Calls that are under way when the same handle's sandbox is stopped or destroyed by another
 * thread: each ends, also one whose callback is slow or stuck, and the stop waits for none. */
#include "ep.h"

#include <ext/archive.h>
#include <ext/processes.h>

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define BIG (64u << 20) /* more than lies between an engine and us */
#define IN_TIME 20      /* a stop without a grace, and a slow machine */

/* Where a callback of the call stands. */
typedef struct {
    EpBox *box;
    int begun;    /* it was called */
    int released; /* by whoever stopped or destroyed: it may return */
    useconds_t nap_us;
    sprov_status status;
    sprov_error error;
} Call;

static void *await(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(2000);
    return NULL;
}

static void raise_flag(int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

/* Slow, or stuck until it is released. */
static void dawdle(Call *call)
{
    raise_flag(&call->begun);
    if (call->nap_us)
        usleep(call->nap_us);
    else
        await(&call->released);
}

static sprov_source_status give_byte(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    dawdle(ctx);
    memset(buffer, 'x', 1);
    *count = 1;
    return SPROV_SOURCE_OK;
}

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    dawdle(ctx);
    return SPROV_FLOW_CONTINUE;
}

/* --------------------------------------------------------------------------- the calls */

static sprov_source slow_source(Call *call)
{
    sprov_source source = SPROV_INIT(sprov_source);
    source.fd = -1;
    source.size = BIG;
    source.ctx = call;
    source.read = give_byte;
    return source;
}

static void *write_file(void *ctx)
{
    Call *call = ctx;
    sprov_source source = slow_source(call);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = "/root/gone/file";
    request.source = &source;
    call->status = ep_api()->write_file(call->box->sandbox, &request, NULL, &call->error);
    return NULL;
}

static void *read_file(void *ctx)
{
    Call *call = ctx;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = call;
    sink.write = take;
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = "/root/gone/big";
    request.sink = &sink;
    call->status = ep_api()->read_file(call->box->sandbox, &request, NULL, NULL, &call->error);
    return NULL;
}

static void *write_files(void *ctx)
{
    Call *call = ctx;
    const sprov_ext_archive *api = ep_extension(SPROV_EXT_ARCHIVE);
    sprov_source source = slow_source(call);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = "/root/gone/file";
    request.source = &source;
    const sprov_write_request *files[] = {&request};
    sprov_file_result result = SPROV_INIT(sprov_file_result);
    sprov_file_result *results[] = {&result};
    call->status = api->write_files(call->box->sandbox, files, 1, results, NULL, &call->error);
    cr_assert_eq(result.status, call->status, "%d %s", result.status, result.reason);
    cr_assert_str_eq(result.reason, call->error.reason);
    return NULL;
}

static void *put(void *ctx)
{
    Call *call = ctx;
    const sprov_ext_archive *api = ep_extension(SPROV_EXT_ARCHIVE);
    sprov_source source = slow_source(call);
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    request.directory = "/root/gone";
    request.tar = &source;
    call->status = api->put(call->box->sandbox, &request, NULL, &call->error);
    return NULL;
}

static void *get(void *ctx)
{
    Call *call = ctx;
    const sprov_ext_archive *api = ep_extension(SPROV_EXT_ARCHIVE);
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = call;
    sink.write = take;
    sprov_get_request request = SPROV_INIT(sprov_get_request);
    request.path = "/root/gone/big";
    request.tar = &sink;
    call->status = api->get(call->box->sandbox, &request, NULL, &call->error);
    return NULL;
}

static void *exec_loud(void *ctx)
{
    Call *call = ctx;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = call;
    sink.write = take;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "while :; do echo 0123456789; sleep 0.05; done";
    request.stdout_sink = &sink;
    call->status = ep_api()->exec(call->box->sandbox, &request, NULL, NULL, &call->error);
    return NULL;
}

static void *wait_for_process(void *ctx)
{
    Call *call = ctx;
    const sprov_ext_processes *api = ep_extension(SPROV_EXT_PROCESSES);
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_process *process = NULL;
    exec.command = "sleep 300";
    request.exec = &exec;
    call->status = api->spawn(call->box->sandbox, &request, NULL, &process, &call->error);
    cr_assert_eq(call->status, SPROV_OK, "%s", call->error.message);
    raise_flag(&call->begun);
    call->status = api->wait(process, NULL, NULL, &call->error);
    api->release(process);
    return NULL;
}

static const struct {
    const char *name;
    void *(*run)(void *);
    bool needs_supervisor;
} kinds[] = {
    {"write", write_file},
    {"read", read_file},
    {"write_files", write_files},
    {"put", put, true},
    {"get", get, true},
    {"exec", exec_loud},
    {"wait", wait_for_process, true},
};

/* ----------------------------------------------------------------------- ended by whom */

static sprov_status destroy(EpBox *box, sprov_error *error)
{
    return ep_api()->destroy(box->sandbox, NULL, error);
}

/* Grace is for the main process, which here is the keep-alive alone. */
static sprov_status stop(EpBox *box, sprov_error *error)
{
    return ep_lifecycle()->stop(box->sandbox, NULL, error);
}

static EpBox started(const char *more)
{
    EpBox box = ep_box(more);
    ep_start(box.sandbox);
    ep_ask(box.sandbox,
           "mkdir -p /root/gone; echo old > /root/gone/file; head -c %u /dev/zero "
           "> /root/gone/big",
           BIG);
    return box;
}

static void end_during(EpBox *box, size_t kind, sprov_status (*end)(EpBox *, sprov_error *),
                       useconds_t nap_us)
{
    Call call = {.box = box, .nap_us = nap_us, .error = SPROV_INIT(sprov_error)};
    sprov_error error = SPROV_INIT(sprov_error);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, kinds[kind].run, &call), 0);
    await(&call.begun);
    usleep(100000); /* so that something is on its way */
    double since = ep_now();
    sprov_status status = end(box, &error);
    double took = ep_now() - since;
    raise_flag(&call.released);
    pthread_join(thread, NULL);
    cr_assert_eq(status, SPROV_OK, "%s: %s", kinds[kind].name, error.message);
    cr_assert_lt(took, IN_TIME, "%s: it took %.1f s", kinds[kind].name, took);
    cr_assert_lt(ep_now() - since, 2 * IN_TIME, "%s: settled late", kinds[kind].name);
    cr_assert_eq(call.status, SPROV_E_NOT_READY, "%s: status %d %s", kinds[kind].name, call.status,
                 call.error.message);
    cr_assert(call.error.flags & SPROV_ERROR_SANDBOX_GONE, "%s: %s", kinds[kind].name,
              call.error.message);
}

static void destroy_during_each(const char *more, bool supervised, useconds_t nap_us)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].needs_supervisor && !supervised)
            continue;
        EpBox box = started(more);
        end_during(&box, i, destroy, nap_us);
        cr_assert_eq(ep_sh(box.sandbox, "true").status, SPROV_E_NOT_READY);
        ep_destroy(&box);
    }
}

static void stop_during_each(const char *more, bool supervised, useconds_t nap_us)
{
    EpBox box = started(more);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].needs_supervisor && !supervised)
            continue;
        end_during(&box, i, stop, nap_us);
        cr_assert_str_eq(ep_ask(box.sandbox, "cat /root/gone/file"), "old");
    }
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /root/gone"), "big\nfile", "%s",
                     nap_us ? "slow" : "stuck");
    ep_destroy(&box);
}

Test(gone, destroy_ends_calls_whose_callbacks_are_slow)
{
    destroy_during_each(NULL, true, 10000);
}

Test(gone, destroy_ends_calls_whose_callbacks_are_stuck)
{
    destroy_during_each(NULL, true, 0);
}

Test(gone, without_supervisor_destroy_ends_calls_whose_callbacks_are_stuck)
{
    destroy_during_each("\"supervisor\":\"off\"", false, 0);
}

Test(gone, stop_ends_calls_whose_callbacks_are_slow_and_keeps_the_files)
{
    stop_during_each(NULL, true, 10000);
}

Test(gone, without_supervisor_stop_ends_calls_whose_callbacks_are_slow_and_keeps_the_files)
{
    stop_during_each("\"supervisor\":\"off\",\"init\":true", false, 10000);
}
