/* Spawned processes: their input, kept, pushed and polled output, terminals. */
#include "cases/cases.h"
#include "cases/process.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

static sprov_status send_to(sprov_process *process, const char *text)
{
    size_t written = 77;
    sprov_status status =
        process_api()->write_stdin(process, text, strlen(text), &written, NULL, case_error());
    CHECK(status == SPROV_OK || written == 0);
    return status;
}

/* ---- standard input */

static void input_need_not_be_taken(void)
{
    sprov_process *process = process_spawn(case_shared(), "head -n 1");
    process_send(process, case_bytes("one\ntwo\nthree\n"));
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "one\n");
    process_forget(process);
}

static void input_ends_when_it_is_closed(void)
{
    sprov_process *process = process_spawn(case_shared(), "cat");
    process_send(process, case_bytes("one "));
    process_send(process, case_bytes("two"));
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "one two");
    process_forget(process);
    process = process_spawn(case_shared(), "cat");
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_INT(process_output(process, SPROV_STREAM_OUT).size, 0);
    process_forget(process);
}

static void output_goes_on_behind_the_input(void)
{
    sprov_process *process = process_spawn(case_shared(), "cat; sleep 1; echo end");
    process_send(process, case_bytes("x"));
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "xend\n");
    process_forget(process);
}

static void closed_input_takes_nothing(void)
{
    sprov_process *process = process_spawn(case_shared(), "read x; exit 0");
    process_send(process, case_bytes("x\n"));
    process_wait(process);
    CHECK_STATUS(send_to(process, "late"), SPROV_E_CONFLICT);
    process_close(process);
    process_forget(process);
    process =
        process_spawn(case_shared(), "sleep 300 <&0 & read x; exit 0"); /* a child has it still */
    process_send(process, case_bytes("x\n"));
    process_wait(process);
    CHECK_STATUS(send_to(process, "late"), SPROV_E_CONFLICT);
    process_end(process);
    process = process_spawn(case_shared(), "sleep 300");
    process_close(process);
    process_close(process);
    CHECK_STATUS(send_to(process, "late"), SPROV_E_CONFLICT);
    process_end(process);
    sprov_spawn_request request = process_request("sleep 300");
    request.stdin_mode = SPROV_STDIN_CLOSED;
    process = process_start(case_shared(), &request);
    CHECK_STATUS(send_to(process, "never"), SPROV_E_CONFLICT);
    process_end(process);
}

static void no_input_is_an_end_at_once(void)
{
    sprov_spawn_request request = process_request("cat; echo over");
    request.stdin_mode = SPROV_STDIN_CLOSED;
    sprov_process *process = process_start(case_shared(), &request);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "over\n");
    process_forget(process);
}

static void a_write_ends_when_nobody_reads(void)
{
    sprov_process *process = process_spawn(case_shared(), "sleep 300");
    CaseBytes much = case_noise(4 << 20);
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 500;
    size_t written = 0;
    CHECK_STATUS(
        process_api()->write_stdin(process, much.data, much.size, &written, &call, case_error()),
        SPROV_E_TIMEOUT);
    CHECK(written > 0 && written < much.size);
    call.flags = SPROV_CALL_NOWAIT;
    CHECK_STATUS(
        process_api()->write_stdin(process, much.data, much.size, &written, &call, case_error()),
        SPROV_E_WOULD_BLOCK);
    CHECK_INT(written, 0);
    process_end(process);
}

static void input_is_exact(void)
{
    const gsize sizes[] = {65537, 1048576};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        CaseBytes noise = case_noise(sizes[i]);
        sprov_process *process = process_spawn(case_shared(), "sha256sum");
        process_send(process, noise);
        process_close(process);
        CHECK_INT(process_wait(process).exit_code, 0);
        CHECK_TEXT(process_output(process, SPROV_STREAM_OUT),
                   case_text("%s  -\n", case_sha256(noise)));
        process_forget(process);
    }
}

static void nothing_can_be_sent(void)
{
    sprov_process *process = process_spawn(case_shared(), "cat");
    process_send(process, case_bytes(""));
    process_send(process, case_bytes("x"));
    process_close(process);
    process_send(process, case_bytes("")); /* whatever became of it */
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "x");
    process_send(process, case_bytes(""));
    CHECK_STATUS(process_api()->forget(process, NULL, case_error()), SPROV_OK);
    process_send(process, case_bytes(""));
    process_api()->release(process);
}

/* ---- kept output */

static void drops_are_counted(void)
{
    sprov_spawn_request request = process_request("head -c 300000 /dev/zero; printf end");
    request.retain_bytes = 65536;
    sprov_process *process = process_start(case_shared(), &request);
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.out_bytes, 300003);
    uint64_t offset = 0;
    char buffer[100];
    size_t count = 0;
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_OUT, &offset, buffer, 1, &count, NULL,
                                     case_error()),
                 SPROV_OK);
    CHECK_INT(count, 1);
    CHECK_INT(offset, 300003 - 65536 + 1);
    offset = 300000;
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_OUT, &offset, buffer, sizeof buffer,
                                     &count, NULL, case_error()),
                 SPROV_OK);
    CHECK_TEXT(((CaseBytes){buffer, count}), "end");
    CHECK_INT(offset, 300003);
    process_forget(process);
}

