/* How commands are ended: by their own time, the call's, a token or their taker, each with the
 * whole tree they started. */
#include "ep.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A tree whose members try to get away; each sleeps under a number of its own. */
static const char *const trees[] = {
    "sleep 7301",
    "setsid sleep 7302",
    "setsid sh -c 'setsid sleep 7303 & sleep 7303' & wait",
    "(sleep 7304 &) ; (setsid sh -c '(sleep 7304 &)' &); sleep 7304",
    "trap '' TERM INT HUP; sleep 7305 & sleep 7305; sleep 7305",
    "env -i setsid sleep 7306 & sleep 7306",
    "nohup sleep 7307 >/dev/null 2>&1 & sleep 7307",
};

Test(ending, a_run_timeout_takes_the_whole_tree_along)
{
    EpBox box = ep_shared();
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        request.command = ep_format("echo begun; %s", trees[i]);
        request.run_timeout_ms = 500;
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_assert_eq(run.status, SPROV_OK, "%s: %d %s", trees[i], run.status, run.error.message);
        cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%s: flags %u",
                     trees[i], run.result.flags);
        cr_expect_eq(run.result.exit_code, 137);
        cr_expect_str_eq(run.out.data, "begun\n");
        cr_expect_geq(run.result.duration_ms, 500);
    }
    cr_assert_not(ep_runs(box.sandbox, "sleep 730"));
    ep_leave(&box);
}

Test(ending, a_tree_of_another_user_is_ended_too)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "id -u; setsid sleep 7311 & sleep 7311";
    request.user = "1234:1234";
    request.run_timeout_ms = 500;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_assert_str_eq(run.out.data, "1234\n");
    cr_assert_not(ep_runs(box.sandbox, "sleep 7311"));
    ep_leave(&box);
}

Test(ending, a_command_that_ends_in_time_is_not_touched)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "echo fine; exit 9";
    request.run_timeout_ms = INT64_MAX;
    call.timeout_ms = INT64_MAX;
    EpRun run = ep_run(box.sandbox, &request, &call);
    cr_assert_eq(run.status, SPROV_OK);
    cr_assert_eq(run.result.flags, 0);
    cr_assert_eq(run.result.exit_code, 9);
    ep_leave(&box);
}

Test(ending, the_sandbox_s_own_timeout_holds_unless_the_command_has_another)
{
    EpBox box = ep_box("\"timeout\":700");
    ep_start(box.sandbox);
    EpRun run = ep_sh(box.sandbox, "sleep 7321");
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "sleep 1.5; echo late";
    request.run_timeout_ms = -1;
    run = ep_run(box.sandbox, &request, NULL);
    cr_assert_str_eq(run.out.data, "late\n", "%d %s", run.status, run.error.message);
    ep_destroy(&box);
}

Test(ending, the_call_s_deadline_is_an_error_that_still_tells_the_result)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "echo begun; sleep 7331";
    call.timeout_ms = 2500;
    EpRun run = ep_run(box.sandbox, &request, &call);
    cr_assert_eq(run.status, SPROV_E_TIMEOUT, "%d: %s", run.status, run.error.message);
    cr_assert_eq(run.result.flags, SPROV_EXEC_KILLED);
    cr_assert_eq(run.result.exit_code, 137);
    cr_assert_eq(run.result.out_bytes, 6);
    cr_assert_str_eq(run.out.data, "begun\n");
    cr_assert_not(ep_runs(box.sandbox, "sleep 7331"));
    ep_leave(&box);
}

Test(ending, a_grace_lets_the_command_say_good_bye)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.1; done";
    request.run_timeout_ms = 500;
    request.grace_ms = 10000;
    double since = ep_now();
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_assert_str_eq(run.out.data, "begun\nbye\n");
    cr_assert_lt(ep_now() - since, 9, "the grace was waited for to its end");
    ep_leave(&box);
}

Test(ending, a_grace_does_not_save_what_ignores_it)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "trap '' TERM; sleep 7341 & while :; do sleep 7341; done";
    request.run_timeout_ms = 300;
    request.grace_ms = 500;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_assert_not(ep_runs(box.sandbox, "sleep 7341"));
    ep_leave(&box);
}

Test(ending, an_endless_writer_is_ended_in_time)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "yes 7351";
    request.run_timeout_ms = 500;
    double since = ep_now();
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%d: %s", run.status, run.error.message);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_assert_lt(ep_now() - since, 20);
    cr_assert_not(ep_runs(box.sandbox, "yes 7351"));
    ep_leave(&box);
}

/* ------------------------------------------------------------------------- the token */

static int32_t is_set(void *ctx)
{
    return __atomic_load_n((int *)ctx, __ATOMIC_ACQUIRE);
}

