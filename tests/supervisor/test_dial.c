/* Connections that the program makes to a socket of ours, and what only they can do. */
#include "fixture.h"

#include "supervisor/client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;
static Listener listener;

static void set_up(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    listener = listener_open();
}

static void tear_down(void)
{
    g_auto(Ran) ran = run_shell(supervisor, "echo unharmed");
    cr_expect_str_eq(ran.out->str, "unharmed\n");
    spr_supervisor_unref(supervisor);
    listener_close(&listener);
    sandbox_stop(&sandbox);
}

TestSuite(dial, .init = set_up, .fini = tear_down, .timeout = 120);

static SprSupervisor *dial(void)
{
    guint8 nonce[SPR_DIAL_NONCE] = "0123456789abcde", came[SPR_DIAL_NONCE];
    SprWait wait = spr_wait_for(10000);
    g_autoptr(GError) error = NULL;
    bool ok = spr_supervisor_dial(supervisor, listener.path, nonce, &wait, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    SprSupervisor *own = listener_accept(&listener, came);
    cr_assert_not_null(own);
    cr_expect_arr_eq(came, nonce, sizeof nonce);
    return own;
}

Test(dial, a_dialed_connection_brings_the_nonce_and_runs_commands)
{
    g_autoptr(SprSupervisor) own = dial();
    cr_expect_str_eq(spr_supervisor_info(own)->instance, spr_supervisor_info(supervisor)->instance);
    for (int i = 0; i < 50; i++) {
        g_auto(Ran) ran = run_shell(own, "echo out; echo err >&2; exit 7");
        cr_assert(ran.ok);
        cr_expect_eq(ran.exit.exit_code, 7);
        cr_expect_str_eq(ran.out->str, "out\n");
        cr_expect_str_eq(ran.err->str, "err\n");
        cr_expect_eq(ran.exit.out_bytes, 4);
    }
}

Test(dial, output_of_any_size_comes_whole_through_pipes_of_ours)
{
    g_autoptr(SprSupervisor) own = dial();
    g_auto(Ran) ran = run_shell(own, "head -c 20000000 /dev/zero; printf end; "
                                     "head -c 300000 /dev/zero >&2; printf end >&2");
    cr_assert(ran.ok);
    cr_assert_eq(ran.out->len, 20000003);
    cr_assert_eq(ran.err->len, 300003);
    cr_expect_str_eq(ran.out->str + 20000000, "end");
    cr_expect_str_eq(ran.err->str + 300000, "end");
    cr_expect_eq(ran.exit.out_bytes, 20000003);
}

static bool file_is_there(const char *path)
{
    for (int i = 0; i < 1000 && access(path, F_OK) != 0; i++)
        g_usleep(10000);
    return access(path, F_OK) == 0;
}

Test(dial, children_that_keep_the_pipes_hold_up_nobody_and_go_on_writing)
{
    g_autoptr(SprSupervisor) own = dial();
    g_autofree char *path = g_strdup_printf("%s/done", sandbox.directory);
    g_autofree char *text = g_strdup_printf(
        "(sleep 1; head -c 3000000 /dev/zero && head -c 3000000 /dev/zero >&2 && >%s) & echo hi",
        path);
    gint64 start = g_get_monotonic_time();
    g_auto(Ran) ran = run_shell(own, text);
    cr_assert(ran.ok);
    cr_expect_str_eq(ran.out->str, "hi\n");
    cr_expect_lt(g_get_monotonic_time() - start, 900000);
    /* The connection serves the next one meanwhile. */
    g_auto(Ran) next = run_shell(own, "echo next");
    cr_expect_str_eq(next.out->str, "next\n");
    cr_expect(file_is_there(path), "writing ended it");
}

Test(dial, what_was_left_of_pipes_is_closed_with_their_last_writer)
{
    g_autoptr(SprSupervisor) own = dial();
    g_auto(Ran) warm = run_shell(own, "true");
    cr_assert(warm.ok);
    unsigned before = settled_descriptors(sandbox.supervisor), here = count_descriptors(getpid());
    for (int i = 0; i < 5; i++) {
        g_auto(Ran) ran = run_shell(own, "sleep 1 &");
        cr_expect(ran.ok);
    }
    unsigned after = 0;
    for (int i = 0; i < 500 && (after = count_descriptors(sandbox.supervisor)) > before; i++)
        g_usleep(20000);
    cr_expect_leq(after, before);
    cr_expect_eq(count_descriptors(getpid()), here);
}

Test(dial, a_deadline_and_a_refusing_taker_end_it_as_ever)
{
    g_autoptr(SprSupervisor) own = dial();
    g_auto(Ran) late = run_command(
        own, &(SprCommand){.command = "echo begun; sleep 60 & sleep 60", .deadline_ms = 300}, NULL,
        NULL);
    cr_assert(late.ok);
    cr_expect_eq(late.exit.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED);
    cr_expect_str_eq(late.out->str, "begun\n");
}

Test(dial, where_nobody_listens_it_is_an_error_and_no_more)
{
    guint8 nonce[SPR_DIAL_NONCE] = {0};
    SprWait wait = spr_wait_for(10000);
    g_autofree char *endless = g_strnfill(200, 'x');
    const char *const paths[] = {"/nowhere/socket", "/etc/passwd", "", endless};
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) error = NULL;
        cr_expect_not(spr_supervisor_dial(supervisor, paths[i], nonce, &wait, &error));
        cr_expect(spr_error_is(error, SPR_E_UNAVAILABLE, "no-socket"), "%s", paths[i]);
    }
}

