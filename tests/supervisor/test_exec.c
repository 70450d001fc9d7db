/* Commands as a client sees them: streams, exit codes, start failures, input, many at once. */
#include "fixture.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;

static void set_up(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
}

static void tear_down(void)
{
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
}

TestSuite(exec, .init = set_up, .fini = tear_down, .timeout = 120);

Test(exec, streams_are_exact_and_apart)
{
    g_auto(Ran) ran = run_shell(supervisor, "printf out; printf 'er\\000r' >&2; exit 7");
    cr_assert(ran.ok);
    cr_expect(ran.exit.exit_code == 7 && ran.exit.term_signal == 0 && ran.exit.flags == 0);
    cr_expect_str_eq(ran.out->str, "out");
    cr_expect(ran.err->len == 4 && memcmp(ran.err->str, "er\0r", 4) == 0);
    cr_expect(ran.exit.out_bytes == 3 && ran.exit.err_bytes == 4);
}

Test(exec, exit_codes_are_exact)
{
    static const int codes[] = {0, 1, 2, 42, 126, 127, 128, 255};
    for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
        g_autofree char *text = g_strdup_printf("exit %d", codes[i]);
        g_auto(Ran) ran = run_shell(supervisor, text);
        cr_expect(ran.ok && ran.exit.exit_code == codes[i]);
    }
}

Test(exec, a_signal_that_a_command_gives_itself_is_no_kill)
{
    g_auto(Ran) kill9 = run_shell(supervisor, "kill -9 $$");
    cr_expect(kill9.exit.exit_code == 137 && kill9.exit.term_signal == 9 && kill9.exit.flags == 0);
    g_auto(Ran) term = run_shell(supervisor, "kill -15 $$");
    cr_expect(term.exit.exit_code == 143 && term.exit.term_signal == 15 && term.exit.flags == 0);
}

Test(exec, arguments_reach_the_command_byte_for_byte)
{
    const char *const argv[] = {"printf", "%s|", "a b", "$HOME",    "`id`", "x'y",
                                "\n new", "",    "-n",  "\xff\xfe", NULL};
    g_auto(Ran) ran = run_command(supervisor, &(SprCommand){.argv = argv}, NULL, NULL);
    cr_expect_str_eq(ran.out->str, "a b|$HOME|`id`|x'y|\n new||-n|\xff\xfe|");
}

Test(exec, environment_and_directory_are_the_request_s)
{
    g_setenv("SPR_TEST_OUTER", "outer", TRUE);
    Sandbox other = sandbox_serve();
    g_autoptr(SprSupervisor) client = sandbox_connect(&other);
    const char *const env[] = {"A=x\ny \"$d\"", "A=last", "EMPTY=", "SPR_TEST_OUTER", NULL};
    const char *const secret[] = {"S=secret", NULL};
    SprCommand command = {.command = "printf '%s,%s,%s,%s,' \"$A\" \"$EMPTY\" \"$S\" "
                                     "\"${SPR_TEST_OUTER-unset}\"; pwd",
                          .env = env,
                          .secret_env = secret,
                          .cwd = "/usr/bin"};
    g_auto(Ran) ran = run_command(client, &command, NULL, NULL);
    cr_expect_str_eq(ran.out->str, "last,,secret,unset,/usr/bin\n");
    g_auto(Ran) plain = run_shell(client, "echo $SPR_TEST_OUTER");
    cr_expect_str_eq(plain.out->str, "outer\n");
    sandbox_stop(&other);
}

