/* Spawned commands: found again by anybody, read from any offset, fed, killed, forgotten. */
#include "fixture.h"

#include "supervisor/client/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;
static SprWait patient;

static void set_up(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    patient = spr_wait_for(60000);
}

static void tear_down(void)
{
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
}

TestSuite(process, .init = set_up, .fini = tear_down, .timeout = 120);

static guint64 spawn(const SprSpawn *how, const char *text)
{
    SprCommand command = {.command = text};
    SprSpawn request = how ? *how : (SprSpawn){0};
    request.command = &command;
    guint64 id = 0;
    g_autoptr(GError) error = NULL;
    bool ok = spr_process_spawn(supervisor, &request, &patient, &id, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return id;
}

static SprExit wait_for(guint64 id)
{
    SprExit result = {.exit_code = -1};
    cr_assert(spr_process_wait(supervisor, id, &patient, &result, NULL));
    return result;
}

static bool wait_for_output(guint64 id)
{
    guint ready = 0;
    return spr_process_watch(supervisor, id, SPR_READY_OUT, 0, 0, &patient, &ready, NULL) &&
           ready == SPR_READY_OUT;
}

/* Everything from offset to the end of the stream. */
static GString *read_all(SprSupervisor *client, guint64 id, SprStream stream, guint64 offset)
{
    GString *all = g_string_new(NULL);
    char piece[10000];
    gsize count = 1;
    while (count > 0) {
        cr_assert(spr_process_read(client, id, stream, true, &offset, piece, sizeof piece, &count,
                                   &patient, NULL));
        g_string_append_len(all, piece, (gssize)count);
    }
    return all;
}

static void expect_all(SprSupervisor *client, guint64 id, SprStream stream, const char *wanted)
{
    GString *all = read_all(client, id, stream, 0);
    cr_expect_str_eq(all->str, wanted);
    g_string_free(all, TRUE);
}

static void expect_not_found(guint64 id)
{
    SprProcessInfo info;
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_find(supervisor, id, &patient, &info, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_FOUND, "process-not-found"));
}

Test(process, output_and_code_are_there_after_the_end_and_as_often_as_asked)
{
    guint64 id = spawn(NULL, "echo out; echo err >&2; exit 42");
    for (int i = 0; i < 3; i++) {
        SprExit result = wait_for(id);
        cr_expect(result.exit_code == 42 && result.flags == 0 && result.out_bytes == 4);
        expect_all(supervisor, id, SPR_STREAM_OUT, "out\n");
        expect_all(supervisor, id, SPR_STREAM_ERR, "err\n");
    }
}

Test(process, it_outlives_its_host_and_another_reads_it_from_the_start)
{
    int tell[2];
    cr_assert(pipe(tell) == 0);
    pid_t host = fork();
    if (host == 0) {
        supervisor = sandbox_connect(&sandbox);
        g_autofree char *name = spr_process_name(
            supervisor, spawn(NULL, "for i in $(seq 1 20000); do echo line $i; done; exit 9"));
        cr_assert(write(tell[1], name, strlen(name)) > 0);
        pause();
    }
    char name[100] = "";
    cr_assert(read(tell[0], name, sizeof name - 1) > 0);
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);

    guint64 id;
    cr_assert(spr_process_parse_name(supervisor, name, &id, NULL));
    GString *wanted = g_string_new(NULL), *got = read_all(supervisor, id, SPR_STREAM_OUT, 0);
    for (int i = 1; i <= 20000; i++)
        g_string_append_printf(wanted, "line %d\n", i);
    cr_expect(g_string_equal(wanted, got));
    cr_expect_eq(wait_for(id).exit_code, 9);
    g_string_free(wanted, TRUE);
    g_string_free(got, TRUE);
}

Test(process, a_name_of_another_life_is_not_found)
{
    guint64 id;
    g_autoptr(GError) error = NULL;
    cr_expect(
        !spr_process_parse_name(supervisor, "0123456789abcdef0123456789abcdef-1", &id, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_FOUND, "process-not-found"));
    cr_expect(!spr_process_parse_name(supervisor, "nonsense", &id, NULL));
    expect_not_found(77);
}

