/* Environment and secrets of commands, and what host and provider owe each other in one process:
 * calls out of callbacks, forked children, descriptors, signals, releases. */
#include "ep.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------------- environment */

Test(env, the_command_s_own_wins_and_a_bare_name_takes_away)
{
    EpBox box = ep_box("\"env\":{\"A\":\"sandbox\",\"B\":\"b c\",\"C\":\"gone\"}");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo \"$A|$B|${C-unset}|$D\"";
    request.env = (const char *const[]){"A=command", "C", "D=x=y \"z\" \xc3\xa9", NULL};
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_str_eq(run.out.data, "command|b c|unset|x=y \"z\" \xc3\xa9\n", "%s", run.out.data);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo \"$A|$C\""), "sandbox|gone");

    static const char *const changes[] = {"A=set", "B", NULL};
    cr_assert_eq(ep_lifecycle()->set_env(box.sandbox, changes, NULL), SPROV_OK);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo \"$A|${B-unset}|$C\""), "set|unset|gone");
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo \"$A|${B-unset}|$C\""), "set|unset|gone");
    static const char *const bad[] = {"A=other", "=x", NULL};
    cr_assert_eq(ep_lifecycle()->set_env(box.sandbox, bad, NULL), SPROV_E_INVALID_ARGUMENT);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo \"$A\""), "set");
    ep_destroy(&box);
}

Test(env, a_path_that_leads_nowhere_stops_no_program_named_in_full)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.env = (const char *const[]){"PATH=/nope", NULL};
    request.argv = (const char *const[]){"/bin/echo", "hi", NULL};
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_str_eq(run.out.data, "hi\n", "%s", run.err.data);
    request.argv = NULL;
    request.command = "/bin/echo hi; /bin/sleep 7401";
    request.run_timeout_ms = 700;
    run = ep_run(box.sandbox, &request, NULL);
    cr_assert_str_eq(run.out.data, "hi\n", "%s", run.err.data);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    ep_leave(&box);
}

/* --------------------------------------------------------------------------- secrets */

#define SECRET "hunter2-of-the-tests"

typedef struct {
    int asked;
    int done;
    int logged; /* lines that hold the secret */
} Keeper;

static int32_t answer(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    ((Keeper *)ctx)->asked++;
    if (strcmp(name, "TOKEN") != 0)
        return 1;
    emit(emit_ctx, SECRET, strlen(SECRET));
    return 0;
}

static void keeper_done(void *ctx)
{
    ((Keeper *)ctx)->done++;
}

static void watch_log(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    if (strstr(message, SECRET))
        __atomic_add_fetch(&((Keeper *)ctx)->logged, 1, __ATOMIC_RELAXED);
}

typedef struct {
    sprov_sandbox *sandbox;
    EpRun run;
} SecretRun;

static void *run_with_secret(void *ctx)
{
    SecretRun *s = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "printf %s \"$TOKEN\"; sleep 2";
    request.secret_env = (const char *const[]){"TOKEN", NULL};
    s->run = ep_run(s->sandbox, &request, NULL);
    return NULL;
}

static bool has_command(void *id)
{
    char *body;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(id)), NULL, &body);
    return strstr(body, "\"ExecIDs\":[\"") != NULL;
}

static void check_no_inspect_shows_it(const char *id)
{
    char *body;
    cr_assert(ep_wait_until(has_command, (void *)id));
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(id)), NULL, &body);
    cr_assert_null(strstr(body, SECRET));
    char *ids = strstr(body, "\"ExecIDs\":[\"");
    cr_assert_not_null(ids);
    ep_engine("GET", ep_format("/exec/%.64s/json", ids + 12), NULL, &body);
    cr_assert_not_null(strstr(body, "\"ProcessConfig\""), "%s", body);
    cr_assert_null(strstr(body, SECRET), "%s", body);
}

