/* Ends that are complete: by deadline, token, call and connection, whatever the tree does against
 * it. */
#include "fixture.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
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

TestSuite(kill, .init = set_up, .fini = tear_down, .timeout = 240);

/* A shell command whose processes all carry $1, the word, on their command line. */
static Ran run_marked(SprSupervisor *client, const char *text, const char *word, gint64 deadline_ms,
                      gint64 grace_ms, const SprWait *wait)
{
    const char *const argv[] = {"sh", "-c", text, "sh", word, NULL};
    SprCommand command = {.argv = argv, .deadline_ms = deadline_ms, .grace_ms = grace_ms};
    return run_command(client, &command, NULL, wait);
}

/* Two seconds of work for the children to be seen, so that their end is not by itself. */
#define STUBBORN_TREE                                                                              \
    "trap '' TERM HUP INT; "                                                                       \
    "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' x $1 & "                             \
    "(setsid sh -c '(setsid sh -c \"while :; do sleep 1; done\" x $1 &) &' x $1 &) ; "             \
    "env -i /bin/sh -c 'while :; do /bin/sleep 1; done' x $1 & "                                   \
    "echo ready; while :; do sleep 1; done"

static void expect_timed_out(const Ran *ran)
{
    cr_expect(ran->ok && ran->exit.exit_code == 137 && ran->exit.term_signal == 9);
    cr_expect_eq(ran->exit.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED);
}

Test(kill, a_deadline_ends_a_stubborn_tree_every_time)
{
    g_autofree char *word = unique_word();
    int ready = 0;
    for (int i = 0; i < rounds(); i++) {
        g_auto(Ran) ran = run_marked(supervisor, STUBBORN_TREE, word, 100, 0, NULL);
        expect_timed_out(&ran);
        ready += strcmp(ran.out->str, "ready\n") == 0;
        cr_assert_eq(count_processes(word), 0, "round %d", i);
    }
    cr_expect(ready > 0, "the machine is too slow to tell");
}

Test(kill, a_fork_bomb_under_a_limit_of_64_is_gone_every_time)
{
    pid_t relay;
    Sandbox other = sandbox_serve_as(100000 + (uid_t)getpid(), 64);
    g_autoptr(SprSupervisor) client = sandbox_connect_through_relay(&other, &relay);
    g_autofree char *word = unique_word();
    for (int i = 0; i < rounds(); i++) {
        g_auto(Ran) ran = run_marked(
            client, "f() { f \"$1\" & f \"$1\"; }; f \"$1\" 2>/dev/null & exec sleep 100", word,
            150, 0, NULL);
        expect_timed_out(&ran);
        cr_assert_eq(count_processes(word), 0, "round %d", i);
        g_auto(Ran) after = run_shell(client, "echo ok");
        cr_assert_str_eq(after.out->str, "ok\n", "round %d", i);
    }
    sandbox_stop(&other);
    cr_expect_eq(wait_until_gone(word), 0);
}

Test(kill, a_token_ends_the_tree_and_the_call_is_fine)
{
    g_autofree char *word = unique_word();
    int token = eventfd(1, EFD_CLOEXEC);
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = token;
    g_auto(Ran) before = run_marked(supervisor, "echo never", word, 0, 0, &wait);
    cr_expect(!before.ok && spr_error_is(before.error, SPR_E_CANCELLED, NULL));
    guint64 count;
    cr_assert(read(token, &count, sizeof count) == sizeof count);

    pid_t firing = fork();
    if (firing == 0) {
        while (count_processes(word) < 4)
            g_usleep(1000);
        count = 1;
        _exit(write(token, &count, sizeof count) != sizeof count);
    }
    g_auto(Ran) ran = run_marked(supervisor, STUBBORN_TREE, word, 0, 0, &wait);
    cr_expect(ran.ok && ran.exit.exit_code == 137 && ran.exit.flags == SPR_EXIT_KILLED);
    cr_expect_eq(count_processes(word), 0);
    waitpid(firing, NULL, 0);
    close(token);
}

Test(kill, the_call_s_own_deadline_is_an_error_and_leaves_nothing)
{
    g_autofree char *word = unique_word();
    SprWait wait = spr_wait_for(200);
    g_auto(Ran) ran = run_marked(supervisor, STUBBORN_TREE, word, 0, 0, &wait);
    cr_expect(!ran.ok && spr_error_is(ran.error, SPR_E_TIMEOUT, NULL));
    cr_expect(ran.exit.flags == SPR_EXIT_KILLED && ran.exit.exit_code == 137);
    cr_expect_eq(count_processes(word), 0);
}