Test(ending, a_token_that_fired_before_lets_nothing_run)
{
    EpBox box = ep_shared();
    sprov_cancel by_fd = SPROV_INIT(sprov_cancel), by_function = SPROV_INIT(sprov_cancel);
    int yes = 1;
    by_fd.fd = eventfd(1, EFD_CLOEXEC);
    by_function.fd = -1;
    by_function.ctx = &yes;
    by_function.is_cancelled = is_set;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "touch /tmp/cancelled-ran";
    for (int i = 0; i < 2; i++) {
        call.cancel = i == 0 ? &by_fd : &by_function;
        EpRun run = ep_run(box.sandbox, &request, &call);
        cr_assert_eq(run.status, SPROV_E_CANCELLED, "%d: %s", run.status, run.error.message);
        cr_assert_eq(run.result.flags, 0);
    }
    cr_assert_str_eq(ep_ask(box.sandbox, "ls /tmp/cancelled-ran 2>/dev/null || echo none"), "none");
    close(by_fd.fd);
    ep_leave(&box);
}

typedef struct {
    EpBytes bytes;
    int fd;  /* fires, */
    int set; /* and is set, with the first output */
} Trigger;

static sprov_flow fire(void *ctx, const void *data, size_t size)
{
    Trigger *t = ctx;
    sprov_sink sink = ep_sink(&t->bytes);
    __atomic_store_n(&t->set, 1, __ATOMIC_RELEASE);
    if (eventfd_write(t->fd, 1) != 0)
        return SPROV_FLOW_STOP;
    return sink.write(sink.ctx, data, size);
}

static void check_cancelled(sprov_sandbox *sandbox, Trigger *t, const sprov_cancel *cancel)
{
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = t;
    sink.write = fire;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "echo begun; setsid sleep 7361 & sleep 7361";
    request.stdout_sink = &sink;
    call.cancel = cancel;
    double since = ep_now();
    EpRun run = ep_run(sandbox, &request, &call);
    cr_assert_eq(run.status, SPROV_OK, "%d: %s", run.status, run.error.message);
    cr_assert_eq(run.result.flags, SPROV_EXEC_KILLED);
    cr_assert_eq(run.result.exit_code, 137);
    cr_assert_str_eq(t->bytes.data, "begun\n");
    cr_assert_lt(ep_now() - since, 20);
    cr_assert_not(ep_runs(sandbox, "sleep 7361"));
}

Test(ending, a_token_that_fires_by_descriptor_kills_and_keeps_what_was_printed)
{
    EpBox box = ep_shared();
    Trigger t = {.fd = eventfd(0, EFD_CLOEXEC)};
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    cancel.fd = t.fd;
    check_cancelled(box.sandbox, &t, &cancel);
    close(t.fd);
    ep_leave(&box);
}

Test(ending, a_token_that_fires_by_function_kills_and_keeps_what_was_printed)
{
    EpBox box = ep_shared();
    Trigger t = {.fd = eventfd(0, EFD_CLOEXEC)};
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    cancel.fd = -1;
    cancel.ctx = &t.set;
    cancel.is_cancelled = is_set;
    check_cancelled(box.sandbox, &t, &cancel);
    close(t.fd);
    ep_leave(&box);
}

/* ------------------------------------------------------------------- what can't be sure */

/* For the next command nothing is left of it to be doubted. */
static void check_stray(const char *image, int64_t grace_ms)
{
    EpBox box = ep_box(ep_format("\"supervisor\":\"off\",\"image\":\"%s\"", image));
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.run_timeout_ms = 2000;
    request.grace_ms = grace_ms;
    request.command = "env -i PATH=\"$PATH\" setsid sh -c 'setsid sleep 7362 >/dev/null 2>&1 &' "
                      ">/dev/null 2>&1; sleep 60";
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%d: %s", run.status, run.error.message);
    cr_assert(run.result.flags & SPROV_EXEC_UNCONFIRMED, "%s: flags %x", image, run.result.flags);
    cr_assert(ep_runs(box.sandbox, "sleep 7362"));
    request.command = "env -i PATH=\"$PATH\" sh -c 'sleep 7363 & sleep 60'; true";
    run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%s: flags %x", image,
                 run.result.flags);
    cr_assert_not(ep_runs(box.sandbox, "sleep 7363"));
    ep_destroy(&box);
}

Test(ending, without_supervisor_what_left_its_command_without_a_trace_is_unconfirmed)
{
    check_stray(EP_DEBIAN, 0);
    check_stray("busybox:latest", 2000);
}

Test(ending, without_supervisor_a_full_process_table_is_unconfirmed_and_no_call_hangs)
{
    EpBox box = ep_box("\"supervisor\":\"off\",\"pidsLimit\":24,\"image\":\"busybox:latest\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "for i in $(seq 40); do sleep 60 & done 2>/dev/null; wait";
    request.run_timeout_ms = 1500;
    double since = ep_now();
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%d: %s", run.status, run.error.message);
    cr_assert(run.result.flags & SPROV_EXEC_TIMED_OUT);
    if (!(run.result.flags & SPROV_EXEC_UNCONFIRMED))
        cr_assert_not(ep_runs(box.sandbox, "sleep 60"));
    cr_assert_lt(ep_now() - since, 40, "it took %.1f s", ep_now() - since);
    ep_destroy(&box);
}