Test(env, a_secret_reaches_its_command_and_no_inspect_and_no_log)
{
    Keeper keeper = {0};
    sprov_host host = SPROV_INIT(sprov_host);
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    SecretRun s = {0};
    pthread_t thread;
    host.ctx = &keeper;
    host.log = watch_log;
    callbacks.ctx = &keeper;
    callbacks.secret = answer;
    callbacks.done = keeper_done;
    /* For its id; the handle of the test has callbacks. By a socket the engine would see nothing.
     */
    EpBox box = ep_box("\"transport\":\"stream\"");
    sprov_provider *provider = NULL;
    cr_assert_eq(ep_api()->open(&host, NULL, &provider, NULL), SPROV_OK);
    char *options =
        ep_format("{\"id\":\"%s\",\"image\":\"" EP_DEBIAN "\",\"transport\":\"stream\"}", box.id);
    ep_start(box.sandbox);
    cr_assert_eq(ep_api()->create(provider, options, &callbacks, &s.sandbox, NULL), SPROV_OK);

    cr_assert_eq(pthread_create(&thread, NULL, run_with_secret, &s), 0);
    check_no_inspect_shows_it(box.id);
    pthread_join(thread, NULL);
    cr_assert_eq(s.run.status, SPROV_OK, "%s", s.run.error.message);
    cr_assert_str_eq(s.run.out.data, SECRET);
    cr_assert_eq(keeper.asked, 1);

    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "touch /tmp/ran-without";
    request.secret_env = (const char *const[]){"OTHER", NULL};
    EpRun run = ep_run(s.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_E_NOT_FOUND, "%d: %s", run.status, run.error.message);
    cr_assert(strstr(run.error.message, "OTHER"), "%s", run.error.message);
    cr_assert_str_eq(ep_ask(s.sandbox, "ls /tmp/ran-without 2>&- || echo \"${TOKEN-none}\""),
                     "none");
    cr_assert_eq(keeper.logged, 0);
    ep_api()->release(s.sandbox);
    cr_assert_eq(keeper.done, 1);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    ep_destroy(&box);
}

/* ----------------------------------------------------------------------- from inside */

typedef struct {
    EpBox *box;
    sprov_status exec, close;
    char reason[64];
    char *described;
} Inside;

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static sprov_flow call_from_inside(void *ctx, const void *data, size_t size)
{
    Inside *in = ctx;
    EpRun run = ep_sh(in->box->sandbox, "echo never");
    in->exec = run.status;
    strcpy(in->reason, run.error.reason);
    in->close = ep_api()->close(in->box->provider, NULL);
    ep_lifecycle()->describe(in->box->sandbox, take_text, &in->described, NULL);
    return SPROV_FLOW_CONTINUE;
}

Test(callbacks, a_blocking_call_from_inside_one_is_refused_and_a_pure_one_works)
{
    EpBox box = ep_shared();
    Inside in = {.box = &box};
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &in;
    sink.write = call_from_inside;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo once";
    request.stdout_sink = &sink;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(in.exec, SPROV_E_CONFLICT);
    cr_assert_str_eq(in.reason, "in-callback");
    cr_assert_eq(in.close, SPROV_E_CONFLICT);
    cr_assert(in.described && strstr(in.described, box.id));
    ep_leave(&box);
}

Test(callbacks, done_comes_once_for_an_accepted_request_and_never_for_a_refused_one)
{
    EpBox box = ep_shared();
    EpSource from = {.data = "x", .size = 1};
    sprov_source source = ep_source(&from, true);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "cat";
    request.stdin_source = &source;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK);
    cr_assert(from.done == 1 && run.out.done == 1 && run.err.done == 1);
    request.flags = 1u << 30;
    run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_E_INVALID_ARGUMENT);
    cr_assert(from.done == 1 && run.out.done == 0 && run.err.done == 0);

    sprov_error error = SPROV_INIT(sprov_error);
    EpBytes bytes = {0};
    cr_assert_eq(ep_read(box.sandbox, "/etc/hostname", &bytes, NULL, &error), SPROV_OK);
    cr_assert_eq(bytes.done, 1);
    cr_assert_eq(ep_read(box.sandbox, "", &bytes, NULL, &error), SPROV_E_INVALID_ARGUMENT);
    cr_assert_eq(bytes.done, 1);
    cr_assert_eq(ep_read(box.sandbox, "/no/such/file", &bytes, NULL, &error), SPROV_E_NOT_FOUND);
    cr_assert_eq(bytes.done, 2);
    ep_leave(&box);
}