Test(process, the_newest_bytes_are_kept_and_the_rest_is_counted)
{
    static const guint64 limits[] = {1, 4096, 65536, 100000};
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        SprSpawn how = {.retain_bytes = limits[i]};
        guint64 id = spawn(&how, "seq 1 100000");
        wait_for(id);
        SprProcessInfo info;
        cr_assert(spr_process_find(supervisor, id, &patient, &info, NULL));
        cr_expect_eq(info.out.end, 588895);
        cr_expect_eq(info.out.end - info.out.start, limits[i]);
        GString *kept = read_all(supervisor, id, SPR_STREAM_OUT, 0);
        cr_expect(kept->len == limits[i] &&
                  g_str_has_suffix("99999\n100000\n", kept->str + MAX(kept->len, 13) - 13));
        g_string_free(kept, TRUE);
    }
}

Test(process, by_default_a_mebibyte_is_kept)
{
    guint64 id = spawn(NULL, "head -c 3000000 /dev/zero");
    wait_for(id);
    SprProcessInfo info;
    cr_assert(spr_process_find(supervisor, id, &patient, &info, NULL));
    cr_expect(info.out.end == 3000000 && info.out.start == 3000000 - (1 << 20));
}

Test(process, keeping_nothing_holds_nobody_back)
{
    SprSpawn how = {.retain_bytes = SPR_RETAIN_NONE};
    guint64 id = spawn(&how, "head -c 20000000 /dev/zero");
    SprExit result = wait_for(id);
    cr_expect(result.exit_code == 0 && result.out_bytes == 20000000);
    expect_all(supervisor, id, SPR_STREAM_OUT, "");
}

Test(process, all_of_them_together_have_a_limit_and_ended_ones_go_first)
{
    SprSpawn how = {.retain_bytes = 16 << 20};
    guint64 first = spawn(&how, "head -c 16777216 /dev/zero");
    wait_for(first);
    SprProcessInfo info;
    cr_assert(spr_process_find(supervisor, first, &patient, &info, NULL));
    cr_expect_eq(info.out.start, 0);
    for (int i = 0; i < 4; i++)
        wait_for(spawn(&how, "head -c 16777216 /dev/zero"));
    cr_assert(spr_process_find(supervisor, first, &patient, &info, NULL));
    cr_expect(info.out.start == 16777216 && info.out.end == 16777216);
    cr_expect(!is_own_build() || resident_kib(sandbox.supervisor) < 70 * 1024);
}

Test(process, one_that_is_held_back_loses_nothing)
{
    SprSpawn how = {.retain_bytes = 10000, .holds = true};
    guint64 id = spawn(&how, "seq 1 100000");
    g_usleep(100000);
    SprExit result;
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_wait(supervisor, id, NULL, &result, &error));
    cr_expect(spr_error_is(error, SPR_E_WOULD_BLOCK, NULL), "it waits for a reader");
    GString *all = read_all(supervisor, id, SPR_STREAM_OUT, 0);
    cr_expect(all->len == 588895 && g_str_has_prefix(all->str, "1\n2\n") &&
              g_str_has_suffix(all->str, "\n100000\n"));
    cr_expect_eq(wait_for(id).exit_code, 0);
    g_string_free(all, TRUE);
}

/* With O_DIRECT on a pipe a read gets one packet, and loses what it has no room for. */
Test(process, packets_are_kept_whole)
{
    static const SprSpawn hows[] = {{.retain_bytes = 10000, .holds = true},
                                    {.retain_bytes = 100000, .holds = true},
                                    {.retain_bytes = 1 << 20},
                                    {.retain_bytes = 10000}};
    g_autoptr(GString) expected = g_string_new(NULL);
    for (unsigned i = 0; i < 100000; i++)
        g_string_append_printf(expected, "%05u\n", i);
    for (gsize i = 0; i < G_N_ELEMENTS(hows); i++) {
        guint64 id = spawn(&hows[i], "seq -w 0 99999 | dd bs=1500 iflag=fullblock oflag=direct");
        if (!hows[i].holds)
            wait_for(id);
        guint64 start = hows[i].retain_bytes < 100000 && !hows[i].holds ? 590000 : 0;
        GString *all = read_all(supervisor, id, SPR_STREAM_OUT, start);
        cr_expect_eq(wait_for(id).exit_code, 0);
        cr_expect_str_eq(all->str, expected->str + start, "%zu", i);
        g_string_free(all, TRUE);
    }
}