static void hold_loses_nothing(void)
{
    Ran ran = case_sh(case_shared(), "seq 1 100000 | sha256sum");
    for (sprov_stream stream = SPROV_STREAM_OUT; stream <= SPROV_STREAM_ERR; stream++) {
        sprov_spawn_request request = process_request("seq 1 100000 >&%d", stream);
        request.retain_bytes = 65536;
        request.overflow = SPROV_OVERFLOW_HOLD;
        sprov_process *process = process_start(case_shared(), &request);
        case_sleep(300);
        sprov_call call = SPROV_INIT(sprov_call);
        call.flags = SPROV_CALL_NOWAIT;
        CHECK_STATUS(process_api()->wait(process, &call, NULL, case_error()), SPROV_E_WOULD_BLOCK);
        CaseBytes all = process_output(process, stream);
        CHECK_INT(all.size, 588895);
        CHECK_TEXT(case_bytes(case_text("%.64s", ran.out.data)), case_sha256(all));
        CHECK_INT(process_wait(process).exit_code, 0);
        process_forget(process);
    }
}

static void reads_know_their_stream(void)
{
    sprov_process *process = process_spawn(case_shared(), "sleep 300");
    char buffer[10];
    size_t count = 55;
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NOWAIT;
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_END, NULL, buffer, 10, &count, NULL,
                                     case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(
        process_api()->read(process, SPROV_STREAM_OUT, NULL, buffer, 0, &count, NULL, case_error()),
        SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_OUT, NULL, buffer, 10, &count, &call,
                                     case_error()),
                 SPROV_E_WOULD_BLOCK);
    CHECK_INT(count, 55);
    CHECK_INT(process_api()->fd(process, SPROV_STREAM_END - 1), -1);
    CHECK_INT(process_api()->fd(process, SPROV_STREAM_ERR + 1), -1);
    process_api()->resume(process, SPROV_STREAM_END - 1); /* there is nothing to resume */
    process_api()->resume(process, SPROV_STREAM_ERR + 1);
    CHECK_STATUS(process_api()->resize(process, 0, 10, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(process_api()->resize(process, 10, 10, NULL, case_error()), SPROV_E_CONFLICT);
    process_end(process);
}

static void refuses_to_spawn(const sprov_spawn_request *request)
{
    sprov_process *process = NULL;
    CHECK_STATUS(process_api()->spawn(case_shared(), request, NULL, &process, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK(process == NULL);
}

static void wrong_spawns_are_refused(void)
{
    sprov_spawn_request request = process_request("true");
    request.stdin_mode = SPROV_STDIN_CLOSED + 1;
    refuses_to_spawn(&request);
    request.stdin_mode = -1;
    refuses_to_spawn(&request);
    request = process_request("true");
    request.overflow = SPROV_OVERFLOW_HOLD + 1;
    refuses_to_spawn(&request);
    request.overflow = -1;
    refuses_to_spawn(&request);
    request = process_request("true");
    sprov_source source = case_source_table(case_source(case_bytes("x")));
    process_exec(&request)->stdin_source = &source;
    refuses_to_spawn(&request);
    request = process_request("true");
    process_exec(&request)->command = "";
    refuses_to_spawn(&request);
    request.exec = NULL;
    refuses_to_spawn(&request);
    sprov_process *process = NULL;
    CHECK_STATUS(process_api()->spawn(case_shared(), NULL, NULL, &process, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    process_end(process_spawn(case_shared(), "true"));
}

static void drop_text(void *ctx, const char *text, size_t size)
{
}

/* Of these functions none may be told not to wait. */
static void flags_of_others_are_refused(void)
{
    const sprov_ext_processes *api = process_api();
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_process *process = process_spawn(case_shared(), "cat");
    sprov_process *other = NULL;
    sprov_spawn_request request = process_request("true");
    sprov_kill_request kill = SPROV_INIT(sprov_kill_request);
    kill.signal = SIGKILL;
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NOWAIT;
    CHECK_STATUS(api->spawn(case_shared(), &request, &call, &other, case_error()), wrong);
    CHECK_STATUS(api->find(case_shared(), api->id(process), &call, &other, case_error()), wrong);
    CHECK_STATUS(api->list(case_shared(), &call, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->kill(process, &kill, &call, case_error()), wrong);
    CHECK_STATUS(api->close_stdin(process, &call, case_error()), wrong);
    CHECK_STATUS(api->resize(process, 1, 1, &call, case_error()), wrong);
    process_send(process, case_bytes("still open"));
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_STATUS(api->forget(process, &call, case_error()), wrong);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "still open");
    CHECK(other == NULL);
    process_forget(process);
}

/* ---- descriptors */

static bool polls(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

/* Everything, by an event loop that never waits but in poll(). */
static void descriptors_drive_a_loop(void)
{
    sprov_process *process =
        process_spawn(case_shared(), "read x; seq 1 50000; seq 1 20000 >&2; exit 4");
    const sprov_ext_processes *api = process_api();
    CaseSink *taken[3] = {NULL, case_sink(), case_sink()};
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NOWAIT;
    struct pollfd fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = (struct pollfd){.fd = api->fd(process, i), .events = POLLIN};
        CHECK(fds[i].fd >= 0);
        CHECK_INT(api->fd(process, i), fds[i].fd);
        CHECK(!polls(fds[i].fd, 0));
    }
    CHECK_INT(api->fd(process, 3), -1);
    process_send(process, case_bytes("go\n"));
    int left = 3;
    while (left > 0) {
        CHECK_THAT(poll(fds, 3, (int)case_within(8000)) > 0, "nothing became readable");
        for (int i = 0; i < 3; i++) {
            char buffer[4096];
            size_t count = 0;
            sprov_exec_result result = SPROV_INIT(sprov_exec_result);
            if (!fds[i].revents)
                continue;
            sprov_status status = i == 0 ? api->wait(process, &call, &result, case_error())
                                         : api->read(process, i, NULL, buffer, sizeof buffer,
                                                     &count, &call, case_error());
            CHECK_STATUS(status, SPROV_OK);
            if (i > 0 && count > 0) {
                g_byte_array_append(taken[i]->bytes, (guint8 *)buffer, (guint)count);
                continue;
            }
            CHECK(i > 0 || result.exit_code == 4);
            CHECK_INT(polls(fds[i].fd, 0), i == 0);
            fds[i].fd = -1;
            left--;
        }
    }
    CHECK_INT(taken[1]->bytes->len, 288894);
    CHECK_INT(taken[2]->bytes->len, 108894);
    process_forget(process);
}

/* ---- terminals */

static void a_terminal_has_its_size(void)
{
    sprov_spawn_request request =
        process_request("stty size; read x; stty size; test -t 1 && test -t 2; echo $?");
    request.tty_rows = 31;
    request.tty_columns = 97;
    sprov_process *process = process_start(case_shared(), &request);
    char buffer[10];
    size_t count;
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 7), "31 97\r\n");
    CHECK_INT(process_api()->fd(process, SPROV_STREAM_ERR), -1);
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_ERR, NULL, buffer, 10, &count, NULL,
                                     case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(process_api()->resize(process, 40, 120, NULL, case_error()), SPROV_OK);
    process_send(process, case_bytes("x\n"));
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK(case_contains(process_output(process, SPROV_STREAM_OUT), "40 120\r\n0\r\n"));
    CHECK_STATUS(process_api()->resize(process, 40, 120, NULL, case_error()), SPROV_E_CONFLICT);
    process_forget(process);
    request = process_request("cat");
    request.tty_rows = request.tty_columns = 50;
    process = process_start(case_shared(), &request);
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    process_forget(process);
}

const Case cases_process_streams[] = {
    {"STD-01", 1, "proc", "a process need not take all of its input", "9.1",
     input_need_not_be_taken},
    {"STD-02", 1, "proc", "a process reads what was sent and then the end", "9.1",
     input_ends_when_it_is_closed},
    {"STD-03", 2, "proc", "output goes on after the input was closed", "9.1",
     output_goes_on_behind_the_input},
    {"STD-05", 2, "proc", "closed input takes nothing, and a second close is success", "9.1",
     closed_input_takes_nothing},
    {"STD-06", 2, "proc", "without input a process reads the end at once", "9.1",
     no_input_is_an_end_at_once},
    {"STD-07", 2, "proc", "a write to who never reads ends with its call", "5.1",
     a_write_ends_when_nobody_reads},
    {"STD-08", 2, "proc", "input arrives byte for byte", "3.2", input_is_exact},
    {"STD-10", 2, "proc", "sending nothing is success", "9.1", nothing_can_be_sent},
    {"PRC-22", 2, "proc", "dropped output is counted exactly", "9.3", drops_are_counted},
    {"PRC-23", 2, "proc", "with HOLD the process waits and nothing is lost", "9.4",
     hold_loses_nothing},
    {"PRC-24", 2, "proc", "reads and resizes refuse what can't be", "9.3", reads_know_their_stream},
    {"PRC-30", 2, "proc", "a spawn that cannot be is refused, and nothing runs", "2.5",
     wrong_spawns_are_refused},
    {"PRC-32", 2, "proc", "a call that must not wait is refused where nothing says that it may",
     "2.5", flags_of_others_are_refused},
    {"PRC-25", 2, "proc", "an event loop gets everything through the descriptors", "9.6",
     descriptors_drive_a_loop},
    {"PRC-29", 2, "proc", "a terminal has its size, joins both streams, and ends", "9.1",
     a_terminal_has_its_size},
    {0},
};
