/* What somebody else does to a sandbox behind the provider's back: each call recovers or says what
 * happened, and none hangs. */
#include "ep.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

/* What docker stop, rm, kill and pause do. */
static void meddle(const EpBox *box, const char *method, const char *verb)
{
    const char *path = ep_format("/containers/%s%s", ep_container(box->id), verb);
    cr_assert_eq(ep_engine(method, path, NULL, NULL), 204);
}

static EpBox started(void)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    return box;
}

/* A command in a thread of its own, begun when its first output came. */
typedef struct {
    sprov_sandbox *sandbox;
    const char *command;
    const sprov_call *call;
    EpBytes out;
    EpRun run;
    pthread_t thread;
} Running;

static void *run_it(void *ctx)
{
    Running *r = ctx;
    sprov_sink sink = ep_sink(&r->out);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = r->command;
    request.stdout_sink = &sink;
    r->run = ep_run(r->sandbox, &request, r->call);
    return NULL;
}

static bool has_begun(void *ctx)
{
    return __atomic_load_n(&((Running *)ctx)->out.size, __ATOMIC_ACQUIRE) > 0;
}

static void begin(Running *r, const EpBox *box)
{
    r->sandbox = box->sandbox;
    r->command = "echo begun; sleep 60";
    cr_assert_eq(pthread_create(&r->thread, NULL, run_it, r), 0);
    cr_assert(ep_wait_until(has_begun, r));
}

static void check_gone(Running *r, double since)
{
    pthread_join(r->thread, NULL);
    cr_assert_eq(r->run.status, SPROV_E_NOT_READY, "%d: %s", r->run.status, r->run.error.message);
    cr_assert(r->run.error.flags & SPROV_ERROR_SANDBOX_GONE, "%s", r->run.error.message);
    cr_assert_str_eq(r->out.data, "begun\n");
    cr_assert_lt(ep_now() - since, 20, "it took %.1f s to settle", ep_now() - since);
}

/* ------------------------------------------------------------------- between calls */

Test(others, a_sandbox_that_was_removed_is_made_anew_by_the_next_command)
{
    EpBox box = started();
    meddle(&box, "DELETE", "?force=1");
    cr_assert_str_eq(ep_ask(box.sandbox, "echo back"), "back");
    cr_assert_eq(ep_count(box.id), 1);
    ep_destroy(&box);
}

Test(others, a_sandbox_that_was_stopped_or_killed_starts_again_with_its_files)
{
    EpBox box = started();
    ep_ask(box.sandbox, "echo kept > /tmp/mark");
    meddle(&box, "POST", "/stop?t=0");
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /tmp/mark"), "kept");
    meddle(&box, "POST", "/kill");
    EpBytes bytes = {0};
    cr_assert_eq(ep_read(box.sandbox, "/tmp/mark", &bytes, NULL, NULL), SPROV_OK);
    cr_assert_str_eq(bytes.data, "kept\n");
    ep_destroy(&box);
}

Test(others, without_auto_start_a_lost_sandbox_is_told_and_not_started)
{
    EpBox box = ep_box("\"autoStart\":false");
    ep_start(box.sandbox);
    meddle(&box, "POST", "/stop?t=0");
    EpRun run = ep_sh(box.sandbox, "echo never");
    cr_assert_eq(run.status, SPROV_E_NOT_READY, "%d: %s", run.status, run.error.message);
    cr_assert(run.error.flags & SPROV_ERROR_SANDBOX_GONE);
    cr_assert_eq(run.out.size, 0);
    cr_assert_eq(ep_sh(box.sandbox, "echo never").status, SPROV_E_NOT_READY);
    ep_start(box.sandbox);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo again"), "again");
    ep_destroy(&box);
}

