/* Standard input of commands: from a source that blocks or has to be waited for, to programs that
 * read it, stop reading or never begin. */
#include "ep.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static EpRun run_with_input(sprov_sandbox *sandbox, const char *command, const sprov_source *source)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = command;
    request.stdin_source = source;
    call.timeout_ms = 60000;
    return ep_run(sandbox, &request, &call);
}

static void check_code(const EpRun *run, int exit_code)
{
    cr_assert_eq(run->status, SPROV_OK, "%d: %s", run->status, run->error.message);
    cr_assert_eq(run->result.exit_code, exit_code, "%s", run->err.data);
}

Test(input, none_is_end_of_file_at_once)
{
    EpBox box = ep_shared();
    cr_assert_str_eq(ep_ask(box.sandbox, "cat; echo end"), "end");
    ep_leave(&box);
}

Test(input, its_end_reaches_the_program_whose_output_goes_on)
{
    EpBox box = ep_shared();
    EpSource from = {.data = "one\ntwo", .size = 7};
    sprov_source source = ep_source(&from, true);
    EpRun run = run_with_input(box.sandbox, "cat; sleep 0.5; echo end; exit 4", &source);
    check_code(&run, 4);
    cr_assert_str_eq(run.out.data, "one\ntwoend\n");
    cr_assert_eq(from.done, 1);
    ep_leave(&box);
}

Test(input, twenty_mebibytes_go_through_a_program_both_ways_at_once)
{
    EpBox box = ep_shared();
    char *bytes = ep_random(20 * MIB);
    EpSource from = {.data = bytes, .size = 20 * MIB};
    sprov_source source = ep_source(&from, false);
    EpRun run = run_with_input(box.sandbox, "cat", &source);
    check_code(&run, 0);
    cr_assert_eq(run.out.size, 20 * MIB);
    cr_assert(memcmp(run.out.data, bytes, 20 * MIB) == 0);
    ep_leave(&box);
}

/* -------------------------------------------------------------------- sources to wait for */

static sprov_source_status read_pipe(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    ssize_t n = read(*(int *)ctx, buffer, capacity);
    if (n < 0)
        return errno == EAGAIN ? SPROV_SOURCE_AGAIN : SPROV_SOURCE_GIVE_UP;
    *count = (size_t)n;
    return SPROV_SOURCE_OK;
}

static void *write_in_pieces(void *ctx)
{
    int fd = *(int *)ctx;
    for (int i = 0; i < 3; i++) {
        usleep(300 * 1000);
        if (write(fd, "piece\n", 6) != 6)
            break;
    }
    close(fd);
    return NULL;
}

Test(input, a_source_that_has_nothing_yet_is_polled_and_asked_again)
{
    EpBox box = ep_shared();
    int ends[2];
    pthread_t writer;
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    sprov_source source = SPROV_INIT(sprov_source);
    source.fd = ends[0];
    source.size = UINT64_MAX;
    source.ctx = &ends[0];
    source.read = read_pipe;
    cr_assert_eq(pthread_create(&writer, NULL, write_in_pieces, &ends[1]), 0);
    EpRun run = run_with_input(box.sandbox, "cat; echo end", &source);
    pthread_join(writer, NULL);
    check_code(&run, 0);
    cr_assert_str_eq(run.out.data, "piece\npiece\npiece\nend\n");
    close(ends[0]);
    ep_leave(&box);
}

Test(input, a_program_that_ends_first_does_not_wait_for_an_idle_source)
{
    EpBox box = ep_shared();
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    sprov_source source = SPROV_INIT(sprov_source);
    source.fd = ends[0];
    source.size = UINT64_MAX;
    source.ctx = &ends[0];
    source.read = read_pipe;
    EpRun run = run_with_input(box.sandbox, "echo done; exit 2", &source);
    check_code(&run, 2);
    cr_assert_str_eq(run.out.data, "done\n");
    close(ends[0]);
    close(ends[1]);
    ep_leave(&box);
}

/* ------------------------------------------------------------------ programs that don't read */

Test(input, that_nobody_reads_neither_blocks_nor_fails_the_command)
{
    EpBox box = ep_shared();
    static const char *const commands[] = {"exit 3", "sleep 1; exit 3", "head -c 10; exit 3",
                                           "exec 0<&-; sleep 1; exit 3"};
    char *bytes = ep_random(8 * MIB);
    for (int i = 0; i < 4; i++) {
        EpSource from = {.data = bytes, .size = 8 * MIB};
        sprov_source source = ep_source(&from, true);
        EpRun run = run_with_input(box.sandbox, commands[i], &source);
        check_code(&run, 3);
        cr_assert_eq(run.out.size, i == 2 ? 10 : 0);
        cr_assert_eq(from.done, 1);
    }
    ep_leave(&box);
}

Test(input, for_a_program_that_is_not_there_is_let_go)
{
    EpBox box = ep_shared();
    EpSource from = {.data = ep_random(MIB), .size = MIB};
    sprov_source source = ep_source(&from, true);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = (const char *const[]){"/no/such/program", NULL};
    request.stdin_source = &source;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    check_code(&run, 127);
    cr_assert_eq(from.done, 1);
    ep_leave(&box);
}

Test(input, a_source_that_gives_up_ends_the_command)
{
    EpBox box = ep_shared();
    EpSource from = {.data = ep_random(MIB), .size = MIB, .give_up_at = 1000};
    sprov_source source = ep_source(&from, true);
    EpRun run = run_with_input(box.sandbox, "cat; echo end; sleep 7201", &source);
    cr_assert_eq(run.status, SPROV_E_REFUSED, "%d: %s", run.status, run.error.message);
    cr_assert(run.result.flags & SPROV_EXEC_KILLED);
    cr_assert_eq(from.done, 1);
    cr_assert_not(ep_runs(box.sandbox, "sleep 7201"));
    ep_leave(&box);
}

Test(input, of_another_size_than_announced_is_refused)
{
    EpBox box = ep_shared();
    EpSource from = {.data = "12345", .size = 5};
    sprov_source source = ep_source(&from, true);
    for (uint64_t size = 4; size <= 6; size += 2) {
        from.used = 0;
        source.size = size;
        EpRun run = run_with_input(box.sandbox, "cat >/dev/null; sleep 7202", &source);
        cr_assert_eq(run.status, SPROV_E_INVALID_ARGUMENT, "announced %d: %d %s", (int)size,
                     run.status, run.error.message);
        cr_assert_not(ep_runs(box.sandbox, "sleep 7202"));
    }
    ep_leave(&box);
}