Test(process, a_read_waits_for_the_first_byte_and_a_wait_for_the_end)
{
    guint64 id = spawn(NULL, "sleep 0.3; echo late; sleep 0.3"), offset = 0;
    char buffer[10];
    gsize count;
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_read(supervisor, id, SPR_STREAM_OUT, false, &offset, buffer, 10, &count,
                                NULL, &error));
    cr_expect(spr_error_is(error, SPR_E_WOULD_BLOCK, NULL));
    cr_assert(wait_for_output(id));
    cr_assert(spr_process_read(supervisor, id, SPR_STREAM_OUT, false, &offset, buffer, 10, &count,
                               &patient, NULL));
    cr_expect(count == 5 && offset == 5);
    SprWait soon = spr_wait_for(20);
    SprExit result;
    g_clear_error(&error);
    cr_expect(!spr_process_wait(supervisor, id, &soon, &result, &error));
    cr_expect(spr_error_is(error, SPR_E_TIMEOUT, NULL));
    cr_expect_eq(wait_for(id).exit_code, 0);
}

Test(process, a_watch_tells_what_is_ready)
{
    static const guint all = SPR_READY_END | SPR_READY_OUT | SPR_READY_ERR;
    SprSpawn how = {.feeds_stdin = true};
    guint64 id = spawn(&how, "exec 2>/dev/null; read x; echo $x; exec >/dev/null; read x");
    guint ready = 99;
    gsize written;
    cr_assert(spr_process_watch(supervisor, id, all & ~SPR_READY_ERR, 0, 0, NULL, &ready, NULL));
    cr_expect_eq(ready, 0);
    cr_assert(spr_process_write(supervisor, id, "one\n", 4, &written, &patient, NULL));
    cr_assert(wait_for_output(id));
    cr_assert(spr_process_watch(supervisor, id, all, 4, 0, &patient, &ready, NULL));
    cr_expect((ready & ~(guint)SPR_READY_OUT) == SPR_READY_ERR, "it closed its errors");
    cr_assert(spr_process_watch(supervisor, id, SPR_READY_END, 0, 0, NULL, &ready, NULL));
    cr_expect_eq(ready, 0);
    cr_assert(spr_process_close_stdin(supervisor, id, &patient, NULL));
    cr_assert(spr_process_watch(supervisor, id, SPR_READY_END, 0, 0, &patient, &ready, NULL));
    cr_expect_eq(ready, SPR_READY_END);
    wait_for(id);
}

Test(process, one_that_ended_while_held_back_loses_nothing_either)
{
    SprSpawn how = {.retain_bytes = 1000, .holds = true};
    guint64 id = spawn(&how, "seq 1 2000; exit 3");
    cr_expect_eq(wait_for(id).exit_code, 3);
    GString *all = read_all(supervisor, id, SPR_STREAM_OUT, 0);
    cr_expect(all->len == 8893 && g_str_has_suffix(all->str, "\n2000\n"));
    g_string_free(all, TRUE);
}

Test(process, input_is_whole_and_ends_when_it_is_closed)
{
    SprSpawn how = {.feeds_stdin = true, .retain_bytes = 4 << 20};
    guint64 id = spawn(&how, "cat; sleep 0.1; echo end");
    g_autofree char *data = g_malloc(1 << 20);
    for (gsize i = 0; i < 1 << 20; i++)
        data[i] = (char)(i * 7 >> 3);
    gsize written;
    cr_assert(spr_process_write(supervisor, id, data, 1 << 20, &written, &patient, NULL));
    cr_expect_eq(written, 1 << 20);
    cr_assert(spr_process_write(supervisor, id, "", 0, &written, &patient, NULL));
    cr_assert(spr_process_close_stdin(supervisor, id, &patient, NULL));
    cr_assert(spr_process_close_stdin(supervisor, id, &patient, NULL), "twice is fine");
    GString *all = read_all(supervisor, id, SPR_STREAM_OUT, 0);
    cr_expect(all->len == (1 << 20) + 4 && memcmp(all->str, data, 1 << 20) == 0);
    g_string_free(all, TRUE);
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_write(supervisor, id, "x", 1, &written, &patient, &error));
    cr_expect(spr_error_is(error, SPR_E_CONFLICT, "stdin-closed"));
}

