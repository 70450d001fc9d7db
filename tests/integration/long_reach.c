/* The way to an engine under strain: many calls at once, a line that goes dead without a word, and
 * one that is closed. REACH_CONFIG is the way as open() is told, REACH_CUT and REACH_MEND are
 * commands that let every packet of it vanish and pass again, REACH_CLOSE is one that ends all its
 * connections and lets new ones pass; DOCKER_HOST is the same engine by its socket.
 * tests/long/endpoints.sh brings all of it up. */
#include "ep.h"

#include <ext/processes.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN "\"supervisor\":\"off\""
#define STREAM "\"transport\":\"stream\""
#define CROWD 48
#define NOTICED 45 /* seconds that a dead line may stay unnoticed */
#define SLACK 15
#define AT_ONCE 10 /* seconds in which the end of a connection ends its call */
#define BIG (256u << 20)

static EpBox far_box(const char *more)
{
    EpBox box = {.id = ep_new_id()};
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_api()->open(NULL, getenv("REACH_CONFIG"), &box.provider, &error), SPROV_OK,
                 "%s", error.message);
    box.sandbox = ep_create(box.provider, box.id, more);
    ep_start(box.sandbox);
    return box;
}

static void end_box(EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->destroy(box->sandbox, NULL, &error), SPROV_OK, "%s", error.message);
    cr_expect_eq(ep_count(box->id), 0);
    ep_leave(box);
}

/* ------------------------------------------------------------------------------ many */

typedef struct {
    sprov_sandbox *sandbox;
    EpRun run;
} Caller;

static void *ask(void *ctx)
{
    Caller *caller = ctx;
    caller->run = ep_sh(caller->sandbox, "echo here");
    return NULL;
}

/* One whose time is over while the others come. */
static void *be_killed(void *ctx)
{
    Caller *caller = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "sleep 300";
    request.run_timeout_ms = 5000;
    caller->run = ep_run(caller->sandbox, &request, NULL);
    return NULL;
}

static bool sleeps(void *ctx)
{
    return ep_runs(((EpBox *)ctx)->sandbox, "300");
}

/* By engine execs each is a connection of its own. */
Test(reach, takes_a_crowd_at_once_and_kills_in_its_midst, .timeout = 600)
{
    static Caller callers[CROWD];
    EpBox box = far_box(PLAIN);
    Caller killed = {.sandbox = box.sandbox};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, be_killed, &killed), 0);
    cr_assert(ep_wait_until(sleeps, &box));
    double began = ep_now();
    for (int i = 0; i < CROWD; i++)
        callers[i].sandbox = box.sandbox;
    ep_threads(CROWD, ask, callers, sizeof *callers);
    pthread_join(thread, NULL);
    ep_note("# %d calls at once: %.1f s", CROWD, ep_now() - began);
    for (int i = 0; i < CROWD; i++)
        cr_expect(callers[i].run.status == SPROV_OK && callers[i].run.out.data &&
                      strcmp(callers[i].run.out.data, "here\n") == 0,
                  "%d: status %d, %s", i, callers[i].run.status, callers[i].run.error.message);
    cr_expect_eq(killed.run.status, SPROV_OK, "%s", killed.run.error.message);
    cr_expect_eq(killed.run.result.flags & ~SPROV_EXEC_UNCONFIRMED,
                 SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    ep_note("# the kill beside them: flags %x, after %.1f s", killed.run.result.flags,
            (double)killed.run.result.duration_ms / 1e3);
    end_box(&box);
}

/* ----------------------------------------------------------------- not for everybody */

static sprov_status one_of_crowd(sprov_sandbox *sandbox, EpRun *run)
{
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    call.timeout_ms = 60000;
    request.command = "sleep 0.3; echo here";
    *run = ep_run(sandbox, &request, &call);
    return run->status;
}

static void *try_it(void *ctx)
{
    Caller *caller = ctx;
    one_of_crowd(caller->sandbox, &caller->run);
    return NULL;
}

static void take_text(void *ctx, const char *text, size_t size)
{
}

static void *look(void *ctx)
{
    Caller *caller = ctx;
    ep_lifecycle()->info(caller->sandbox, NULL, take_text, NULL, NULL);
    return NULL;
}