Test(others, L18_a_paused_sandbox_is_told_and_resumed_by_start)
{
    EpBox box = started();
    sprov_error error = SPROV_INIT(sprov_error);
    meddle(&box, "POST", "/pause");
    double since = ep_now();
    EpRun run = ep_sh(box.sandbox, "echo never");
    cr_assert_eq(run.status, SPROV_E_NOT_READY, "%d: %s", run.status, run.error.message);
    cr_assert_str_eq(run.error.reason, "paused");
    cr_assert_eq(run.out.size, 0);
    cr_assert_eq(ep_write(box.sandbox, "/tmp/x", "x", 1, 0, &error), SPROV_E_NOT_READY);
    cr_assert_lt(ep_now() - since, 15);
    ep_start(box.sandbox);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo resumed"), "resumed");
    meddle(&box, "POST", "/pause");
    ep_destroy(&box);
}

Test(others, destroy_of_what_is_gone_already_is_success)
{
    EpBox box = started();
    meddle(&box, "DELETE", "?force=1");
    ep_destroy(&box);
}

Test(others, containers_with_one_id_are_refused_by_name)
{
    EpBox box = started();
    char *ids[3] = {ep_format("%.12s", ep_container(box.id))}, *made = NULL;
    char *body = ep_format(
        "{\"Image\":\"busybox:latest\",\"Labels\":{\"mastra.sandbox.id\":\"%s\"}}", box.id);
    for (int i = 1; i < 3; i++) {
        cr_assert_eq(ep_engine("POST", "/containers/create", body, &made), 201);
        ids[i] = ep_format("%.12s", strstr(made, "\"Id\":\"") + 6);
    }
    EpBox other = {.provider = ep_open(), .id = box.id};
    other.sandbox = ep_create(other.provider, box.id, NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->start(other.sandbox, NULL, NULL, &error), SPROV_E_CONFLICT);
    for (int i = 0; i < 3; i++)
        cr_expect(strstr(error.message, ids[i]), "%s: %s", ids[i], error.message);
    ep_leave(&other);
    for (int i = 1; i < 3; i++)
        ep_engine("DELETE", ep_format("/containers/%s", ids[i]), NULL, NULL);
    ep_destroy(&box);
}

/* --------------------------------------------------------------------- during a call */

Test(others, a_command_whose_sandbox_is_removed_ends_with_sandbox_gone)
{
    EpBox box = started();
    Running r = {0};
    begin(&r, &box);
    double since = ep_now();
    meddle(&box, "DELETE", "?force=1");
    check_gone(&r, since);
    ep_destroy(&box);
}

Test(others, a_command_whose_sandbox_is_stopped_ends_with_sandbox_gone)
{
    EpBox box = started();
    Running r = {0};
    begin(&r, &box);
    double since = ep_now();
    meddle(&box, "POST", "/stop?t=1");
    check_gone(&r, since);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo again"), "again");
    ep_destroy(&box);
}

Test(others, commands_during_destroy_settle_and_the_handle_is_done_for)
{
    EpBox box = started();
    Running r[3] = {0};
    for (int i = 0; i < 3; i++)
        begin(&r[i], &box);
    double since = ep_now();
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    for (int i = 0; i < 3; i++)
        check_gone(&r[i], since);
    EpRun after = ep_sh(box.sandbox, "true");
    cr_assert_eq(after.status, SPROV_E_NOT_READY);
    cr_assert_str_eq(after.error.reason, "destroyed");
    ep_destroy(&box);
}

Test(others, a_command_in_a_paused_sandbox_keeps_its_deadline)
{
    EpBox box = started();
    sprov_call call = SPROV_INIT(sprov_call);
    Running r = {.call = &call};
    call.timeout_ms = 4000;
    double since = ep_now();
    begin(&r, &box);
    meddle(&box, "POST", "/pause");
    pthread_join(r.thread, NULL);
    cr_assert_eq(r.run.status, SPROV_E_TIMEOUT, "%d: %s", r.run.status, r.run.error.message);
    cr_assert(r.run.result.flags & SPROV_EXEC_UNCONFIRMED, "it can't have been killed");
    cr_assert_lt(ep_now() - since, 30, "it took %.1f s", ep_now() - since);
    ep_destroy(&box);
}