Test(exec, what_cannot_start_says_why)
{
    const char *const missing[] = {"/no/such/program", NULL}, *const file[] = {"/etc/passwd", NULL};
    g_auto(Ran) none = run_command(supervisor, &(SprCommand){.argv = missing}, NULL, NULL);
    cr_expect(none.ok && none.exit.exit_code == 127 && strstr(none.err->str, "/no/such/program"));
    g_auto(Ran) denied = run_command(supervisor, &(SprCommand){.argv = file}, NULL, NULL);
    cr_expect(denied.ok && denied.exit.exit_code == 126);

    g_auto(Ran) cwd =
        run_command(supervisor, &(SprCommand){.command = "true", .cwd = "/no/dir"}, NULL, NULL);
    cr_expect(!cwd.ok && spr_error_is(cwd.error, SPR_E_NOT_FOUND, "bad-cwd"));
    cr_expect(strstr(cwd.error->message, "/no/dir"));
    g_auto(Ran) user =
        run_command(supervisor, &(SprCommand){.command = "true", .user = "nobody!"}, NULL, NULL);
    cr_expect(!user.ok && spr_error_is(user.error, SPR_E_NOT_FOUND, "no-such-user"));
    cr_expect(none.out->len + denied.out->len + cwd.out->len + user.err->len == 0);
}

Test(exec, a_request_that_makes_no_sense_is_refused_before_it_is_sent)
{
    const char *const nothing[] = {NULL}, *const bad_env[] = {"=x", NULL};
    g_auto(Ran) empty = run_command(supervisor, &(SprCommand){.argv = nothing}, NULL, NULL);
    cr_expect(spr_error_is(empty.error, SPR_E_INVALID_ARGUMENT, NULL));
    g_auto(Ran) env =
        run_command(supervisor, &(SprCommand){.command = "true", .env = bad_env}, NULL, NULL);
    cr_expect(spr_error_is(env.error, SPR_E_INVALID_ARGUMENT, NULL));
    g_autofree char *huge = g_strnfill(3 << 20, 'x');
    g_auto(Ran) big = run_shell(supervisor, huge);
    cr_expect(spr_error_is(big.error, SPR_E_INVALID_ARGUMENT, "too-long"));
    g_autofree const char **many = g_new0(const char *, 70001);
    for (int i = 0; i < 70000; i++)
        many[i] = "x";
    g_auto(Ran) words = run_command(supervisor, &(SprCommand){.argv = many}, NULL, NULL);
    cr_expect(spr_error_is(words.error, SPR_E_INVALID_ARGUMENT, "too-long"));
    cr_expect(strstr(words.error->message, "70000 arguments"), "%s", words.error->message);
    huge[200 * 1024] = '\0';
    const char *const argv[] = {"true", huge, NULL};
    g_auto(Ran) kernel = run_command(supervisor, &(SprCommand){.argv = argv}, NULL, NULL);
    cr_expect(spr_error_is(kernel.error, SPR_E_INVALID_ARGUMENT, "too-long"));
    huge[100 * 1024] = '\0';
    g_auto(Ran) fits = run_command(supervisor, &(SprCommand){.argv = argv}, NULL, NULL);
    cr_expect(fits.ok && fits.exit.exit_code == 0);
}

Test(exec, another_user_has_its_ids_groups_and_home)
{
    if (getuid() != 0)
        cr_skip_test("changing users needs root");
    SprCommand command = {.command = "id -u; id -g; id -G; echo $HOME", .user = "nobody"};
    g_auto(Ran) ran = run_command(supervisor, &command, NULL, NULL);
    cr_expect_str_eq(ran.out->str, "65534\n65534\n65534\n/nonexistent\n");
    command.user = "4711:12";
    g_auto(Ran) numbers = run_command(supervisor, &command, NULL, NULL);
    cr_expect_str_eq(numbers.out->str, "4711\n12\n12\n/\n");
    const char *const env[] = {"HOME=/mine", NULL};
    command.env = env;
    g_auto(Ran) home = run_command(supervisor, &command, NULL, NULL);
    cr_expect(g_str_has_suffix(home.out->str, "/mine\n"));
}

