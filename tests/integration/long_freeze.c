/* The engine is stopped by SIGSTOP in the middle of every kind of call. ENGINE_PID names its
 * process, DOCKER_HOST its socket: tests/long/freeze.sh brings it up. */
#include "ep.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG (256u << 20)
#define SLACK 6 /* beyond a limit: the engine is asked whether it is there, and a slow machine */

static void engine(int signal)
{
    cr_assert_eq(kill(atoi(getenv("ENGINE_PID")), signal), 0);
}

static double frozen; /* when; before that a call ends without it */

/* A call on its own thread, with its sandbox. */
typedef struct Victim {
    const char *name;
    sprov_status (*call)(struct Victim *);
    double limit;     /* seconds, from the freeze, when it has no deadline of its own */
    const char *more; /* options of its sandbox */
    EpBox box;
    sprov_call how;
    sprov_error error;
    sprov_exec_result result;
    sprov_status status;
    double ended;
} Victim;

static sprov_flow drop(void *ctx, const void *data, size_t size)
{
    usleep(2000); /* 64 KiB at once: some MiB a second */
    return SPROV_FLOW_CONTINUE;
}

static sprov_source_status trickle(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    usleep(2000);
    memset(buffer, 'x', capacity);
    *count = capacity; /* without end */
    return SPROV_SOURCE_OK;
}

static void take_text(void *ctx, const char *text, size_t size)
{
}

static sprov_status call_exec(Victim *v)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "sleep 300";
    request.run_timeout_ms = v->how.timeout_ms ? -1 : 4000;
    v->result = (sprov_exec_result)SPROV_INIT(sprov_exec_result);
    return ep_api()->exec(v->box.sandbox, &request, &v->how, &v->result, &v->error);
}

static sprov_status call_read(Victim *v)
{
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    sink.write = drop;
    request.path = "/big";
    request.sink = &sink;
    return ep_api()->read_file(v->box.sandbox, &request, &v->how, NULL, &v->error);
}

static sprov_status call_write(Victim *v)
{
    sprov_source source = SPROV_INIT(sprov_source);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    source.fd = -1;
    source.size = UINT64_MAX;
    source.read = trickle;
    request.path = "/root/freeze";
    request.source = &source;
    return ep_api()->write_file(v->box.sandbox, &request, &v->how, &v->error);
}

static sprov_status call_start(Victim *v)
{
    ep_api()->destroy(v->box.sandbox, NULL, NULL);
    ep_api()->release(v->box.sandbox);
    v->box.sandbox = ep_create(v->box.provider, v->box.id, v->more);
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK) { /* until the engine freezes in the middle of one */
        status = ep_api()->start(v->box.sandbox, &v->how, NULL, &v->error);
        if (status == SPROV_OK)
            status = ep_lifecycle()->stop(v->box.sandbox, &v->how, &v->error);
    }
    return status;
}

static sprov_status call_info(Victim *v)
{
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK)
        status = ep_lifecycle()->list(v->box.provider, &v->how, take_text, NULL, &v->error);
    return status;
}

static sprov_status build(Victim *v, const char *command)
{
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = ep_format("{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{\"method\":"
                                   "\"runCmd\",\"args\":[\"%s; true %s\"]}]}",
                                   command, v->box.id);
    return ep_api()->build_template(v->box.provider, &request, &v->how, NULL, &v->error);
}

static sprov_status call_build(Victim *v)
{
    return build(v, "sleep 300");
}

#define PLAIN "\"supervisor\":\"off\""
#define STREAM "\"transport\":\"stream\""
#define SOCKET "\"transport\":\"socket\""

static const Victim victims[] = {
    {"exec", call_exec, 4, .more = STREAM},
    {"exec by socket", call_exec, 4, .more = SOCKET},
    {"exec of the engine", call_exec, 4, .more = PLAIN},
    {"read", call_read, 30, .more = STREAM},
    {"read by archive", call_read, 30, .more = PLAIN},
    {"write", call_write, 30, .more = STREAM},
    {"write by archive", call_write, 30, .more = PLAIN},
    {"start", call_start, 60},
    {"start without supervisor", call_start, 60, .more = PLAIN},
    {"list", call_info, 30},
    {"build", call_build, 60},
};
#define N (sizeof victims / sizeof *victims)

static void *run(void *ctx)
{
    Victim *v = ctx;
    v->error = (sprov_error)SPROV_INIT(sprov_error);
    v->status = v->call(v);
    v->ended = ep_now();
    ep_note("# %s: %.1f s, status %d %s: %s", v->name, v->ended - frozen, v->status,
            v->error.reason, v->error.message);
    return NULL;
}