Test(process, input_that_nobody_reads_waits_no_longer_than_asked)
{
    SprSpawn how = {.feeds_stdin = true};
    guint64 id = spawn(&how, "sleep 100");
    g_autofree char *data = g_malloc0(4 << 20);
    gsize written = 0;
    SprWait soon = spr_wait_for(200);
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_write(supervisor, id, data, 4 << 20, &written, &soon, &error));
    cr_expect(spr_error_is(error, SPR_E_TIMEOUT, NULL) && written >= 65536 && written < 1 << 20);
    g_clear_error(&error);
    cr_expect(!spr_process_write(supervisor, id, data, 10, &written, NULL, &error));
    cr_expect(spr_error_is(error, SPR_E_WOULD_BLOCK, NULL));
    bool confirmed;
    cr_expect(
        spr_process_kill(supervisor, id, SIGKILL, SPR_SCOPE_TREE, 0, &patient, &confirmed, NULL));
    g_clear_error(&error);
    cr_expect(!spr_process_write(supervisor, id, data, 10, &written, &patient, &error));
    cr_expect(spr_error_is(error, SPR_E_CONFLICT, "stdin-closed"));
}

static bool try_kill(guint64 id, int number, SprScope scope, gint64 grace_ms)
{
    bool confirmed = false;
    g_autoptr(GError) error = NULL;
    bool killed =
        spr_process_kill(supervisor, id, number, scope, grace_ms, &patient, &confirmed, &error);
    cr_expect(killed ? confirmed : spr_error_is(error, SPR_E_NOT_FOUND, "process-ended"));
    return killed;
}

Test(process, a_kill_reaches_its_scope_and_nothing_else)
{
    need_subreaper();
    g_autofree char *word = unique_word();
    g_autofree char *text = g_strdup_printf("sh -c 'echo; sleep 100; : %s' & "
                                            "setsid sh -c 'echo; sleep 100; : %s' & exec sleep 100",
                                            word, word);
    guint64 id = spawn(NULL, text), up = 0;
    while (up < 2) {
        char line[2];
        gsize count;
        cr_assert(spr_process_read(supervisor, id, SPR_STREAM_OUT, false, &up, line, sizeof line,
                                   &count, &patient, NULL));
    }
    cr_expect(try_kill(id, SIGKILL, SPR_SCOPE_LEADER, 0));
    cr_expect_eq(wait_until_processes(word, 2), 2);
    SprExit result = wait_for(id);
    cr_expect(result.exit_code == 137 && result.flags == SPR_EXIT_KILLED);
    cr_expect(!try_kill(id, SIGKILL, SPR_SCOPE_LEADER, 0), "the leader is gone");
    cr_expect(try_kill(id, SIGKILL, SPR_SCOPE_GROUP, 0));
    cr_expect_eq(wait_until_processes(word, 1), 1);
    cr_expect(try_kill(id, SIGKILL, SPR_SCOPE_TREE, 0));
    cr_expect_eq(count_processes(word), 0);
    cr_expect(!try_kill(id, SIGKILL, SPR_SCOPE_TREE, 0), "nothing is left");
}

/* Then orphans are somebody else's, and that no child is left proves nothing. */
Test(process, where_no_process_is_a_subreaper_a_kill_is_unconfirmed)
{
    if (!g_getenv("SPR_TEST_RUNNER")) {
        tear_down(); /* a test that is skipped is not finished */
        cr_skip_test("this needs the emulator");
    }
    bool confirmed = true;
    guint64 id = spawn(NULL, "sleep 100");
    cr_assert(
        spr_process_kill(supervisor, id, SIGKILL, SPR_SCOPE_TREE, 0, &patient, &confirmed, NULL));
    cr_expect_not(confirmed);
}

