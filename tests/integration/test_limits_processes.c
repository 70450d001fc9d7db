/* Limitations of the reference (test_limitations.c) in commands and processes: how they end, what
 * is kept of them, what they cost. */
#include "ep.h"

#include <criterion/criterion.h>
#include <ext/processes.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const sprov_ext_processes *processes(void)
{
    return ep_extension(SPROV_EXT_PROCESSES);
}

static sprov_process *spawn(sprov_sandbox *sandbox, const char *command)
{
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_process *process = NULL;
    exec.command = command;
    request.exec = &exec;
    cr_assert_eq(processes()->spawn(sandbox, &request, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    return process;
}

static sprov_status kill_tree(sprov_process *process)
{
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = SIGKILL;
    request.scope = SPROV_KILL_TREE;
    return processes()->kill(process, &request, NULL, NULL);
}

typedef struct {
    sprov_sandbox *sandbox;
    const char *marker;
} Running;

static bool runs(void *ctx)
{
    const Running *r = ctx;
    return ep_runs(r->sandbox, r->marker);
}

/* ------------------------------------------------------------------------------ kills */

/* Its leader has ended long before, and what it left is all that is to be killed. */
Test(limitation, L9_children_whose_leader_has_ended_are_reached_by_timeout_token_and_kill)
{
    EpBox box = ep_box("\"supervisor\":\"required\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    sprov_call call = SPROV_INIT(sprov_call);
    ep_start(box.sandbox);
    request.command = "sleep 8091 &";
    request.flags = SPROV_EXEC_WAIT_BACKGROUND;
    request.run_timeout_ms = 1000;
    call.timeout_ms = 60 * 1000; /* of a provider whose deadlines do not come */
    EpRun run = ep_run(box.sandbox, &request, &call);
    cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%s",
                 run.error.message);
    cr_expect_not(ep_runs(box.sandbox, "sleep 8091"));

    request.run_timeout_ms = 0;
    request.command = "echo begun; sleep 8092 &";
    cancel.fd = eventfd(0, EFD_CLOEXEC);
    call.cancel = &cancel;
    if (fork() == 0) { /* the token fires while the child alone is left */
        usleep(1500 * 1000);
        _exit(eventfd_write(cancel.fd, 1));
    }
    run = ep_run(box.sandbox, &request, &call);
    cr_expect_eq(run.result.flags, SPROV_EXEC_KILLED, "%s", run.error.message);
    cr_expect_str_eq(run.out.data, "begun\n");
    cr_expect_not(ep_runs(box.sandbox, "sleep 8092"));
    close(cancel.fd);

    Running child = {box.sandbox, "sleep 8093"};
    sprov_process *process = spawn(box.sandbox, "sleep 8093 & true");
    cr_assert(ep_wait_until(runs, &child));
    cr_expect_eq(processes()->wait(process, NULL, NULL, NULL), SPROV_OK);
    cr_expect_eq(kill_tree(process), SPROV_OK);
    cr_expect_not(runs(&child));
    processes()->release(process);
    ep_destroy(&box);
}

Test(limitation, L10_a_descendant_in_a_session_of_its_own_is_ended_by_kill)
{
    EpBox box = ep_box(NULL);
    Running away = {box.sandbox, "sleep 8102"};
    sprov_process *process =
        spawn(box.sandbox, "(setsid sh -c '(setsid sleep 8102 &)' &); sleep 8101");
    cr_assert(ep_wait_until(runs, &away));
    cr_expect_eq(kill_tree(process), SPROV_OK);
    cr_expect_not(ep_runs(box.sandbox, "sleep 810"));
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    cr_expect_eq(processes()->wait(process, NULL, &result, NULL), SPROV_OK);
    cr_expect_eq(result.flags, SPROV_EXEC_KILLED);
    cr_expect_eq(result.exit_code, 137);
    processes()->release(process);
    ep_destroy(&box);
}

/* Shells and languages that word "No such process" each in another way. */
Test(limitation, L12_a_kill_is_confirmed_whatever_shell_and_language_the_sandbox_has)
{
    static const char *const images[] = {EP_DEBIAN, "busybox:latest"};
    static const char *const modes[] = {"auto", "off"};
    for (int i = 0; i < 4; i++) {
        EpBox box = ep_box(ep_format("\"image\":\"%s\",\"supervisor\":\"%s\",\"env\":{"
                                     "\"LC_ALL\":\"de_DE.UTF-8\",\"LANGUAGE\":\"de:fr\"}",
                                     images[i % 2], modes[i / 2]));
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        request.command = "kill -0 999999; sleep 8121 & sleep 8121";
        request.run_timeout_ms = 1000;
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%s %s: %x %s",
                     images[i % 2], modes[i / 2], run.result.flags, run.error.message);
        cr_expect_not(ep_runs(box.sandbox, "sleep 8121"));
        ep_destroy(&box);
    }
}

Test(limitation, L13_a_spawned_process_outlives_the_timeout_of_the_sandbox)
{
    EpBox box = ep_box("\"timeout\":800");
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_process *process = spawn(box.sandbox, "sleep 2.5; exit 7");
    cr_expect_eq(processes()->wait(process, NULL, &result, NULL), SPROV_OK);
    cr_expect_eq(result.exit_code, 7);
    cr_expect_eq(result.flags, 0);
    processes()->release(process);
    ep_destroy(&box);
}

/* ------------------------------------------------------------------- what is kept */

static void spawn_and_die(const char *id, int tell)
{
    sprov_provider *provider = ep_open();
    sprov_sandbox *sandbox = ep_create(provider, id, NULL);
    sprov_process *process = spawn(sandbox, "echo printed; sleep 8271");
    const char *name = processes()->id(process);
    if (write(tell, name, strlen(name)) > 0)
        kill(getpid(), SIGKILL);
    _exit(1);
}

static void count_one(void *ctx, const char *text, size_t size)
{
    ++*(int *)ctx;
}

/* One that nobody in the sandbox hears in time, and that ends nobody who hears it later. */
static void fail_a_kill(const EpBox *box, sprov_process *process)
{
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.signal = SIGURG;
    call.timeout_ms = 1000;
    char *path = ep_format("/containers/%s", ep_container(box->id));
    cr_assert_eq(ep_engine("POST", ep_format("%s/pause", path), NULL, NULL), 204);
    sprov_status status = processes()->kill(process, &request, &call, NULL);
    cr_assert_eq(ep_engine("POST", ep_format("%s/unpause", path), NULL, NULL), 204);
    cr_expect(status == SPROV_E_TIMEOUT || status == SPROV_E_NOT_READY, "%d", status);
}

Test(limitation, L27_a_process_is_found_again_after_its_host_died_and_until_it_is_forgotten)
{
    const char *id = ep_new_id();
    char name[256] = {0}, printed[16] = {0};
    int tell[2], status, count = 0;
    size_t size = 0;
    cr_assert_eq(pipe(tell), 0);
    pid_t child = fork();
    if (child == 0)
        spawn_and_die(id, tell[1]);
    close(tell[1]);
    cr_assert_gt(read(tell[0], name, sizeof name - 1), 0);
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status));

    EpBox box = {.provider = ep_open(), .id = id};
    sprov_process *process = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    box.sandbox = ep_create(box.provider, id, NULL);
    cr_assert_eq(processes()->find(box.sandbox, name, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_eq(processes()->list(box.sandbox, NULL, count_one, &count, NULL), SPROV_OK);
    cr_expect_eq(count, 1);
    cr_expect_eq(processes()->read(process, SPROV_STREAM_OUT, NULL, printed, sizeof printed, &size,
                                   NULL, NULL),
                 SPROV_OK);
    cr_expect_str_eq(printed, "printed\n");

    sprov_kill_request refused = SPROV_INIT(sprov_kill_request);
    refused.signal = 0; /* a kill that fails lets nothing go */
    cr_expect_neq(processes()->kill(process, &refused, NULL, NULL), SPROV_OK);
    cr_expect(ep_runs(box.sandbox, "sleep 8271"));
    fail_a_kill(&box, process);
    processes()->release(process);
    cr_assert_eq(processes()->find(box.sandbox, name, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_eq(kill_tree(process), SPROV_OK);
    cr_expect_eq(processes()->wait(process, NULL, NULL, NULL), SPROV_OK);
    cr_expect_eq(processes()->forget(process, NULL, NULL), SPROV_OK);
    processes()->release(process);
    cr_expect_eq(processes()->find(box.sandbox, name, NULL, &process, NULL), SPROV_E_NOT_FOUND);
    ep_destroy(&box);
}

static bool is_known(const EpBox *box, sprov_process *process)
{
    sprov_process *found = NULL;
    char printed[16] = {0};
    uint64_t offset = 0;
    size_t size = 0;
    int count = 0;
    bool is =
        processes()->find(box->sandbox, processes()->id(process), NULL, &found, NULL) == SPROV_OK &&
        processes()->list(box->sandbox, NULL, count_one, &count, NULL) == SPROV_OK &&
        processes()->read(process, SPROV_STREAM_OUT, &offset, printed, sizeof printed, &size, NULL,
                          NULL) == SPROV_OK;
    processes()->release(found);
    return is && count == 1 && strcmp(printed, "on\n") == 0;
}

/* Root without the right to kill others has somebody else's process on its hands. */
Test(limitation, L27_a_process_whose_kill_failed_is_known_as_before)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    EpBox box = ep_box("\"capDrop\":[\"KILL\"]");
    sprov_process *process = spawn(
        box.sandbox, "exec setpriv --reuid 1000 --clear-groups sh -c 'echo on; exec sleep 8272'");
    cr_assert(is_known(&box, process)); /* the read waits for its first line */
    for (int i = 0; i < 2; i++) {
        sprov_kill_request request = SPROV_INIT(sprov_kill_request);
        request.signal = signals[i];
        cr_expect_neq(processes()->kill(process, &request, NULL, NULL), SPROV_OK);
        cr_expect(is_known(&box, process), "after signal %d", signals[i]);
        cr_expect(ep_runs(box.sandbox, "sleep 8272"));
    }
    processes()->release(process);
    ep_destroy(&box);
}

static bool is_stopped(const char *id)
{
    char *inspect;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(id)), NULL, &inspect);
    return strstr(inspect, "\"Running\":false") != NULL;
}