Test(kill, a_grace_lets_a_command_tidy_up)
{
    g_autofree char *word = unique_word();
    g_auto(Ran) ran =
        run_marked(supervisor, "trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done", word,
                   100, 20000, NULL);
    expect_timed_out(&ran);
    cr_expect_str_eq(ran.out->str, "bye\n");
    g_auto(Ran) deaf = run_marked(supervisor, STUBBORN_TREE, word, 100, 100, NULL);
    expect_timed_out(&deaf);
    cr_expect_eq(count_processes(word), 0);
}

Test(kill, a_command_that_ended_in_time_is_not_touched)
{
    g_autofree char *word = unique_word();
    g_auto(Ran) ran = run_marked(supervisor, "sleep 0.4 & exit 5", word, 200, 0, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 5 && ran.exit.flags == 0);
    g_auto(Ran) forever = run_marked(supervisor, "exit 6", word, G_MAXINT64, G_MAXINT64, NULL);
    cr_expect(forever.ok && forever.exit.exit_code == 6 && forever.exit.flags == 0);
}

Test(kill, a_deadline_covers_the_background_that_is_waited_for)
{
    g_autofree char *word = unique_word();
    const char *const argv[] = {"sh", "-c", "sh -c 'sleep 100; :' x $1 & exit 0", "sh", word, NULL};
    SprCommand command = {.argv = argv, .deadline_ms = 200, .wait_background = true};
    g_auto(Ran) ran = run_command(supervisor, &command, NULL, NULL);
    expect_timed_out(&ran);
    cr_expect_eq(count_processes(word), 0);
}

Test(kill, commands_die_with_their_connection)
{
    g_autofree char *word = unique_word();
    pid_t client = fork();
    if (client == 0) {
        g_autoptr(SprSupervisor) own = sandbox_connect(&sandbox);
        g_auto(Ran) ran = run_marked(own, STUBBORN_TREE, word, 0, 0, NULL);
        _exit(ran.ok);
    }
    unsigned up = 0;
    for (int i = 0; i < 500 && up < 4; i++) {
        g_usleep(10000);
        up = count_processes(word);
    }
    cr_expect(up >= 4);
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    cr_expect_eq(wait_until_gone(word), 0);
}

Test(kill, trees_die_with_the_supervisor)
{
    g_autofree char *word = unique_word();
    Sandbox other = sandbox_serve();
    g_autoptr(SprSupervisor) client = sandbox_connect(&other);
    g_auto(Ran) ran = run_marked(
        client, "setsid sh -c 'sleep 100; :' x $1 >/dev/null 2>&1 & echo up", word, 0, 0, NULL);
    cr_expect(ran.ok);
    cr_expect_eq(wait_until_processes(word, 1), 1);
    kill(other.pid, SIGKILL);
    sandbox_stop(&other);
    cr_expect_eq(wait_until_gone(word), 0);
    g_auto(Ran) after = run_shell(client, "true");
    cr_expect(!after.ok && spr_error_is(after.error, SPR_E_IO, "supervisor-lost"));
    cr_expect(!spr_supervisor_is_alive(client));
}

Test(kill, a_stopped_keeper_goes_on)
{
    g_auto(Ran) ran = run_shell(supervisor, "kill -STOP $PPID; echo still here");
    cr_expect(ran.ok && ran.exit.exit_code == 0);
    cr_expect_str_eq(ran.out->str, "still here\n");
}

Test(kill, a_keeper_that_a_tracer_holds_is_ended_with_its_tree)
{
    if (getuid() != 0 || system("command -v gdb >/dev/null") != 0)
        cr_skip_test("this needs root and gdb");
    g_autofree char *word = unique_word();
    g_auto(Ran) ran =
        run_marked(supervisor, "gdb --batch -ex 'shell echo held; sleep 100' -p $PPID 2>/dev/null",
                   word, 6000, 0, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 137 && (ran.exit.flags & SPR_EXIT_TIMED_OUT));
    cr_expect(strstr(ran.out->str, "held\n") != NULL);
    cr_expect_eq(wait_until_gone(word), 0);
    g_auto(Ran) after = run_shell(supervisor, "echo ok");
    cr_expect_str_eq(after.out->str, "ok\n", "%s", after.error ? after.error->message : "");
}

Test(kill, a_killed_keeper_is_an_error_and_the_next_call_works)
{
    g_autofree char *word = unique_word();
    g_auto(Ran) ran = run_marked(
        supervisor, "sh -c 'sleep 100; :' x $1 & echo up; kill -9 $PPID; while :; do sleep 1; done",
        word, 0, 0, NULL);
    cr_expect(!ran.ok && spr_error_is(ran.error, SPR_E_IO, "keeper-lost"));
    cr_expect_str_eq(ran.out->str, "up\n");
    cr_expect_eq(wait_until_gone(word), 0);
    g_auto(Ran) after = run_shell(supervisor, "echo ok");
    cr_expect_str_eq(after.out->str, "ok\n");
}