Test(exec, without_root_there_is_no_other_user)
{
    pid_t relay;
    Sandbox other = sandbox_serve_as(54321, 0);
    g_autoptr(SprSupervisor) client = sandbox_connect_through_relay(&other, &relay);
    SprCommand command = {.command = "id -u", .user = "54321:54321"};
    g_auto(Ran) own = run_command(client, &command, NULL, NULL);
    cr_expect_str_eq(own.out->str, "54321\n");
    command.user = "root";
    g_auto(Ran) root = run_command(client, &command, NULL, NULL);
    cr_expect(!root.ok && spr_error_is(root.error, SPR_E_UNSUPPORTED, "user-change"));
    sandbox_stop(&other);
}

/* Whoever may write there could put a socket of that name before the supervisor does. */
Test(exec, a_relay_turns_away_from_a_socket_of_another_user)
{
    pid_t relay;
    int status;
    if (getuid() != 0)
        cr_skip_test("this needs root");
    Sandbox other = sandbox_serve_as(54321, 0);
    close(sandbox_socket(&other));
    g_autofree char *theirs = g_strdup_printf("%s/54321.54321.sock", other.directory);
    g_autofree char *name = g_strdup_printf("%s/0.0.sock", other.directory);
    cr_assert(rename(theirs, name) == 0);
    other.uid = 0;
    int fd = sandbox_relay(&other, &relay);
    char byte;
    cr_expect(read(fd, &byte, 1) == 0);
    cr_expect(waitpid(relay, &status, 0) == relay && WEXITSTATUS(status) == 125);
    close(fd);
    sandbox_stop(&other);
}

Test(exec, a_peer_of_another_user_is_turned_away)
{
    Sandbox other = sandbox_serve_as(54321, 0);
    int fd = sandbox_socket(&other);
    char byte;
    cr_expect(read(fd, &byte, 1) <= 0);
    close(fd);
    sandbox_stop(&other);
}

Test(exec, limits_are_those_the_supervisor_was_started_with)
{
    g_autofree char *here = NULL;
    cr_assert(g_spawn_command_line_sync("sh -c 'ulimit -n'", &here, NULL, NULL, NULL));
    g_auto(Ran) ran = run_shell(supervisor, "ulimit -n");
    cr_expect_str_eq(ran.out->str, here);
}

Test(exec, input_that_is_not_given_is_at_its_end)
{
    g_auto(Ran) ran = run_shell(supervisor, "cat; read x || echo eof");
    cr_expect_str_eq(ran.out->str, "eof\n");
}

/* rg and others search a pipe, and the directory otherwise. */
Test(exec, input_that_is_not_given_is_no_pipe)
{
    g_auto(Ran) ran = run_shell(supervisor, "readlink /proc/self/fd/0");
    cr_expect_str_eq(ran.out->str, "/dev/null\n");
}

typedef struct {
    gsize left;
    guint32 state;
    bool pause; /* says AGAIN before every piece */
    int fd;
} Stream;

static void next_bytes(Stream *stream, guint8 *bytes, gsize size)
{
    for (gsize i = 0; i < size; i++) {
        stream->state = stream->state * 1664525 + 1013904223;
        bytes[i] = (guint8)(stream->state >> 24);
    }
}

static SprSourceStatus give(void *ctx, void *buffer, gsize room, gsize *count)
{
    Stream *stream = ctx;
    if (stream->fd >= 0 && (stream->pause = !stream->pause))
        return SPR_SOURCE_AGAIN;
    *count = MIN(room, stream->left);
    next_bytes(stream, buffer, *count);
    stream->left -= *count;
    return SPR_SOURCE_OK;
}

static SprFlow check(void *ctx, const void *data, gsize size)
{
    Stream *stream = ctx;
    g_autofree guint8 *wanted = g_malloc(size);
    next_bytes(stream, wanted, size);
    cr_assert(memcmp(wanted, data, size) == 0);
    stream->left -= size;
    return SPR_FLOW_CONTINUE;
}