static void prepare(Victim *v)
{
    v->box = ep_box(v->more);
    ep_start(v->box.sandbox);
    if (v->call == call_read)
        ep_ask(v->box.sandbox, "head -c %u /dev/zero > /big", BIG);
}

/* Its command's own deadline is no failure of the call. */
static bool is_timed_out_command(const Victim *v)
{
    return v->call == call_exec && v->status == SPROV_OK &&
           (v->result.flags & SPROV_EXEC_TIMED_OUT);
}

static void check(const Victim *v, double limit)
{
    double took = v->ended - frozen;
    bool lost =
        v->status == SPROV_E_TIMEOUT || v->status == SPROV_E_UNAVAILABLE || v->status == SPROV_E_IO;
    cr_expect(is_timed_out_command(v) || (lost && (v->error.flags & SPROV_ERROR_RETRYABLE)),
              "%s: status %d, %s: %s", v->name, v->status, v->error.reason, v->error.message);
    cr_expect_geq(took, 0, "%s ended before the freeze: status %d: %s", v->name, v->status,
                  v->error.message);
    cr_expect_leq(took, limit + SLACK, "%s took %.1f s of %.0f", v->name, took, limit);
}

/* The same handle does all of it again. */
static void check_after(Victim *v)
{
    EpBytes bytes = {0};
    v->how = (sprov_call)SPROV_INIT(sprov_call);
    EpRun again = ep_sh(v->box.sandbox, "echo again");
    if (again.error.flags & SPROV_ERROR_SANDBOX_GONE) /* a stop asked for before came to pass now */
        again = ep_sh(v->box.sandbox, "echo again");
    cr_expect_eq(again.status, SPROV_OK, "%s, then exec: %s", v->name, again.error.message);
    cr_expect(again.out.data && strcmp(again.out.data, "again\n") == 0, "%s", v->name);
    cr_expect_eq(ep_write(v->box.sandbox, "/tmp/x", "abc", 3, 0, &v->error), SPROV_OK, "%s: %s",
                 v->name, v->error.message);
    cr_expect_eq(ep_read(v->box.sandbox, "/tmp/x", &bytes, NULL, &v->error), SPROV_OK, "%s: %s",
                 v->name, v->error.message);
    if (v->call == call_build)
        cr_expect_eq(build(v, "true"), SPROV_OK, "%s", v->error.message);
    cr_expect_eq(ep_api()->destroy(v->box.sandbox, NULL, &v->error), SPROV_OK, "%s: %s", v->name,
                 v->error.message);
    cr_expect_eq(ep_count(v->box.id), 0, "%s left a container", v->name);
    ep_leave(&v->box);
}

/* By a socket of its own a sandbox needs no engine. */
static void check_goes_on(EpBox *box)
{
    EpRun run = ep_sh(box->sandbox, "echo on");
    cr_expect(run.status == SPROV_OK && strcmp(run.out.data, "on\n") == 0,
              "by socket: status %d %s", run.status, run.error.message);
    cr_expect_lt(ep_now() - frozen, SLACK, "by socket: %.1f s", ep_now() - frozen);
}

/* All at once, so that the long limits pass side by side. */
static void freeze_all(int64_t timeout_ms)
{
    static Victim all[N];
    pthread_t threads[N];
    memcpy(all, victims, sizeof all);
    EpBox beside = ep_box(SOCKET);
    ep_ask(beside.sandbox, "true");
    for (size_t i = 0; i < N; i++) {
        prepare(&all[i]);
        all[i].how = (sprov_call)SPROV_INIT(sprov_call);
        all[i].how.timeout_ms = timeout_ms;
    }
    for (size_t i = 0; i < N; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &all[i]), 0);
    sleep(3);
    frozen = ep_now();
    engine(SIGSTOP);
    check_goes_on(&beside);
    for (size_t i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    engine(SIGCONT);
    for (size_t i = 0; i < N; i++)
        check(&all[i], timeout_ms ? (double)timeout_ms / 1000 : all[i].limit);
    for (size_t i = 0; i < N; i++)
        check_after(&all[i]);
    ep_destroy(&beside);
}

Test(freeze, ends_every_call_by_its_own_deadline, .timeout = 400)
{
    freeze_all(8000);
}

Test(freeze, ends_every_call_by_the_limits_of_the_contract, .timeout = 200)
{
    freeze_all(0);
}