Test(process, a_signal_that_ends_the_leader_is_a_kill)
{
    need_subreaper();
    guint64 id = spawn(NULL, "exec sleep 100");
    cr_expect(try_kill(id, SIGTERM, SPR_SCOPE_TREE, 0));
    SprExit result = wait_for(id);
    cr_expect(result.exit_code == 143 && result.term_signal == 15 &&
              result.flags == SPR_EXIT_KILLED);
    id = spawn(NULL, "trap '' TERM; echo up; while :; do sleep 0.1; done");
    cr_assert(wait_for_output(id));
    cr_expect(try_kill(id, SIGTERM, SPR_SCOPE_TREE, 100));
    result = wait_for(id);
    cr_expect(result.exit_code == 137 && result.flags == SPR_EXIT_KILLED);
}

Test(process, a_kill_that_says_yes_shows_in_the_result_however_close_the_end_is)
{
    need_subreaper();
    int yes = 0;
    for (int i = 0; i < 200; i++) {
        guint64 id = spawn(NULL, "exec sleep 0.01");
        if (i % 2 == 0) /* the others are killed at once, which is early even on a loaded machine */
            g_usleep((gulong)g_random_int_range(0, 25000));
        bool killed = try_kill(id, SIGKILL, SPR_SCOPE_TREE, 0);
        SprExit result = wait_for(id);
        cr_expect_eq(killed, (result.flags & SPR_EXIT_KILLED) != 0, "round %d", i);
        cr_expect_eq(killed, result.exit_code == 137, "round %d", i);
        yes += killed;
    }
    cr_expect(yes > 0);
}

static bool collect(void *ctx, const SprProcessInfo *info)
{
    g_array_append_val((GArray *)ctx, *info);
    return true;
}

Test(process, the_list_shows_what_is_there)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(SprProcessInfo));
    guint64 ids[70];
    for (int i = 0; i < 70; i++)
        ids[i] = spawn(NULL, i == 69 ? "exit 3" : "sleep 100");
    wait_for(ids[69]);
    cr_assert(spr_process_list(supervisor, collect, all, &patient, NULL));
    cr_assert_eq(all->len, 70);
    for (int i = 0; i < 70; i++) {
        const SprProcessInfo *info = &g_array_index(all, SprProcessInfo, i);
        cr_expect(info->id == ids[i] && info->ended == (i == 69));
    }
    const SprProcessInfo *last = &g_array_index(all, SprProcessInfo, 69);
    cr_expect_str_eq(last->command, "exit 3");
    cr_expect(last->exit.exit_code == 3 && last->started_ms > 1600000000000);
}

Test(process, what_is_forgotten_is_gone_and_what_runs_is_not_forgotten)
{
    need_subreaper();
    guint64 id = spawn(NULL, "sleep 100");
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_process_forget(supervisor, id, &patient, &error));
    cr_expect(spr_error_is(error, SPR_E_CONFLICT, "process-runs"));
    cr_expect(try_kill(id, SIGKILL, SPR_SCOPE_TREE, 0));
    wait_for(id);
    cr_expect(spr_process_forget(supervisor, id, &patient, NULL));
    expect_not_found(id);
}

Test(process, only_the_last_ended_ones_are_kept)
{
    guint64 first = spawn(NULL, "true"), id = first;
    wait_for(first);
    for (int i = 0; i < 64; i++)
        wait_for(id = spawn(NULL, "true"));
    expect_not_found(first);
    cr_expect_eq(wait_for(id).exit_code, 0);
}

Test(process, one_that_cannot_start_is_an_error_and_leaves_no_trace)
{
    SprCommand command = {.command = "true", .cwd = "/no/such"};
    SprSpawn request = {.command = &command};
    guint64 id;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(SprProcessInfo));
    cr_expect(!spr_process_spawn(supervisor, &request, &patient, &id, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_FOUND, "bad-cwd"));
    cr_assert(spr_process_list(supervisor, collect, all, &patient, NULL));
    cr_expect_eq(all->len, 0);
}

