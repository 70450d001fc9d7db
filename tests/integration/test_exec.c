/* Output of commands, whole and on its own stream, whatever takes it, and commands that don't
 * even start. */
#include "ep.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static EpRun run_argv(sprov_sandbox *sandbox, const char *const *argv)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = argv;
    return ep_run(sandbox, &request, NULL);
}

static void check_ran(const EpRun *run, int exit_code)
{
    cr_assert_eq(run->status, SPROV_OK, "%d: %s", run->status, run->error.message);
    cr_assert_eq(run->result.exit_code, exit_code, "code %d; %s", run->result.exit_code,
                 run->err.data);
    cr_assert_eq(run->result.flags, 0);
    cr_assert_eq(run->result.out_bytes, run->out.size);
    cr_assert_eq(run->result.err_bytes, run->err.size);
}

/* -------------------------------------------------------------------------- results */

Test(exec, streams_stay_apart_and_the_exit_code_is_the_command_s)
{
    EpBox box = ep_shared();
    EpRun run = ep_sh(box.sandbox, "echo out; echo err >&2; exit 7");
    check_ran(&run, 7);
    cr_assert_str_eq(run.out.data, "out\n");
    cr_assert_str_eq(run.err.data, "err\n");
    cr_assert_eq(run.out.done, 1);
    cr_assert_eq(run.err.done, 1);
    ep_leave(&box);
}

Test(exec, a_command_that_kills_itself_tells_the_signal_and_was_not_killed)
{
    EpBox box = ep_shared();
    EpRun run = ep_sh(box.sandbox, "echo last; kill -9 $$");
    check_ran(&run, 137);
    cr_assert_eq(run.result.term_signal, 9);
    cr_assert_str_eq(run.out.data, "last\n");
    ep_leave(&box);
}

Test(exec, nothing_is_a_terminal_and_every_byte_value_survives)
{
    EpBox box = ep_shared();
    EpRun run = ep_sh(box.sandbox, "i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %%o $i)\"; "
                                   "i=$((i+1)); done; [ ! -t 0 ] && [ ! -t 1 ] && [ ! -t 2 ]");
    check_ran(&run, 0);
    cr_assert_eq(run.out.size, 256);
    for (int i = 0; i < 256; i++)
        cr_assert_eq((unsigned char)run.out.data[i], i);
    ep_leave(&box);
}

Test(exec, a_line_that_looks_like_the_engine_s_own_is_the_program_s)
{
    EpBox box = ep_shared();
    const char *line = "OCI runtime exec failed: exec failed: unable to start\r\n";
    EpRun run = ep_sh(box.sandbox, "printf '%%s\\r\\n' 'OCI runtime exec failed: exec failed: "
                                   "unable to start'; exit 126");
    check_ran(&run, 126);
    cr_assert_str_eq(run.out.data, line);
    cr_assert_eq(run.err.size, 0);
    ep_leave(&box);
}

/* --------------------------------------------------------------------------- volume */

Test(exec, thirty_two_mebibytes_on_both_streams_at_once_arrive_exactly)
{
    EpBox box = ep_shared();
    char *sums = ep_ask(box.sandbox,
                        "cd /tmp && head -c %u /dev/urandom >big1 && "
                        "head -c %u /dev/urandom >big2 && sha256sum big1 big2",
                        32 * MIB, 32 * MIB);
    EpRun run = ep_sh(box.sandbox, "cd /tmp; cat big2 >&2 & cat big1; wait; rm big1 big2");
    check_ran(&run, 0);
    cr_assert_eq(run.out.size, 32 * MIB);
    cr_assert_eq(run.err.size, 32 * MIB);
    cr_assert(strstr(sums, ep_sha256(run.out.data, run.out.size)));
    cr_assert(strstr(sums, ep_sha256(run.err.data, run.err.size)));
    ep_leave(&box);
}

