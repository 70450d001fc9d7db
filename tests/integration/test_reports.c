/* What users of such systems reported, where no other test has it: each is named after its report.
 * tests/user-reports.md has the whole list. */
#include "ep.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_S 10 /* that who does not hear the signal is given */

Test(reports, O05_an_idle_sandbox_is_stopped_and_removed_without_waiting_for_its_grace)
{
    static const char *const modes[] = {"\"supervisor\":\"auto\"", "\"supervisor\":\"off\""};
    for (int i = 0; i < 2; i++) {
        EpBox box = ep_box(modes[i]);
        ep_start(box.sandbox);
        double since = ep_now();
        cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
        cr_expect_lt(ep_now() - since, GRACE_S, "%s", modes[i]);
        ep_start(box.sandbox);
        since = ep_now();
        ep_destroy(&box);
        cr_expect_lt(ep_now() - since, GRACE_S, "%s", modes[i]);
    }
}

/* ---------------------------------------------------------------------------- execs */

static char *inspect(const char *id)
{
    char *body = NULL;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(id)), NULL, &body);
    cr_assert_not_null(body);
    return body;
}

/* An engine takes an exec off its list a moment after its end. */
static bool has_no_exec(void *ctx)
{
    return strstr(inspect(ctx), "\"ExecIDs\":null") != NULL;
}

Test(reports, O64_commands_that_fail_or_are_given_up_leave_no_exec_on_the_engine)
{
    EpBox box = ep_box("\"supervisor\":\"off\"");
    sprov_exec_request requests[3] = {SPROV_INIT(sprov_exec_request),
                                      SPROV_INIT(sprov_exec_request),
                                      SPROV_INIT(sprov_exec_request)};
    requests[0].user = "nosuch";
    requests[1].cwd = "/no/such";
    requests[2].run_timeout_ms = 300;
    ep_start(box.sandbox);
    for (int i = 0; i < 12; i++) {
        sprov_exec_request *request = &requests[i % 3];
        request->command = "sleep 8640";
        EpRun run = ep_run(box.sandbox, request, NULL);
        cr_expect(run.status != SPROV_OK || run.result.flags & SPROV_EXEC_TIMED_OUT, "%d", i);
    }
    cr_expect(ep_wait_until(has_no_exec, (void *)box.id), "%s", inspect(box.id));
    ep_destroy(&box);
}

/* ---------------------------------------------------------------------------- ports */

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

/* The port of the engine's machine that info() tells and its record has. */
static void expect_told(const EpBox *box)
{
    char *info = NULL;
    cr_assert_eq(ep_lifecycle()->info(box->sandbox, NULL, take_text, &info, NULL), SPROV_OK);
    char *record = strstr(inspect(box->id), "\"NetworkSettings\"");
    char *at = record ? strstr(record, "\"HostPort\":\"") : NULL;
    cr_assert_not_null(at);
    at += strlen("\"HostPort\":\"");
    char *told = ep_format("\"8080/tcp\":\"127.0.0.1:%.*s\"", (int)strcspn(at, "\""), at);
    cr_expect(strstr(info, told), "%s: %s", told, info);
}

Test(reports, O67_where_a_port_is_published_is_asked_for_again_after_a_restart)
{
    EpBox box = ep_box("\"ports\":{\"8080\":\"0\"}");
    for (int i = 0; i < 3; i++) {
        ep_start(box.sandbox);
        expect_told(&box);
        cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    }
    ep_destroy(&box);
}

/* ---------------------------------------------------------------------------- files */