/* A full queue must not stop the program, which has others to serve. */
Test(dial, a_listener_that_accepts_nobody_delays_nobody)
{
    guint8 nonce[SPR_DIAL_NONCE] = {0};
    SprWait wait = spr_wait_for(10000);
    g_autoptr(GError) error = NULL;
    bool ok = true;
    cr_assert(listen(listener.fd, 2) == 0);
    for (int i = 0; i < 10 && ok; i++)
        ok = spr_supervisor_dial(supervisor, listener.path, nonce, &wait, &error);
    cr_expect(spr_error_is(error, SPR_E_UNAVAILABLE, "no-socket"));
}

Test(dial, a_booting_program_dials_by_itself_without_a_nonce)
{
    static const guint8 none[SPR_DIAL_NONCE];
    guint8 came[SPR_DIAL_NONCE];
    Sandbox booted = sandbox_init_dialing(listener.path);
    g_autoptr(SprSupervisor) own = listener_accept(&listener, came);
    cr_assert_not_null(own);
    cr_expect_arr_eq(came, none, sizeof none);
    g_auto(Ran) ran = run_shell(own, "echo $PPID");
    cr_expect(ran.ok);
    sandbox_stop(&booted);
}

/* ------------------------------------------------------------------- against the rules */

static int raw(void)
{
    int fd = sandbox_socket(&sandbox);
    guint8 bytes[SPR_WIRE_HEADER + 16];
    SprWireWriter w = {bytes + SPR_WIRE_HEADER, 16, false};
    spr_wire_put_header(bytes, (SprWireHeader){.size = 16, .type = SPR_WIRE_HELLO});
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, 1, 2);
    spr_wire_put(&w, 1, 2);
    spr_wire_put(&w, 0, 8);
    cr_assert_eq(write(fd, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    cr_assert_gt(read(fd, bytes, SPR_WIRE_HEADER), 0);
    guint8 rest[1024];
    cr_assert_gt(read(fd, rest, spr_wire_get_header(bytes).size), 0);
    return fd;
}

static guint8 *run_frame(gsize *size)
{
    SprRunOptions options = {.flags = SPR_WIRE_RUN_PIPES};
    return spr_codec_run(&(SprCommand){.command = "echo"}, &options, 1, size, NULL);
}

Test(dial, a_command_whose_pipes_do_not_come_does_not_start)
{
    int fd = raw();
    gsize size;
    g_autofree guint8 *frame = run_frame(&size);
    guint8 answer[SPR_WIRE_HEADER + 8];
    cr_assert_eq(write(fd, frame, size), (ssize_t)size);
    cr_assert_eq(read(fd, answer, sizeof answer), (ssize_t)sizeof answer);
    SprWireReader r = {answer + SPR_WIRE_HEADER, 8, false};
    cr_expect_eq(spr_wire_get_header(answer).type, SPR_WIRE_START_FAILED);
    cr_expect_eq(spr_wire_get(&r, 4), EMFILE);
    close(fd);
}

/* Whoever carries it, an engine as a rule, is woken once. */
Test(dial, a_short_answer_about_files_comes_together_with_its_end)
{
    static guint8 answer[65536];
    const char *const argv[] = {"stat", "/", "0", NULL};
    SprRunOptions options = {.credit = 1 << 20};
    int fd = raw();
    for (guint32 channel = 1; channel <= 50; channel++) {
        gsize size;
        g_autofree guint8 *frame = spr_codec_run(&(SprCommand){.argv = argv, .files = true},
                                                 &options, channel, &size, NULL);
        cr_assert_eq(write(fd, frame, size), (ssize_t)size);
        ssize_t n = read(fd, answer, sizeof answer), first = SPR_WIRE_HEADER;
        cr_assert_gt(n, first);
        first += spr_wire_get_header(answer).size;
        cr_expect_eq(spr_wire_get_header(answer).type, SPR_WIRE_OUTPUT);
        cr_assert_gt(n, first + SPR_WIRE_HEADER, "round %u", channel);
        cr_expect_eq(spr_wire_get_header(answer + first).type, SPR_WIRE_EXITED);
    }
    close(fd);
}

/* Only who was dialed may pass some: who connects by itself is inside. */
Test(dial, descriptors_of_who_was_not_dialed_are_not_taken)
{
    unsigned before = settled_descriptors(sandbox.supervisor);
    int fd = raw(), ends[2];
    gsize size;
    g_autofree guint8 *frame = run_frame(&size);
    guint8 answer[SPR_WIRE_HEADER + 8];
    SprPipe pipe = spr_pipe_for_socket(fd);
    cr_assert(pipe2(ends, O_CLOEXEC) == 0);
    cr_assert_eq(pipe.write_with(pipe.ctx, frame, size, ends, 2), (ssize_t)size);
    cr_assert_eq(read(fd, answer, sizeof answer), (ssize_t)sizeof answer);
    cr_expect_eq(spr_wire_get_header(answer).type, SPR_WIRE_START_FAILED);
    cr_expect_leq(count_descriptors(sandbox.supervisor), before + 2, "a connection has two");
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* An input comes beside output and errors, never without, nor beside bytes in frames. */
Test(dial, an_input_that_makes_no_sense_ends_the_connection)
{
    const guint32 wrong[] = {SPR_WIRE_RUN_INPUT,
                             SPR_WIRE_RUN_INPUT | SPR_WIRE_RUN_PIPES | SPR_WIRE_RUN_STDIN};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        int fd = raw();
        gsize size;
        SprRunOptions options = {.flags = wrong[i]};
        g_autofree guint8 *frame =
            spr_codec_run(&(SprCommand){.command = "echo"}, &options, 1, &size, NULL);
        guint8 answer[64];
        cr_assert_eq(write(fd, frame, size), (ssize_t)size);
        cr_assert_gt(read(fd, answer, sizeof answer), 0);
        cr_expect_eq(spr_wire_get_header(answer).type, SPR_WIRE_ERROR);
        close(fd);
    }
}

Test(dial, a_discard_of_nothing_ends_the_connection)
{
    int fd = raw();
    guint8 frame[SPR_WIRE_HEADER], answer[64];
    spr_wire_put_header(frame, (SprWireHeader){.type = SPR_WIRE_DISCARD});
    cr_assert_eq(write(fd, frame, sizeof frame), (ssize_t)sizeof frame);
    ssize_t n = 1;
    while (n > 0)
        n = read(fd, answer, sizeof answer);
    cr_expect_eq(n, 0);
    close(fd);
}

/* ------------------------------------------------------------------------------- silence */

static bool give_up(void *ctx, GError **error)
{
    (*(int *)ctx)++;
    return spr_fail(error, SPR_E_NOT_READY, "paused", "frozen");
}

/* As in a sandbox that is paused: what was asked for meanwhile must not run later. */
Test(dial, a_frozen_program_is_noticed_and_begins_nothing_when_it_goes_on)
{
    SprSupervisor *own = dial();
    g_autofree char *path = g_strdup_printf("%s/ran", sandbox.directory);
    g_autofree char *text = g_strdup_printf(">%s", path);
    int asked = 0;
    kill(sandbox.supervisor, SIGSTOP);
    spr_supervisor_set_on_silence(own, give_up, &asked);
    SprCommand command = {.command = text};
    g_auto(Ran) ran = run_command(own, &command, NULL, NULL);
    cr_expect(!ran.ok && spr_error_is(ran.error, SPR_E_NOT_READY, "paused"));
    cr_expect_eq(asked, 1);
    spr_supervisor_unref(own);
    kill(sandbox.supervisor, SIGCONT);
    g_auto(Ran) after = run_shell(supervisor, "echo on");
    cr_expect_str_eq(after.out->str, "on\n");
    cr_expect_neq(access(path, F_OK), 0, "it ran");
}

/* Nobody waits for the confirmation of what cannot come. */
Test(dial, a_program_that_freezes_in_a_command_is_asked_about_when_its_time_is_over)
{
    SprSupervisor *own = dial();
    int asked = 0;
    spr_supervisor_set_on_silence(own, give_up, &asked);
    g_autofree char *text =
        g_strdup_printf("echo x; kill -STOP %d; sleep 20", (int)sandbox.supervisor);
    SprCommand command = {.command = text, .deadline_ms = 1000};
    g_auto(Ran) ran = run_command(own, &command, NULL, NULL);
    cr_expect(ran.ok, "%s", ran.error ? ran.error->message : "");
    cr_expect_eq(ran.exit.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED);
    cr_expect_eq(asked, 1);
    kill(sandbox.supervisor, SIGCONT);
    spr_supervisor_unref(own);
}

Test(dial, a_command_that_is_silent_for_long_is_not_taken_for_a_frozen_program)
{
    g_autoptr(SprSupervisor) own = dial();
    int asked = 0;
    spr_supervisor_set_on_silence(own, give_up, &asked);
    SprCommand command = {.command = "sleep 4"};
    g_auto(Ran) ran = run_command(own, &command, NULL, NULL);
    cr_expect(ran.ok && asked == 0);
}

static bool go_on(void *ctx, GError **error)
{
    (*(int *)ctx)++;
    return true;
}

/* Nothing is known to keep it from answering, and still no byte moves. */
Test(dial, a_program_that_never_answers_is_waited_for_no_longer_than_for_one_that_stalls)
{
    SprSupervisor *own = dial();
    int asked = 0;
    kill(sandbox.supervisor, SIGSTOP);
    spr_supervisor_set_on_silence(own, go_on, &asked);
    SprCommand command = {.command = "true", .stall_ms = 3000};
    SprWait wait = spr_wait_for(15000);
    gint64 start_us = g_get_monotonic_time();
    g_auto(Ran) ran = run_command(own, &command, NULL, &wait);
    cr_expect(ran.ok && ran.exit.flags & SPR_EXIT_TIMED_OUT, "%s",
              ran.error ? ran.error->message : "it ended in time");
    cr_expect_lt(g_get_monotonic_time() - start_us, 6 * G_USEC_PER_SEC);
    cr_expect_gt(asked, 0);
    kill(sandbox.supervisor, SIGCONT);
    spr_supervisor_unref(own);
}