Test(exec, writes_of_any_size_arrive_exactly)
{
    EpBox box = ep_shared();
    static const struct {
        int size, count;
    } writes[] = {{1, 20000}, {7, 20000}, {1000, 3000}, {4096, 500}, {65536, 60}};
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        EpRun run = ep_sh(box.sandbox,
                          "head -c %d /dev/urandom >/tmp/w && dd if=/tmp/w bs=%d 2>/dev/null && "
                          "sha256sum /tmp/w >&2",
                          writes[i].size * writes[i].count, writes[i].size);
        check_ran(&run, 0);
        cr_assert_eq(run.out.size, (size_t)(writes[i].size * writes[i].count));
        cr_assert(strstr(run.err.data, ep_sha256(run.out.data, run.out.size)), "writes of %d bytes",
                  writes[i].size);
    }
    ep_leave(&box);
}

static sprov_flow take_slowly(void *ctx, const void *data, size_t size)
{
    sprov_sink sink = ep_sink(ctx);
    usleep(1000);
    return sink.write(ctx, data, size);
}

Test(exec, a_slow_taker_of_twenty_mebibytes_gets_all_of_them)
{
    EpBox box = ep_shared();
    char *sum =
        ep_ask(box.sandbox, "head -c %u /dev/urandom >/tmp/slow && sha256sum /tmp/slow", 20 * MIB);
    EpBytes bytes = {.data = ep_random(21 * MIB), .capacity = 21 * MIB};
    sprov_sink slow = ep_sink(&bytes);
    slow.write = take_slowly;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "cat /tmp/slow; rm /tmp/slow; exit 5";
    request.stdout_sink = &slow;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 5);
    cr_assert_eq(bytes.size, 20 * MIB);
    cr_assert(strstr(sum, ep_sha256(bytes.data, bytes.size)));
    ep_leave(&box);
}

static sprov_flow take_late(void *ctx, const void *data, size_t size)
{
    EpBytes *bytes = ctx;
    if (bytes->size == 0)
        usleep(3000 * 1000); /* engines drop what nobody took 2 s after the end */
    sprov_sink sink = ep_sink(bytes);
    return sink.write(sink.ctx, data, size);
}

Test(exec, a_command_that_ends_before_its_taker_has_read_loses_nothing)
{
    EpBox box = ep_shared();
    EpBytes bytes = {0};
    sprov_sink late = ep_sink(&bytes);
    late.write = take_late;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "head -c 3000000 /dev/zero";
    request.stdout_sink = &late;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(bytes.size, 3000000);
    ep_leave(&box);
}

/* ---------------------------------------------------------------- takers that do not */

static sprov_flow stop_at_once(void *ctx, const void *data, size_t size)
{
    __atomic_add_fetch((int *)ctx, 1, __ATOMIC_RELAXED);
    return SPROV_FLOW_STOP;
}

Test(exec, a_taker_that_stops_ends_the_command_and_is_not_called_again)
{
    EpBox box = ep_shared();
    int calls = 0;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &calls;
    sink.write = stop_at_once;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo one; sleep 0.3; echo two; sleep 7101";
    request.stdout_sink = &sink;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_E_REFUSED, "%d: %s", run.status, run.error.message);
    cr_assert(run.result.flags & SPROV_EXEC_KILLED);
    cr_assert_eq(calls, 1);
    cr_assert_not(ep_runs(box.sandbox, "sleep 7101"));
    ep_leave(&box);
}

static sprov_flow block_once(void *ctx, const void *data, size_t size)
{
    int *state = ctx;
    if (__atomic_exchange_n(state, 1, __ATOMIC_ACQ_REL) == 0) {
        usleep(3000 * 1000);
        __atomic_store_n(state, 2, __ATOMIC_RELEASE);
    }
    return SPROV_FLOW_CONTINUE;
}

typedef struct {
    sprov_sandbox *sandbox;
    int state; /* 1: its taker blocks, 2: no more */
    EpRun run;
} Flood;

static void *flood(void *ctx)
{
    Flood *f = ctx;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &f->state;
    sink.write = block_once;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "yes 7102";
    request.stdout_sink = &sink;
    f->run = ep_run(f->sandbox, &request, NULL);
    return NULL;
}

static bool blocks(void *ctx)
{
    return __atomic_load_n((int *)ctx, __ATOMIC_ACQUIRE) > 0;
}