static void pass_through_cat(gsize size, bool with_pauses)
{
    int always = eventfd(1, EFD_CLOEXEC);
    Stream in = {.left = size, .fd = with_pauses ? always : -1}, out = {.left = size};
    SprSource source = {&in, in.fd, give};
    SprSink sink = {&out, check};
    SprWait wait = spr_wait_for(60000);
    SprExit result;
    g_autoptr(GError) error = NULL;
    cr_assert(spr_supervisor_exec(supervisor, &(SprCommand){.command = "cat"}, &source, &sink, NULL,
                                  &wait, &result, &error));
    cr_expect(result.exit_code == 0 && result.out_bytes == size && out.left == 0);
    close(always);
}

Test(exec, input_comes_back_from_cat_byte_for_byte)
{
    static const gsize sizes[] = {0, 1, 4095, 4096, 65535, 65536, 65537, 1 << 20, 64 << 20};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++)
        pass_through_cat(sizes[i], false);
    pass_through_cat(300000, true);
}

Test(exec, input_that_nobody_reads_is_let_go)
{
    Stream in = {.left = 64 << 20, .fd = -1};
    SprSource source = {&in, -1, give};
    g_auto(Ran) ran =
        run_command(supervisor, &(SprCommand){.command = "head -c 3 | wc -c"}, &source, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 0);
    cr_expect_str_eq(ran.out->str, "3\n");
    cr_expect(in.left > 32 << 20);
}

static SprFlow count_bytes(void *ctx, const void *data, gsize size)
{
    gsize *count = ctx;
    const guint8 *bytes = data;
    for (gsize i = 0; i < size; i += 997)
        cr_assert(bytes[i] == "0123456789abcdef"[(*count + i) % 16]);
    *count += size;
    return SPR_FLOW_CONTINUE;
}

Test(exec, both_streams_carry_64_mib_at_once)
{
    gsize out = 0, err = 0;
    SprSink out_sink = {&out, count_bytes}, err_sink = {&err, count_bytes};
    SprWait wait = spr_wait_for(100000);
    SprExit result;
    SprCommand command = {.command =
                              "s=0123456789abcdef; s=$s$s$s$s$s$s$s$s; s=$s$s$s$s$s$s$s$s; "
                              "f() { yes $s$s$s$s$s$s$s$s | tr -d '\\n' | head -c 67108864; }; "
                              "f >&2 & f; wait"};
    cr_assert(spr_supervisor_exec(supervisor, &command, NULL, &out_sink, &err_sink, &wait, &result,
                                  NULL));
    cr_expect(result.exit_code == 0);
    cr_expect(out == 64 << 20 && err == 64 << 20);
}

Test(exec, output_is_there_before_the_command_has_ended)
{
    g_auto(Ran) ran = run_shell(supervisor, "printf a; sleep 0.2; printf b");
    cr_expect_str_eq(ran.out->str, "ab");
    cr_expect(ran.exit.duration_us >= 200000);
}

static SprFlow stop(void *ctx, const void *data, gsize size)
{
    return SPR_FLOW_STOP;
}

Test(exec, a_sink_that_stops_ends_the_command)
{
    g_autofree char *word = unique_word();
    g_autofree char *text = g_strdup_printf("exec -a %s yes", word);
    const char *const argv[] = {"bash", "-c", text, NULL};
    SprSink sink = {NULL, stop};
    SprWait wait = spr_wait_for(30000);
    SprExit result;
    g_autoptr(GError) error = NULL;
    cr_expect(!spr_supervisor_exec(supervisor, &(SprCommand){.argv = argv}, NULL, &sink, NULL,
                                   &wait, &result, &error));
    cr_expect(spr_error_is(error, SPR_E_REFUSED, NULL) && (result.flags & SPR_EXIT_KILLED));
    cr_expect(count_processes(word) == 0);
}