Test(limitation, L24_looking_at_the_processes_of_a_stopped_sandbox_starts_nothing)
{
    EpBox box = ep_box(NULL);
    int count = 0;
    sprov_process *process = spawn(box.sandbox, "sleep 8241"), *found = NULL;
    const char *name = ep_format("%s", processes()->id(process));
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(processes()->list(box.sandbox, NULL, count_one, &count, NULL), SPROV_OK);
    cr_expect_eq(count, 0);
    cr_expect(is_stopped(box.id), "after list");
    cr_expect_eq(processes()->find(box.sandbox, name, NULL, &found, NULL), SPROV_E_NOT_FOUND);
    cr_expect(is_stopped(box.id), "after find");
    cr_expect_neq(kill_tree(process), SPROV_E_INTERNAL);
    cr_expect_neq(processes()->wait(process, NULL, NULL, NULL), SPROV_OK);
    cr_expect(is_stopped(box.id), "after kill and wait");
    processes()->release(process);
    ep_destroy(&box);
}

static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

static void run_commands(sprov_sandbox *sandbox, int count)
{
    for (int i = 0; i < count; i++) {
        EpBytes none = {0};
        sprov_sink sink = ep_sink(&none);
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        request.command = "true";
        request.stdout_sink = &sink;
        cr_assert_eq(ep_api()->exec(sandbox, &request, NULL, NULL, NULL), SPROV_OK);
    }
}