Test(process, one_that_cannot_be_run_is_kept_with_its_code_and_the_reason_for_everybody)
{
    g_autoptr(SprSupervisor) other = sandbox_connect(&sandbox);
    const char *const missing[] = {"/no/such/program", "x", NULL}, *const file[] = {"/etc", NULL};
    const char *const *const argvs[] = {missing, file};
    static const char *const reasons[] = {"sprov: /no/such/program: No such file or directory\n",
                                          "sprov: /etc: Permission denied\n"};
    for (int i = 0; i < 4; i++) {
        bool on_terminal = i >= 2;
        SprCommand command = {
            .argv = argvs[i % 2], .rows = on_terminal ? 24 : 0, .columns = on_terminal ? 80 : 0};
        SprSpawn request = {.command = &command, .feeds_stdin = true, .holds = i == 1};
        SprProcessInfo info;
        guint64 id;
        gsize written = 0;
        g_autoptr(GError) error = NULL;
        cr_assert(spr_process_spawn(supervisor, &request, &patient, &id, NULL));
        SprExit result = wait_for(id);
        cr_expect(result.exit_code == 127 - i % 2 && result.flags == 0 && result.term_signal == 0);
        cr_expect_eq(on_terminal ? result.out_bytes : result.err_bytes, strlen(reasons[i % 2]));
        expect_all(other, id, on_terminal ? SPR_STREAM_OUT : SPR_STREAM_ERR, reasons[i % 2]);
        expect_all(other, id, on_terminal ? SPR_STREAM_ERR : SPR_STREAM_OUT, "");
        cr_assert(spr_process_find(other, id, &patient, &info, NULL));
        cr_expect(info.ended && info.pid == 0 && info.exit.exit_code == result.exit_code);
        cr_expect(!spr_process_write(other, id, "x", 1, &written, &patient, &error));
        cr_expect(spr_error_is(error, SPR_E_CONFLICT, "stdin-closed"));
        cr_expect(!try_kill(id, SIGKILL, SPR_SCOPE_TREE, 0));
        cr_expect(spr_process_forget(other, id, &patient, NULL));
        expect_not_found(id);
    }
    cr_expect_eq(wait_for(spawn(NULL, "exit 4")).exit_code, 4);
}

Test(process, a_deadline_ends_it_although_nobody_waits)
{
    need_subreaper();
    SprCommand command = {.command = "sleep 100", .deadline_ms = 100};
    SprSpawn request = {.command = &command};
    guint64 id;
    cr_assert(spr_process_spawn(supervisor, &request, &patient, &id, NULL));
    SprExit result = wait_for(id);
    cr_expect(result.exit_code == 137);
    cr_expect_eq(result.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED);
}

Test(process, a_terminal_takes_input_and_a_new_size)
{
    SprCommand command = {
        .command = "read x; stty size; echo got $x; cat; echo end", .rows = 24, .columns = 80};
    SprSpawn request = {.command = &command, .feeds_stdin = true};
    guint64 id;
    gsize written;
    cr_assert(spr_process_spawn(supervisor, &request, &patient, &id, NULL));
    cr_assert(spr_process_resize(supervisor, id, 50, 132, &patient, NULL));
    cr_assert(spr_process_write(supervisor, id, "hello\n", 6, &written, &patient, NULL));
    cr_assert(spr_process_close_stdin(supervisor, id, &patient, NULL));
    cr_expect_eq(wait_for(id).exit_code, 0);
    GString *all = read_all(supervisor, id, SPR_STREAM_OUT, 0);
    cr_expect(strstr(all->str, "50 132\r\ngot hello\r\n") && g_str_has_suffix(all->str, "end\r\n"));
    g_string_free(all, TRUE);
    g_autoptr(GError) error = NULL;
    cr_expect_not(spr_process_resize(supervisor, id, 50, 132, &patient, &error));
    cr_expect(spr_error_is(error, SPR_E_CONFLICT, "no-terminal"));
    cr_expect(strstr(error->message, "has ended"), "%s", error->message);
}

typedef struct {
    guint64 id;
    SprExit result;
} Waiter;

static gpointer wait_on_thread(gpointer data)
{
    Waiter *waiter = data;
    waiter->result = wait_for(waiter->id);
    return NULL;
}

Test(process, many_wait_for_one_and_each_is_told)
{
    guint64 id = spawn(NULL, "sleep 0.2; exit 5");
    Waiter waiters[8];
    GThread *threads[8];
    for (int i = 0; i < 8; i++) {
        waiters[i].id = id;
        threads[i] = g_thread_new("waiter", wait_on_thread, &waiters[i]);
    }
    for (int i = 0; i < 8; i++) {
        g_thread_join(threads[i]);
        cr_expect_eq(waiters[i].result.exit_code, 5);
    }
}