/* An engine must not be left waiting; a supervisor holds the command back instead. */
Test(exec, without_supervisor_a_blocked_taker_of_a_flood_costs_its_command_and_no_other)
{
    EpBox box = ep_box("\"supervisor\":\"off\"");
    ep_start(box.sandbox);
    Flood f = {.sandbox = box.sandbox};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, flood, &f), 0);
    cr_assert(ep_wait_until(blocks, &f.state));
    cr_assert_str_eq(ep_ask(box.sandbox, "echo beside"), "beside");
    pthread_join(thread, NULL);
    cr_assert_eq(f.run.status, SPROV_E_EXHAUSTED, "%d: %s", f.run.status, f.run.error.message);
    cr_assert(f.run.result.flags & SPROV_EXEC_KILLED);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo after"), "after");
    cr_assert_not(ep_runs(box.sandbox, "yes 7102"));
    ep_destroy(&box);
}

/* ------------------------------------------------------------------ failed beginnings */

Test(exec, a_missing_program_is_127_and_one_that_is_none_is_126)
{
    EpBox box = ep_shared();
    static const struct {
        const char *program;
        int exit_code;
    } cases[] = {
        {"/no/such/program", 127}, {"no-such-program", 127}, {"/etc/passwd", 126}, {"/etc", 126}};
    for (size_t i = 0; i < 4; i++) {
        EpRun run = run_argv(box.sandbox, (const char *const[]){cases[i].program, "x", NULL});
        check_ran(&run, cases[i].exit_code);
        cr_assert_eq(run.out.size, 0, "%s", run.out.data);
        cr_assert(strstr(run.err.data, cases[i].program), "%s", run.err.data);
        cr_assert_null(strstr(run.err.data, "OCI"), "%s", run.err.data);
    }
    ep_leave(&box);
}

/* As the supervisor and a shell have it; an engine's own look along PATH tells a file that is no
 * program from none at all only without one. */
Test(exec, without_supervisor_what_stands_along_the_path_and_is_no_program_is_126)
{
    EpBox box = ep_box("\"supervisor\":\"off\",\"tmpfs\":{\"/mem\":\"exec\"}");
    static const struct {
        const char *path, *program;
        int exit_code;
    } cases[] = {
        {"/no/such:/tmp/p:/bin", "plain", 126}, {"/tmp/p:/mem:/bin", "in-memory", 126},
        {"/tmp/p:/bin", "folder", 126},         {":/bin", "plain", 126},
        {"/tmp/p:/bin", "dangling", 127},       {"/tmp/p:/bin", "no-such-program", 127},
        {"/tmp/*:/bin", "plain", 127},          {"/tmp/p:/tmp/able", "both", 0},
    };
    ep_ask(box.sandbox, "mkdir -p /tmp/p/folder /tmp/able && cd /tmp/p && ln -s nowhere dangling && "
                        "echo x | tee plain both /mem/in-memory && ln -s /bin/true /tmp/able/both");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        request.argv = (const char *const[]){cases[i].program, NULL};
        request.env = (const char *const[]){ep_format("PATH=%s", cases[i].path), NULL};
        request.cwd = "/tmp/p";
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_expect_eq(run.result.exit_code, cases[i].exit_code, "%s along %s: %d, %s",
                     cases[i].program, cases[i].path, run.result.exit_code, run.err.data);
        cr_expect(run.result.exit_code != 126 || strstr(run.err.data, "permission denied"), "%s",
                  run.err.data);
    }
    ep_destroy(&box);
}

static void check_refused(sprov_sandbox *sandbox, const sprov_exec_request *request,
                          sprov_status status, const char *reason, const char *says)
{
    EpRun run = ep_run(sandbox, request, NULL);
    cr_assert_eq(run.status, status, "%s: %d: %s", reason, run.status, run.error.message);
    cr_assert_str_eq(run.error.reason, reason, "%s", run.error.message);
    cr_assert(strstr(run.error.message, says), "%s", run.error.message);
    cr_assert(run.out.size == 0 && run.err.size == 0, "%s%s", run.out.data, run.err.data);
    cr_assert_eq(run.result.exit_code, 0);
}