/* The reference keeps 64 bytes and more of each. */
Test(limitation, L28_nothing_is_kept_of_a_command_that_ended)
{
    EpBox box = ep_box("\"supervisor\":\"required\"");
    ep_start(box.sandbox);
    run_commands(box.sandbox, 100);
    size_t before = allocated();
    run_commands(box.sandbox, 400);
    cr_expect_lt((long)(allocated() - before), 400 * 32, "%ld bytes of 400 commands",
                 (long)(allocated() - before));
    ep_destroy(&box);
}

static size_t peak_kib(void)
{
    char line[128];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmHWM: %zu", &kib);
    if (file)
        fclose(file);
    return kib;
}

static sprov_flow take_slowly(void *ctx, const void *data, size_t size)
{
    uint64_t *taken = ctx;
    if (*taken / (8 << 20) != (*taken + size) / (8 << 20))
        usleep(800 * 1000);
    *taken += size;
    return SPROV_FLOW_CONTINUE;
}

Test(limitation, L29_output_that_is_taken_slowly_waits_in_the_sandbox_and_not_in_memory)
{
    static const char *const modes[] = {"required", "off"};
    for (int i = 0; i < 2; i++) {
        EpBox box = ep_box(ep_format("\"supervisor\":\"%s\"", modes[i]));
        uint64_t taken = 0;
        sprov_sink sink = SPROV_INIT(sprov_sink);
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        sink.write = take_slowly;
        sink.ctx = &taken;
        request.command = "head -c 41943040 /dev/zero";
        request.stdout_sink = &sink;
        ep_ask(box.sandbox, "true");
        size_t before = peak_kib();
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_expect_eq(taken, 40u << 20);
#ifdef SANITIZE_none
        cr_expect_lt(peak_kib() - before, 24u << 10, "%s: %zu KiB more", modes[i],
                     peak_kib() - before);
#endif
        ep_destroy(&box);
    }
}

static sprov_flow refuse(void *ctx, const void *data, size_t size)
{
    return SPROV_FLOW_STOP;
}

/* What a binding makes of an exception in the callback of its user. */
Test(limitation, L32_a_callback_that_fails_ends_its_command_and_nothing_else)
{
    EpBox box = ep_shared();
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sink.write = refuse;
    request.command = "echo x; sleep 8321";
    request.run_timeout_ms = 60 * 1000; /* of a provider that does not heed it */
    request.stdout_sink = &sink;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_expect_eq(run.status, SPROV_E_REFUSED, "%d %s", run.status, run.error.message);
    cr_expect_not(ep_runs(box.sandbox, "sleep 8321"));
    cr_expect_str_eq(ep_ask(box.sandbox, "echo next"), "next");
    ep_leave(&box);
}