static bool is_here(const EpRun *run)
{
    return run->status == SPROV_OK && run->out.data && strcmp(run->out.data, "here\n") == 0;
}

/* REACH_CONFIG leads to one who takes some connections and refuses the others: those calls may be
 * tried again, and what is kept for later is not what others lack. */
static void check_refusals(const char *more)
{
    static Caller callers[CROWD];
    EpBox box = far_box(more);
    int refused = 0;
    double began = ep_now();
    for (int i = 0; i < CROWD; i++)
        callers[i].sandbox = box.sandbox;
    ep_threads(CROWD, try_it, callers, sizeof *callers);
    for (int i = 0; i < CROWD; i++) {
        const EpRun *run = &callers[i].run;
        bool may_again = run->error.flags & SPROV_ERROR_RETRYABLE;
        refused += run->status != SPROV_OK;
        cr_expect(run->status == SPROV_OK ? is_here(run) : may_again, "%d: status %d, %s: %s", i,
                  run->status, run->error.reason, run->error.message);
    }
    ep_note("# %s: %d calls at once, %d refused, %.1f s", more, CROWD, refused, ep_now() - began);
    /* As many as it takes are kept now; one more finds out. */
    ep_threads(CROWD, look, callers, sizeof *callers);
    EpRun first;
    cr_expect(one_of_crowd(box.sandbox, &first) == SPROV_OK ||
                  first.error.flags & SPROV_ERROR_RETRYABLE,
              "%s", first.error.message);
    for (int i = 0; i < 5; i++) {
        EpRun run;
        one_of_crowd(box.sandbox, &run);
        cr_expect(is_here(&run), "one by one, %d: status %d, %s: %s", i, run.status,
                  run.error.reason, run.error.message);
    }
    end_box(&box);
}

Test(reach, bears_it_when_some_connections_are_refused, .timeout = 600)
{
    check_refusals(PLAIN);
    check_refusals(STREAM);
}

/* ------------------------------------------------------------------------- a dead line */

typedef struct {
    const char *name, *more;
    const char *command; /* NULL: it is not used meanwhile */
    bool before;         /* the command begins before the cut, else behind it */
    EpBox box;
    pthread_t thread;
    EpBytes out;
    EpRun run;
    double ended;
} User;

static void *use(void *ctx)
{
    User *user = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_sink sink = ep_sink(&user->out);
    request.command = user->command;
    request.run_timeout_ms = -1;
    request.stdout_sink = &sink;
    user->run = ep_run(user->box.sandbox, &request, NULL);
    user->ended = ep_now();
    return NULL;
}

static void begin(User *user)
{
    cr_assert_eq(pthread_create(&user->thread, NULL, use, user), 0);
}

static bool has_begun(void *ctx)
{
    return __atomic_load_n(&((User *)ctx)->out.size, __ATOMIC_ACQUIRE) > 0;
}

static void check_ended(User *user, double cut)
{
    const EpRun *run = &user->run;
    ep_note("# %s: %.1f s, status %d %s: %s", user->name, user->ended - cut, run->status,
            run->error.reason, run->error.message);
    cr_expect(run->status == SPROV_E_IO || run->status == SPROV_E_UNAVAILABLE ||
                  run->status == SPROV_E_TIMEOUT,
              "%s: status %d, %s", user->name, run->status, run->error.message);
    cr_expect(run->error.flags & SPROV_ERROR_RETRYABLE, "%s: %s", user->name, run->error.message);
    cr_expect_leq(user->ended - cut, NOTICED + SLACK, "%s took %.1f s", user->name,
                  user->ended - cut);
}