Test(exec, a_folder_a_user_or_an_argument_that_cannot_be_is_a_typed_error)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo never";
    request.cwd = "/no/such/folder";
    check_refused(box.sandbox, &request, SPROV_E_NOT_FOUND, "bad-cwd", "/no/such/folder");
    request.cwd = "/etc/passwd";
    check_refused(box.sandbox, &request, SPROV_E_NOT_FOUND, "bad-cwd", "/etc/passwd");
    request.cwd = NULL;
    request.user = "nobody-of-that-name";
    check_refused(box.sandbox, &request, SPROV_E_NOT_FOUND, "no-such-user", "nobody-of-that-name");
    request.user = NULL;
    char long_word[200 * 1024];
    memset(long_word, 'x', sizeof long_word);
    long_word[sizeof long_word - 1] = '\0';
    request.argv = (const char *const[]){"echo", long_word, NULL};
    check_refused(box.sandbox, &request, SPROV_E_INVALID_ARGUMENT, "too-long", "128 KiB");
    request.argv = NULL;
    request.command = "";
    check_refused(box.sandbox, &request, SPROV_E_INVALID_ARGUMENT, "no-command", "command");
    ep_leave(&box);
}

Test(exec, without_supervisor_what_is_no_utf8_is_a_typed_error)
{
    EpBox box = ep_box("\"supervisor\":\"off\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = (const char *const[]){"\xff\xfe", NULL};
    check_refused(box.sandbox, &request, SPROV_E_INVALID_ARGUMENT, "not-utf8", "UTF-8");
    ep_destroy(&box);
}

Test(exec, a_removed_working_directory_is_told_and_healed_by_making_it)
{
    EpBox box = ep_box("\"workingDirectory\":\"/work\"");
    cr_assert_str_eq(ep_ask(box.sandbox, "pwd"), "/work");
    ep_ask(box.sandbox, "rm -r /work");
    EpRun run = ep_sh(box.sandbox, "pwd");
    cr_assert_eq(run.status, SPROV_E_NOT_FOUND, "%d: %s", run.status, run.error.message);
    cr_assert_str_eq(run.error.reason, "bad-cwd");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "mkdir /work";
    request.cwd = "/";
    run = ep_run(box.sandbox, &request, NULL);
    check_ran(&run, 0);
    request.command = "pwd";
    request.cwd = "sub/..";
    ep_ask(box.sandbox, "mkdir sub");
    run = ep_run(box.sandbox, &request, NULL);
    check_ran(&run, 0);
    cr_assert_str_eq(run.out.data, "/work\n");
    ep_destroy(&box);
}

/* ------------------------------------------------------------------------ background */

Test(exec, background_children_do_not_hold_up_the_end)
{
    EpBox box = ep_shared();
    double since = ep_now();
    EpRun run = ep_sh(box.sandbox, "sleep 7103 & echo done; exit 3");
    check_ran(&run, 3);
    cr_assert_str_eq(run.out.data, "done\n");
    cr_assert_lt(ep_now() - since, 15);
    cr_assert(ep_runs(box.sandbox, "sleep 7103"), "the child lives on");
    ep_ask(box.sandbox, "for d in /proc/[0-9]*; do grep -q '[7]103' $d/cmdline && "
                        "kill -9 ${d#/proc/}; done 2>/dev/null; true");
    ep_leave(&box);
}

typedef struct {
    sprov_sandbox *sandbox;
    int number;
    EpRun run;
} Numbered;

static void *run_numbered(void *ctx)
{
    Numbered *n = ctx;
    n->run = ep_sh(n->sandbox, "echo %d; echo e%d >&2; exit %d", n->number, n->number, n->number);
    return NULL;
}

Test(exec, forty_commands_at_once_keep_to_themselves)
{
    EpBox box = ep_shared();
    Numbered all[40] = {0};
    for (int i = 0; i < 40; i++)
        all[i] = (Numbered){.sandbox = box.sandbox, .number = i};
    ep_threads(40, run_numbered, all, sizeof all[0]);
    for (int i = 0; i < 40; i++) {
        check_ran(&all[i].run, i);
        cr_assert_str_eq(all[i].run.out.data, ep_format("%d\n", i));
        cr_assert_str_eq(all[i].run.err.data, ep_format("e%d\n", i));
    }
    ep_leave(&box);
}
