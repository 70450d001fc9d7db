/* The way to an engine under strain: many calls at once, and a line that goes dead without a word.
 * REACH_CONFIG is the way as open() is told, REACH_CUT and REACH_MEND are commands that let every
 * packet of it vanish and pass again; DOCKER_HOST is the same engine by its socket.
 * tests/long/endpoints.sh brings all of it up. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN "\"supervisor\":\"off\""
#define STREAM "\"transport\":\"stream\""
#define CROWD 48
#define NOTICED 45 /* seconds that a dead line may stay unnoticed */
#define SLACK 15

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