Test(exec, background_children_live_on_and_their_output_goes_nowhere)
{
    need_subreaper();
    g_autofree char *word = unique_word();
    g_autofree char *text =
        g_strdup_printf("(while :; do echo noise; sleep 0.01; done; : %s) & echo done", word);
    const char *const argv[] = {"sh", "-c", text, word, NULL};
    gint64 start = g_get_monotonic_time();
    g_auto(Ran) ran = run_command(supervisor, &(SprCommand){.argv = argv}, NULL, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 0 && ran.exit.flags == 0);
    cr_expect(strstr(ran.out->str, "done\n"));
    cr_expect(g_get_monotonic_time() - start < 20 * G_USEC_PER_SEC);
    cr_expect(count_processes(word) >= 1, "the child is still there");
}

Test(exec, waiting_for_the_background_waits)
{
    need_subreaper();
    SprCommand command = {.command = "(sleep 0.3; echo late) & echo early",
                          .wait_background = true};
    g_auto(Ran) ran = run_command(supervisor, &command, NULL, NULL);
    cr_expect_str_eq(ran.out->str, "early\nlate\n");
}

Test(exec, a_terminal_is_one)
{
    SprCommand command = {.command = "tty; stty size; echo x >&2", .rows = 33, .columns = 77};
    g_auto(Ran) ran = run_command(supervisor, &command, NULL, NULL);
    cr_assert(ran.ok);
    cr_expect(g_str_has_prefix(ran.out->str, "/dev/pts/"));
    cr_expect(strstr(ran.out->str, "33 77\r\nx\r\n"));
    cr_expect(ran.err->len == 0);
}

/* ----------------------------------------------------------------------------- many at once */

typedef struct {
    unsigned number, rounds;
    bool good;
} Caller;

static gpointer call(gpointer data)
{
    Caller *caller = data;
    caller->good = true;
    for (unsigned i = 0; i < caller->rounds; i++) {
        g_autofree char *text = g_strdup_printf("echo %u-%u; echo e%u >&2; exit %u", caller->number,
                                                i, i, caller->number);
        g_autofree char *out = g_strdup_printf("%u-%u\n", caller->number, i);
        g_autofree char *err = g_strdup_printf("e%u\n", i);
        g_auto(Ran) ran = run_shell(supervisor, text);
        caller->good &= ran.ok && ran.exit.exit_code == (int)caller->number &&
                        strcmp(ran.out->str, out) == 0 && strcmp(ran.err->str, err) == 0;
    }
    return NULL;
}

static void call_from_32_threads(unsigned rounds)
{
    Caller callers[32];
    GThread *threads[32];
    for (unsigned i = 0; i < 32; i++) {
        callers[i] = (Caller){.number = i, .rounds = rounds};
        threads[i] = g_thread_new("caller", call, &callers[i]);
    }
    for (unsigned i = 0; i < 32; i++) {
        g_thread_join(threads[i]);
        cr_expect(callers[i].good, "caller %u", i);
    }
}

Test(exec, thirty_two_callers_share_a_connection)
{
    call_from_32_threads(20);
}

Test(exec, a_relay_carries_them_as_well)
{
    pid_t relay;
    spr_supervisor_unref(supervisor);
    supervisor = sandbox_connect_through_relay(&sandbox, &relay);
    call_from_32_threads(5);
    pass_through_cat(16 << 20, false);
    spr_supervisor_unref(g_steal_pointer(&supervisor));
    int status;
    cr_expect(waitpid(relay, &status, 0) == relay && status == 0, "it ends with its client");
}

/* Blocks the first time, until the gate lets one through. */
static SprFlow block_once(void *ctx, const void *data, gsize size)
{
    int *gate = ctx;
    guint64 count;
    if (*gate >= 0)
        cr_assert(read(*gate, &count, sizeof count) == sizeof count);
    *gate = -1;
    return SPR_FLOW_CONTINUE;
}

