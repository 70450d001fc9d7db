/* Spawned processes: what is kept of much output, races, and what they leave behind. */
#include "cases/cases.h"
#include "cases/process.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static void nothing_is_kept_when_nothing_shall_be(void)
{
    sprov_spawn_request request = process_request("head -c 20000000 /dev/zero; printf end >&2");
    request.retain_bytes = SPROV_RETAIN_NONE;
    sprov_process *process = process_start(case_shared(), &request);
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.exit_code, 0);
    CHECK_INT(result.out_bytes, 20000000);
    uint64_t offset = 0;
    size_t count = 77;
    char byte;
    CHECK_STATUS(process_api()->read(process, SPROV_STREAM_OUT, &offset, &byte, 1, &count, NULL,
                                     case_error()),
                 SPROV_OK);
    CHECK_INT(count, 0);
    CHECK_INT(offset, 20000000);
    process_forget(process);
}

#define MIB (1 << 20)

static void a_mebibyte_is_kept(void)
{
    guint first = case_random(1, 1000);
    CaseBytes all = case_sh(case_shared(), "seq %u 500000", first).out;
    CHECK(all.size > 3 * MIB);
    sprov_process *process = process_spawn(case_shared(), "seq %u 500000", first);
    CHECK_INT(process_wait(process).out_bytes, all.size);
    CaseBytes kept = process_output(process, SPROV_STREAM_OUT);
    CHECK_INT(kept.size, MIB);
    CHECK_BYTES(kept, ((CaseBytes){all.data + all.size - MIB, MIB}));
    process_forget(process);
}

/* ---- input of two threads */

typedef struct {
    sprov_process *process;
    char letter;
} Sender;

#define MESSAGES 100

static gpointer send_lines(gpointer data)
{
    const Sender *sender = data;
    for (int i = 0; i < MESSAGES; i++) {
        gsize size = case_random(1, 9000);
        g_autofree char *line = g_strnfill(size, sender->letter);
        line[size - 1] = '\n';
        process_send(sender->process, (CaseBytes){line, size});
    }
    return NULL;
}

static void messages_are_not_mixed(void)
{
    sprov_spawn_request request = process_request("cat");
    request.retain_bytes = 4 * MIB;
    sprov_process *process = process_start(case_shared(), &request);
    Sender senders[] = {{process, 'a'}, {process, 'b'}};
    GThread *threads[] = {case_thread(send_lines, &senders[0]),
                          case_thread(send_lines, &senders[1])};
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CaseBytes all = process_output(process, SPROV_STREAM_OUT);
    int lines = 0;
    for (gsize i = 0; i < all.size; i++) {
        bool is_end = all.data[i] == '\n';
        lines += is_end;
        CHECK_THAT(i == 0 || is_end || all.data[i - 1] == '\n' || all.data[i - 1] == all.data[i],
                   "messages are mixed at byte %" G_GSIZE_FORMAT, i);
    }
    CHECK_INT(lines, 2 * MESSAGES);
    process_forget(process);
}

/* ---- ends */

/* What they print is more than a pipe holds. */
static void children_are_not_held_up(void)
{
    const char *file = case_text("%s/late", case_folder(case_shared()));
    sprov_process *process =
        process_spawn(case_shared(),
                      "(while ! test -e '%s.go'; do sleep 0.05; done; head -c 300000 /dev/zero; "
                      "head -c 300000 /dev/zero >&2; echo late > '%s') & echo now",
                      file, file);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "now\n");
    case_write(case_shared(), case_text("%s.go", file), case_bytes(""), 0);
    CHECK(case_eventually(case_shared(), 5000, case_text("test -s '%s'", file)));
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "now\n");
    process_end(process);
}

#define SIGNALS 120

/* As many as the descriptors that a host with little may have: none may be lost with a signal. */
static void signals_cost_nothing(void)
{
    struct rlimit usual;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &usual), 0);
    struct rlimit few = {SIGNALS, usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    sprov_process *process = process_spawn(case_shared(), "echo up; exec sleep 300");
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    for (int i = 0; i < SIGNALS; i++)
        CHECK_STATUS(process_kill(process, SIGCONT, SPROV_KILL_TREE), SPROV_OK);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
    CHECK_INT(process_wait(process).exit_code, 137);
    setrlimit(RLIMIT_NOFILE, &usual);
    process_forget(process);
}

static void a_kill_and_the_end_agree(void)
{
    sprov_sandbox *sandbox = case_shared();
    int killed = 0;
    for (int i = 0; i < 200; i++) {
        sprov_process *process = process_spawn(sandbox, "sleep 0.02");
        case_sleep(case_random(0, 50));
        sprov_status status = process_kill(process, SIGKILL, SPROV_KILL_TREE);
        sprov_exec_result result = process_wait(process);
        bool is_killed = result.flags & SPROV_EXEC_KILLED;
        CHECK_THAT(status == SPROV_OK || status == SPROV_E_NOT_FOUND, "kill() answered %d: %s",
                   status, case_last_error()->message);
        CHECK_THAT(is_killed == (result.exit_code == 137), "flags %x and exit code %d",
                   result.flags, result.exit_code);
        CHECK_THAT(status == SPROV_OK || !is_killed, "killed, and kill() found nothing");
        killed += is_killed;
        process_forget(process);
    }
    CHECK_THAT(killed > 0, "none of 200 was alive when it was killed");
}