Test(reports, O69_a_folder_of_another_user_on_the_machine_is_refused_and_keeps_its_owner)
{
    static const char *const modes[] = {"\"supervisor\":\"auto\"", "\"supervisor\":\"off\""};
    const char *folder = ep_new_id();
    EpBox root = ep_box("\"volumes\":{\"/tmp\":\"/machine\"}");
    ep_ask(root.sandbox, "mkdir -m 700 /machine/%s && chown 1234 /machine/%s", folder, folder);
    for (int i = 0; i < 2; i++) {
        EpBox box = ep_box(ep_format("\"volumes\":{\"/tmp/%s\":\"/theirs\"},\"user\":\"1000\",%s",
                                     folder, modes[i]));
        sprov_error error = SPROV_INIT(sprov_error);
        cr_expect_eq(ep_write(box.sandbox, "/theirs/x", "x", 1, 0, &error), SPROV_E_DENIED, "%s",
                     error.message);
        ep_destroy(&box);
    }
    cr_expect_str_eq(ep_ask(root.sandbox, "cd /machine/%s; stat -c %%u:%%a .; ls -A", folder),
                     "1234:700");
    ep_ask(root.sandbox, "rm -r /machine/%s", folder);
    ep_destroy(&root);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = -2;
    cr_assert_not_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

Test(reports, O71_writing_leaves_nothing_on_the_host_and_nothing_in_the_container_s_log)
{
    char folder[] = "/tmp/sprov-reports-XXXXXX";
    char *data = ep_random(1 << 20), *log;
    cr_assert_not_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    EpBox box = ep_box(NULL);
    for (int i = 0; i < 30; i++)
        cr_assert_eq(ep_write(box.sandbox, ep_format("/tmp/%d", i % 3), data, 1 << 20, 0, NULL),
                     SPROV_OK);
    ep_ask(box.sandbox, "echo out; echo err >&2");
    cr_expect_eq(count_entries(folder), 0);
    cr_expect_eq(ep_engine("GET",
                           ep_format("/containers/%s/logs?stdout=1&stderr=1", ep_container(box.id)),
                           NULL, &log),
                 200);
    cr_expect_str_eq(log, "");
    ep_destroy(&box);
    cr_expect_eq(rmdir(folder), 0);
}

/* -------------------------------------------------------------------------- threads */

static pthread_barrier_t together;

static void *call_first(void *ctx)
{
    sprov_provider *provider = NULL;
    char *config = ep_format("{\"host\":\"%s\"}", getenv("DOCKER_HOST")), *list = NULL;
    pthread_barrier_wait(&together);
    *(bool *)ctx = ep_api()->open(NULL, config, &provider, NULL) == SPROV_OK &&
                   ep_lifecycle()->list(provider, NULL, take_text, &list, NULL) == SPROV_OK &&
                   ep_api()->close(provider, NULL) == SPROV_OK;
    return NULL;
}

static int end_of(pid_t child)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* In a process that has called nothing before. */
Test(reports, O75_sixteen_threads_may_make_the_first_call_at_once)
{
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) {
            bool ok[16] = {false};
            int count = 0;
            pthread_barrier_init(&together, NULL, 16);
            ep_threads(16, call_first, ok, sizeof *ok);
            for (int i = 0; i < 16; i++)
                count += ok[i];
            _exit(count);
        }
        cr_assert_eq(end_of(child), 16, "round %d", round);
    }
}

static sprov_flow leave_the_process(void *ctx, const void *data, size_t size)
{
    *(volatile bool *)ctx = true;
    return SPROV_FLOW_CONTINUE;
}

typedef struct {
    EpBox box;
    volatile bool runs;
} Leaver;

static void *run_long(void *ctx)
{
    Leaver *leaver = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.write = leave_the_process;
    sink.ctx = (void *)&leaver->runs;
    request.command = "echo on; sleep 8675";
    request.stdout_sink = &sink;
    ep_run(leaver->box.sandbox, &request, NULL);
    return NULL;
}

static bool is_running(void *ctx)
{
    return ((Leaver *)ctx)->runs;
}

Test(reports, O75_a_host_may_exit_while_a_command_runs)
{
    const char *id = ep_new_id();
    pid_t child = fork();
    if (child == 0) {
        Leaver leaver = {.box = {.provider = ep_open(), .id = id}};
        pthread_t thread;
        leaver.box.sandbox = ep_create(leaver.box.provider, id, NULL);
        ep_start(leaver.box.sandbox);
        pthread_create(&thread, NULL, run_long, &leaver);
        alarm(60);
        exit(ep_wait_until(is_running, &leaver) ? 7 : 8);
    }
    cr_expect_eq(end_of(child), 7);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    ep_destroy(&box);
}