static sprov_flow release_handle(void *ctx, const void *data, size_t size)
{
    sprov_sandbox **sandbox = ctx;
    ep_api()->release(*sandbox);
    *sandbox = NULL;
    return SPROV_FLOW_CONTINUE;
}

Test(callbacks, a_handle_released_during_a_call_lives_until_its_end)
{
    EpBox box = ep_shared();
    sprov_sandbox *extra = ep_create(box.provider, box.id, NULL);
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &extra;
    sink.write = release_handle;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo go; exit 6";
    request.stdout_sink = &sink;
    EpRun run = ep_run(extra, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 6);
    cr_assert_null(extra);
    ep_leave(&box);
}

Test(callbacks, close_waits_for_no_one_and_names_what_is_alive)
{
    EpBox box = ep_shared();
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_api()->close(box.provider, &error), SPROV_E_CONFLICT);
    cr_assert(strstr(error.message, "release"), "%s", error.message);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo alive"), "alive");
    ep_leave(&box);
}

/* ------------------------------------------------------------------------ the process */

Test(process, a_forked_child_is_refused_and_its_release_is_harmless)
{
    EpBox box = ep_shared();
    pid_t child = fork();
    if (child == 0) {
        EpRun run = ep_sh(box.sandbox, "echo never");
        bool refused = run.status == SPROV_E_CONFLICT && strcmp(run.error.reason, "forked") == 0;
        ep_api()->release(box.sandbox);
        _exit(refused && ep_api()->close(box.provider, NULL) == SPROV_E_CONFLICT ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo still"), "still");
    ep_leave(&box);
}

/* Open descriptors above the standard ones; those without close-on-exec in *ret_inherited. */
static int count_descriptors(int *ret_inherited)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    *ret_inherited = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] == '.' || fd == dirfd(folder))
            continue;
        count++;
        *ret_inherited += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    closedir(folder);
    return count;
}

typedef struct {
    int inherited;
} Meanwhile;

static sprov_flow look_meanwhile(void *ctx, const void *data, size_t size)
{
    count_descriptors(&((Meanwhile *)ctx)->inherited);
    return SPROV_FLOW_CONTINUE;
}

typedef struct {
    sprov_sandbox *sandbox;
    const char *failure;
} Series;

static void *run_series(void *ctx)
{
    Series *s = ctx;
    for (int i = 0; i < 25 && !s->failure; i++) {
        EpRun run = ep_sh(s->sandbox, "exit %d", i);
        if (run.status != SPROV_OK || run.result.exit_code != i)
            s->failure = ep_format("exit %d: status %d, code %d: %s", i, run.status,
                                   run.result.exit_code, run.error.message);
    }
    return NULL;
}

/* libcurl's own are so by a function that RTLD_DEEPBIND puts before the system's, which sanitizers
 * refuse. */
static void check_inherited(int inherited, int before)
{
#ifdef SANITIZE_none
    cr_assert_eq(inherited, before, "%d descriptors would be inherited", inherited - before);
#endif
}

Test(process, descriptors_are_close_on_exec_and_do_not_pile_up)
{
    int before, inherited;
    count_descriptors(&before);
    EpBox box = ep_shared();
    Series series[4];
    for (int i = 0; i < 4; i++)
        series[i] = (Series){.sandbox = box.sandbox};
    Meanwhile meanwhile;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &meanwhile;
    sink.write = look_meanwhile;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo now; sleep 0.2";
    request.stdout_sink = &sink;
    cr_assert_eq(ep_run(box.sandbox, &request, NULL).status, SPROV_OK);
    check_inherited(meanwhile.inherited, before);

    int warm = count_descriptors(&inherited);
    ep_threads(4, run_series, series, sizeof series[0]);
    int after = count_descriptors(&inherited);
    for (int i = 0; i < 4; i++)
        cr_assert_null(series[i].failure, "%s", series[i].failure);
    cr_assert_leq(after, warm + 16, "%d descriptors became %d", warm, after);
    check_inherited(inherited, before);
    ep_leave(&box);
    cr_assert_leq(count_descriptors(&inherited), warm);
}