static void signals_are_told(void)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"SEGV", 11}, {"ABRT", 6}, {"QUIT", 3}, {"TERM", 15}, {"KILL", 9}, {"FPE", 8}};
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        sprov_process *process =
            process_spawn(case_shared(), "ulimit -c 0; kill -%s $$; sleep 9", signals[i].name);
        sprov_exec_result result = process_wait(process);
        CHECK_INT(result.exit_code, 128 + signals[i].number);
        CHECK_INT(result.flags & SPROV_EXEC_KILLED, 0);
        process_forget(process);
    }
}

/* As wait() tells them, whether a kill or the deadline came. */
static void ends_are_listed(void)
{
    sprov_sandbox *sandbox = case_shared();
    for (int is_late = 0; is_late < 2; is_late++) {
        sprov_spawn_request request = process_request("sleep 300");
        process_exec(&request)->run_timeout_ms = is_late ? 100 : 0;
        sprov_process *process = process_start(sandbox, &request);
        CHECK(is_late || process_kill(process, SIGKILL, SPROV_KILL_TREE) == SPROV_OK);
        CHECK_INT(process_wait(process).exit_code, 137);
        json_t *object = json_loads(process_listed(sandbox, process_api()->id(process)), 0, NULL);
        CHECK(json_is_false(json_object_get(object, "running")));
        CHECK_INT(json_integer_value(json_object_get(object, "exitCode")), 137);
        CHECK_INT(json_integer_value(json_object_get(object, "signal")), SIGKILL);
        CHECK(json_is_true(json_object_get(object, "killed")));
        json_t *timed_out = json_object_get(object, "timedOut");
        CHECK(!timed_out || json_is_true(timed_out) == is_late);
        json_decref(object);
        process_forget(process);
    }
}

static void a_deadline_without_a_grace_sends_no_term(void)
{
    const char *folder = case_folder(case_shared());
    sprov_spawn_request request = process_request(
        "cd '%s'; for i in 1 2 3 4 5 6; do sh -c 'trap \"echo $0 >>told\" TERM; : >ready.$0; "
        "sleep 300 & wait' $i & done; wait",
        folder);
    process_exec(&request)->run_timeout_ms = case_within(1000);
    sprov_process *process = process_start(case_shared(), &request);
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s'; cat told; ls ready.*", folder).out,
               "ready.1\nready.2\nready.3\nready.4\nready.5\nready.6\n");
    process_forget(process);
}

/* As in TMO-16, of a process that outlives its call. */
static void the_term_of_a_deadline_reaches_the_tree(void)
{
    const char *folder = case_folder(case_shared());
    sprov_spawn_request request = process_request(
        "cd '%s'; trap : TERM; sh -c 'sh -c \"trap \\\"echo bye >deep; exit\\\" TERM; : >ready; "
        "while :; do sleep 0.1; done\" & wait' & until [ -e deep ]; do sleep 0.1; done",
        folder);
    process_exec(&request)->run_timeout_ms = case_within(1000);
    process_exec(&request)->grace_ms = 10000;
    sprov_process *process = process_start(case_shared(), &request);
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/deep", folder)), "bye\n");
    process_forget(process);
}

static const char *count_inside(sprov_sandbox *sandbox)
{
    Ran ran =
        case_sh(sandbox, "ls -d /proc/[0-9]* | wc -l; find /tmp /var/tmp /run \"$PWD\" | sort");
    return case_text("%.*s", (int)ran.out.size, ran.out.data);
}

static void nothing_is_left_inside(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    process_end(process_spawn(sandbox, "true"));
    const char *before = count_inside(sandbox);
    for (int i = 0; i < 10; i++) {
        sprov_process *process = process_spawn(sandbox, "cat; sleep 9 & echo");
        process_close(process);
        if (i % 2)
            process_wait(process);
        process_end(process);
    }
    const char *after = "";
    for (gint64 begin = case_now_ms(); case_on_time(begin, 5000); case_sleep(100)) {
        after = count_inside(sandbox);
        if (strcmp(before, after) == 0)
            break;
    }
    CHECK_TEXT(case_bytes(after), before);
}

const Case cases_process_corners[] = {
    {"STR-06", 2, "proc", "with RETAIN_NONE nothing is kept, and nobody waits for a reader", "9.3",
     nothing_is_kept_when_nothing_shall_be, 2},
    {"STR-08", 3, "proc", "unless told otherwise the newest 1 MiB is kept, exactly", "9.3",
     a_mebibyte_is_kept},
    {"PRC-34", 2, "proc", "children that outlive a spawned command may print on", "8.8",
     children_are_not_held_up},
    {"PRC-35", 2, "proc", "a process may be signalled again and again, and then be killed", "9.8",
     signals_cost_nothing, 2},
    {"PRC-36", 2, "proc", "list tells that a process was killed, as wait does", "9.9",
     ends_are_listed},
    {"PRC-38", 2, "proc", "a deadline without a grace kills at once, and sends no TERM before",
     "8.7", a_deadline_without_a_grace_sends_no_term},
    {"PRC-39", 2, "proc", "the TERM of a grace reaches the whole tree of a spawned process", "8.7",
     the_term_of_a_deadline_reaches_the_tree},
    {"STD-09", 3, "proc", "data of two threads is not mixed within a call", "9.1",
     messages_are_not_mixed},
    {"PRC-17", 3, "proc", "processes that have ended leave no file and no process", "9.1",
     nothing_is_left_inside},
    {"PRC-19", 3, "proc", "a kill and the end of the process always agree who was first", "9.8",
     a_kill_and_the_end_agree, 3},
    {"PRC-20", 3, "proc", "a signal is told as 128 and its number, and as no kill", "8.2",
     signals_are_told},
    {0},
};