/* What only its ancestors told apart is nobody's any more, but it bears the keeper's mark. */
Test(kill, what_a_killed_keeper_had_is_ended_whatever_session_and_parent_it_has)
{
    g_autofree char *word = unique_word(), *other = unique_word();
    g_autofree char *path = g_strdup_printf("/tmp/%s", word);
    pid_t bystander = fork();
    if (bystander == 0) {
        g_autoptr(SprSupervisor) own = sandbox_connect(&sandbox);
        g_auto(Ran) ran =
            run_marked(own, "setsid sh -c 'sleep 100; :' x $1 & sleep 100; :", other, 0, 0, NULL);
        _exit(!ran.ok);
    }
    while (count_processes(other) < 2)
        g_usleep(10000);
    g_auto(Ran) ran =
        run_marked(supervisor,
                   "setsid sh -c 'echo >>/tmp/$1; sleep 100; :' x $1 & "
                   "(setsid sh -c 'echo >>/tmp/$1; sleep 100; :' x $1 &); "
                   "env -i setsid /bin/sh -c 'echo >>/tmp/$1; /bin/sleep 100; :' x $1 & "
                   "until [ \"$(wc -l </tmp/$1)\" = 3 ]; do sleep 0.01; done 2>/dev/null; "
                   "kill -9 $PPID; while :; do sleep 1; done",
                   word, 20000, 0, NULL);
    cr_expect(!ran.ok && spr_error_is(ran.error, SPR_E_IO, "keeper-lost"));
    cr_expect_eq(ran.exit.flags & SPR_EXIT_UNCONFIRMED, 0);
    cr_expect_eq(count_processes(word), 0);
    cr_expect_eq(wait_until_processes(other, 2), 2, "another command's are untouched");
    kill(bystander, SIGKILL);
    waitpid(bystander, NULL, 0);
    cr_expect_eq(wait_until_gone(other), 0);
    unlink(path);
}

Test(kill, killing_everything_inside_ends_the_call_and_not_the_next)
{
    g_autofree char *word = unique_word();
    Sandbox other = sandbox_init(NULL);
    g_autoptr(SprSupervisor) client = sandbox_connect(&other);
    for (int i = 0; i < 10; i++) {
        g_auto(Ran) ran =
            run_marked(client, "kill -9 -1; while :; do sleep 1; done", word, 0, 0, NULL);
        cr_expect(!ran.ok && spr_error_is(ran.error, SPR_E_IO, "keeper-lost"));
        g_auto(Ran) after = run_shell(client, "echo ok");
        cr_assert_str_eq(after.out->str, "ok\n");
    }
    cr_expect_eq(wait_until_gone(word), 0);
    sandbox_stop(&other);
}

Test(kill, what_may_not_be_signalled_is_unconfirmed)
{
    pid_t relay;
    Sandbox other = sandbox_serve_as(100000 + (uid_t)getpid(), 0);
    g_autoptr(SprSupervisor) client = sandbox_connect_through_relay(&other, &relay);
    g_autofree char *raise = g_strdup_printf("%s/setpriv", other.directory);
    g_autofree char *copy = g_strdup_printf("cp $(command -v setpriv) %s", raise);
    cr_assert(system(copy) == 0 && chmod(raise, 04755) == 0);
    g_autofree char *text = g_strdup_printf("%s --reuid 0 sleep 4", raise);
    gint64 started = g_get_monotonic_time();
    g_auto(Ran) ran =
        run_command(client, &(SprCommand){.command = text, .deadline_ms = 200}, NULL, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 137);
    cr_expect_eq(ran.exit.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED);
    cr_expect(g_get_monotonic_time() - started < 4 * G_USEC_PER_SEC);
    sandbox_stop(&other);
}

Test(kill, a_frozen_supervisor_keeps_no_call_beyond_its_deadline)
{
    kill(sandbox.pid, SIGSTOP);
    gint64 started = g_get_monotonic_time();
    g_auto(Ran) ran = run_command(
        supervisor, &(SprCommand){.command = "sleep 100", .deadline_ms = 100}, NULL, NULL);
    cr_expect(ran.ok && ran.exit.exit_code == 137);
    cr_expect_eq(ran.exit.flags, SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED);
    cr_expect(g_get_monotonic_time() - started < 10 * G_USEC_PER_SEC);
    kill(sandbox.pid, SIGCONT);
}