static gpointer call_with_stuck_sink(gpointer data)
{
    int fd = GPOINTER_TO_INT(data);
    SprSink sink = {&fd, block_once};
    SprWait wait = spr_wait_for(100000);
    SprExit result = {0};
    bool ok =
        spr_supervisor_exec(supervisor, &(SprCommand){.command = "head -c 50000000 /dev/zero"},
                            NULL, &sink, NULL, &wait, &result, NULL);
    return GINT_TO_POINTER(ok && result.out_bytes == 50000000);
}

Test(exec, a_stuck_reader_holds_back_nobody_else)
{
    int gate = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    GThread *stuck[4];
    for (unsigned i = 0; i < 4; i++)
        stuck[i] = g_thread_new("stuck", call_with_stuck_sink, GINT_TO_POINTER(gate));
    call_from_32_threads(3);
    guint64 four = 4;
    cr_assert(write(gate, &four, sizeof four) == sizeof four);
    for (unsigned i = 0; i < 4; i++)
        cr_expect(g_thread_join(stuck[i]) != NULL);
    close(gate);
}

/* As ASan does for a while. */
static bool keeps_freed_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
    return true;
#else
    return false;
#endif
}

/* SPR_TEST_COMMANDS=10000 for the whole of it; growth shows in far fewer. */
Test(exec, thousands_of_commands_leave_nothing_behind, .timeout = 1200)
{
    const char *wanted = g_getenv("SPR_TEST_COMMANDS");
    int commands = wanted ? atoi(wanted) : 1000;
    for (int i = 0; i < 200; i++) {
        g_auto(Ran) ran = run_shell(supervisor, "echo hi");
        cr_assert_str_eq(ran.out->str, "hi\n");
    }
    unsigned own = count_descriptors(getpid()), theirs = count_descriptors(sandbox.supervisor);
    unsigned long memory = resident_kib(sandbox.supervisor), own_memory = resident_kib(getpid());
    unsigned long own_threads = status_number(getpid(), "Threads:");
    const char *const argv[] = {"/bin/true", NULL};
    for (int i = 0; i < commands; i++) {
        g_auto(Ran) ran = run_command(supervisor, &(SprCommand){.argv = argv}, NULL, NULL);
        cr_assert(ran.ok && ran.exit.exit_code == 0);
    }
    cr_expect(count_descriptors(getpid()) <= own + 1);
    cr_expect(count_descriptors(sandbox.supervisor) <= theirs + 4);
    cr_expect_eq(status_number(getpid(), "Threads:"), own_threads);
    g_autofree pid_t *left = supervisor_processes(&sandbox);
    for (int i = 1; left[i]; i++)
        cr_expect(i <= 4, "too many keepers");
    cr_expect(keeps_freed_memory() || resident_kib(getpid()) <= own_memory + 256);
    if (is_own_build()) {
        cr_expect_eq(status_number(sandbox.supervisor, "Threads:"), 1);
        cr_expect(resident_kib(sandbox.supervisor) <= memory + 64);
        cr_expect(resident_kib(sandbox.supervisor) < 2048);
    }
}

static SprFlow take_slowly(void *ctx, const void *data, gsize size)
{
    g_usleep(100000);
    return SPR_FLOW_CONTINUE;
}

/* Which has always something to do meanwhile. */
Test(exec, a_slow_taker_does_not_keep_the_end_of_a_call_from_being_seen)
{
    SprCommand command = {.command = "head -c 30000000 /dev/zero"};
    SprSink sink = {NULL, take_slowly};
    SprWait wait = spr_wait_for(300);
    SprExit exit;
    g_autoptr(GError) error = NULL;
    gint64 start_us = g_get_monotonic_time();
    cr_expect_not(
        spr_supervisor_exec(supervisor, &command, NULL, &sink, NULL, &wait, &exit, &error));
    cr_expect(spr_error_is(error, SPR_E_TIMEOUT, NULL));
    cr_expect_lt(g_get_monotonic_time() - start_us, 6 * G_USEC_PER_SEC);
}