Test(reach, notices_a_line_that_went_dead_and_makes_another, .timeout = 600)
{
    static User users[] = {
        {"a stream of the engine", PLAIN, "echo begun; sleep 300", true},
        {"a stream of the supervisor", STREAM, "echo begun; sleep 300", true},
        {"a new call by the engine", PLAIN, "echo new", false},
        {"a new call by the supervisor", STREAM, "echo new", false},
        {"no call by the engine", PLAIN, NULL, false},
        {"no call by the supervisor", STREAM, NULL, false},
    };
    const size_t n = sizeof users / sizeof *users;
    for (size_t i = 0; i < n; i++) {
        users[i].box = far_box(users[i].more);
        ep_ask(users[i].box.sandbox, "true");
        if (users[i].before)
            begin(&users[i]);
    }
    for (size_t i = 0; i < n; i++)
        cr_assert(!users[i].before || ep_wait_until(has_begun, &users[i]), "%s", users[i].name);

    double cut = ep_now();
    cr_assert_eq(system(getenv("REACH_CUT")), 0);
    for (size_t i = 0; i < n; i++) {
        if (users[i].command && !users[i].before)
            begin(&users[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (users[i].command)
            pthread_join(users[i].thread, NULL);
    }
    cr_assert_eq(system(getenv("REACH_MEND")), 0);
    for (size_t i = 0; i < n; i++) {
        if (users[i].command)
            check_ended(&users[i], cut);
    }
    for (size_t i = 0; i < n; i++) {
        EpRun again = ep_sh(users[i].box.sandbox, "echo again");
        cr_expect(again.status == SPROV_OK && again.out.data &&
                      strcmp(again.out.data, "again\n") == 0,
                  "%s, then: status %d, %s", users[i].name, again.status, again.error.message);
        end_box(&users[i].box);
    }
}

/* ---------------------------------------------------------------------- a closed line */

/* A call on its own thread and in a sandbox of its own, which does not end by itself in time. */
typedef struct Victim {
    const char *name, *more;
    sprov_status (*call)(struct Victim *victim);
    EpBox box;
    pthread_t thread;
    int has_begun; /* atomic */
    sprov_error error;
    sprov_status status;
    double ended;
} Victim;

static void note_begun(Victim *victim)
{
    __atomic_store_n(&victim->has_begun, 1, __ATOMIC_RELEASE);
}

static sprov_flow take_slowly(void *ctx, const void *data, size_t size)
{
    note_begun(ctx);
    usleep(20000);
    return SPROV_FLOW_CONTINUE;
}

static sprov_source_status give_without_end(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    note_begun(ctx);
    usleep(2000);
    memset(buffer, 'x', capacity);
    *count = capacity;
    return SPROV_SOURCE_OK;
}

static sprov_sink slow_sink(Victim *victim)
{
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = victim;
    sink.write = take_slowly;
    return sink;
}

static sprov_source endless_source(Victim *victim)
{
    sprov_source source = SPROV_INIT(sprov_source);
    source.fd = -1;
    source.size = UINT64_MAX;
    source.ctx = victim;
    source.read = give_without_end;
    return source;
}

/* output and input may be NULL. */
static sprov_status exec_on(Victim *victim, const char *command, const sprov_sink *output,
                            const sprov_source *input)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = command;
    request.run_timeout_ms = -1;
    request.stdout_sink = output;
    request.stdin_source = input;
    return ep_api()->exec(victim->box.sandbox, &request, NULL, NULL, &victim->error);
}

static sprov_status exec_silent(Victim *victim)
{
    sprov_sink sink = slow_sink(victim);
    return exec_on(victim, "echo begun; exec sleep 300", &sink, NULL);
}

static sprov_status exec_with_input(Victim *victim)
{
    sprov_source source = endless_source(victim);
    return exec_on(victim, "cat > /dev/null", NULL, &source);
}

static sprov_status read_big(Victim *victim)
{
    sprov_sink sink = slow_sink(victim);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = "/big";
    request.sink = &sink;
    return ep_api()->read_file(victim->box.sandbox, &request, NULL, NULL, &victim->error);
}

static sprov_status write_endless(Victim *victim)
{
    sprov_source source = endless_source(victim);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = "/root/endless";
    request.source = &source;
    return ep_api()->write_file(victim->box.sandbox, &request, NULL, &victim->error);
}

static void take_progress(void *ctx, const char *text, size_t size)
{
    if (strstr(text, "begun"))
        note_begun(ctx);
}

static sprov_status build_long(Victim *victim)
{
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    call.on_progress = take_progress;
    call.progress_ctx = victim;
    request.definition = ep_format("{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{\"method\":"
                                   "\"runCmd\",\"args\":[\"echo be''gun; sleep 40; true %s\"]}]}",
                                   victim->box.id);
    return ep_api()->build_template(victim->box.provider, &request, &call, NULL, &victim->error);
}

static void *suffer(void *ctx)
{
    Victim *victim = ctx;
    victim->error = (sprov_error)SPROV_INIT(sprov_error);
    victim->status = victim->call(victim);
    victim->ended = ep_now();
    return NULL;
}

static bool victim_has_begun(void *ctx)
{
    return __atomic_load_n(&((Victim *)ctx)->has_begun, __ATOMIC_ACQUIRE);
}

static void check_closed(Victim *victim, double cut)
{
    ep_note("# %s: %.1f s, status %d %s: %s", victim->name, victim->ended - cut, victim->status,
            victim->error.reason, victim->error.message);
    cr_expect(victim->status == SPROV_E_IO || victim->status == SPROV_E_UNAVAILABLE,
              "%s: status %d, %s", victim->name, victim->status, victim->error.message);
    cr_expect(victim->error.flags & SPROV_ERROR_RETRYABLE, "%s: %s", victim->name,
              victim->error.message);
    cr_expect(victim->ended >= cut && victim->ended < cut + AT_ONCE, "%s ended after %.1f s",
              victim->name, victim->ended - cut);
    EpRun again = ep_sh(victim->box.sandbox, "echo again");
    cr_expect(again.status == SPROV_OK && again.out.data && strcmp(again.out.data, "again\n") == 0,
              "%s, then: status %d, %s", victim->name, again.status, again.error.message);
    cr_expect(victim->call != exec_silent || !ep_runs(victim->box.sandbox, "300"),
              "%s: its command still runs", victim->name);
    end_box(&victim->box);
}

/* What was spawned lives on without a line, and is waited for over the next one. */
static void check_process(sprov_process *process)
{
    const sprov_ext_processes *api = ep_extension(SPROV_EXT_PROCESSES);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = api->wait(process, NULL, &result, &error);
    ep_note("# the wait for a process: status %d, code %d %s", status, result.exit_code,
            error.message);
    if (status != SPROV_OK) {
        cr_expect(error.flags & SPROV_ERROR_RETRYABLE, "%s", error.message);
        status = api->wait(process, NULL, &result, &error);
    }
    cr_expect_eq(status, SPROV_OK, "%s", error.message);
    cr_expect_eq(result.exit_code, 5);
    api->release(process);
}

static sprov_process *spawn(sprov_sandbox *sandbox)
{
    const sprov_ext_processes *api = ep_extension(SPROV_EXT_PROCESSES);
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_process *process = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    exec.command = "while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 5";
    request.exec = &exec;
    cr_assert_eq(api->spawn(sandbox, &request, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    return process;
}

Test(reach, ends_at_once_what_was_on_a_line_that_is_closed, .timeout = 600)
{
    static Victim victims[] = {
        {"an exec by the engine", PLAIN, exec_silent},
        {"an exec by the supervisor", STREAM, exec_silent},
        {"input by the engine", PLAIN, exec_with_input},
        {"input by the supervisor", STREAM, exec_with_input},
        {"a read by archive", PLAIN, read_big},
        {"a read by the supervisor", STREAM, read_big},
        {"a write by archive", PLAIN, write_endless},
        {"a write by the supervisor", STREAM, write_endless},
        {"a build", PLAIN, build_long},
    };
    const size_t n = sizeof victims / sizeof *victims;
    EpBox beside = far_box(STREAM);
    sprov_process *process = spawn(beside.sandbox);
    for (size_t i = 0; i < n; i++) {
        victims[i].box = far_box(victims[i].more);
        if (victims[i].call == read_big)
            ep_ask(victims[i].box.sandbox, "head -c %u /dev/zero > /big", BIG);
    }
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(pthread_create(&victims[i].thread, NULL, suffer, &victims[i]), 0);
        cr_assert(ep_wait_until(victim_has_begun, &victims[i]), "%s", victims[i].name);
    }
    double cut = ep_now();
    cr_assert_eq(system(getenv("REACH_CLOSE")), 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(victims[i].thread, NULL);
    for (size_t i = 0; i < n; i++)
        check_closed(&victims[i], cut);
    ep_ask(beside.sandbox, "touch /tmp/end");
    check_process(process);
    end_box(&beside);
}
