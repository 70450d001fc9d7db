/* The supervisor as the main process of a sandbox. */
#include "fixture.h"

#include "supervisor/client/process.h"

#include <signal.h>
#include <sys/wait.h>

TestSuite(init, .timeout = 60);

static int end_of(Sandbox *sandbox)
{
    int status = 0;
    waitpid(sandbox->pid, &status, 0);
    sandbox->pid = sandbox->supervisor = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void forget(Sandbox *sandbox)
{
    g_autofree char *text = g_strdup_printf("rm -rf %s", sandbox->directory);
    cr_expect(system(text) == 0);
}

Test(init, it_ends_with_the_main_command_s_code)
{
    const char *const argv[] = {"sh", "-c", "exit 23", NULL};
    Sandbox sandbox = sandbox_init(argv);
    cr_expect_eq(end_of(&sandbox), 23);
    forget(&sandbox);
}

Test(init, a_main_command_that_is_not_there_is_127)
{
    const char *const argv[] = {"/no/such", NULL};
    Sandbox sandbox = sandbox_init(argv);
    cr_expect_eq(end_of(&sandbox), 127);
    forget(&sandbox);
}

static guint64 rest_of_main(SprSupervisor *client)
{
    SprWait wait = spr_wait_for(10000);
    guint64 words = 99;
    g_autoptr(GError) error = NULL;
    cr_assert(spr_supervisor_main_rest(client, &wait, &words, &error), "%s",
              error ? error->message : "");
    return words;
}

static guint64 wait_for_rest(SprSupervisor *client, guint64 words)
{
    gint64 until_us = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;
    guint64 now = rest_of_main(client);
    for (; now != words && g_get_monotonic_time() < until_us; now = rest_of_main(client))
        g_usleep(1000);
    return now;
}

#define UNTIL_TRAPPED                                                                              \
    "while ! grep -q -s 'SigCgt:.*[^0]' /proc/2/status; do sleep 0.01; done; sleep 0.1"

Test(init, it_tells_when_an_entrypoint_has_become_what_follows_it)
{
    Sandbox sandbox = sandbox_init((const char *const[]){
        "sh", "-c", "trap go=1 USR1; while [ -z \"$go\" ]; do sleep 0.02; done; exec \"$@\"", "sh",
        "sleep", "infinity", NULL});
    g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
    cr_expect_eq(wait_for_rest(client, 6), 6);
    g_auto(Ran) ran = run_shell(client, UNTIL_TRAPPED);
    cr_assert(ran.ok);
    kill(sandbox.supervisor, SIGUSR1);
    cr_expect_eq(wait_for_rest(client, 2), 2);
    sandbox_stop(&sandbox);
}

Test(init, it_tells_nothing_of_a_main_command_that_is_none_or_another)
{
    Sandbox sandbox = sandbox_init(NULL);
    g_autoptr(SprSupervisor) alone = sandbox_connect(&sandbox);
    cr_expect_eq(rest_of_main(alone), 0);
    sandbox_stop(&sandbox);
    sandbox = sandbox_init((const char *const[]){"sh", "-c", "exec sleep 1000", "sleep", NULL});
    g_autoptr(SprSupervisor) other = sandbox_connect(&sandbox);
    g_auto(Ran) ran = run_shell(other, "until grep -q 1000 /proc/2/cmdline; do sleep 0.01; done");
    cr_assert(ran.ok);
    cr_expect_eq(rest_of_main(other), 0);
    sandbox_stop(&sandbox);
}

Test(init, signals_reach_the_main_command)
{
    const char *const argv[] = {
        "sh", "-c", "trap 'exit 11' USR1; trap 'exit 12' TERM; while :; do sleep 0.02; done", NULL};
    static const int signals[] = {SIGUSR1, SIGTERM}, codes[] = {11, 12};
    for (int i = 0; i < 2; i++) {
        Sandbox sandbox = sandbox_init(argv);
        g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
        g_auto(Ran) ran = run_shell(client, UNTIL_TRAPPED);
        cr_expect(ran.ok);
        kill(sandbox.supervisor, signals[i]);
        cr_expect_eq(end_of(&sandbox), codes[i]);
        forget(&sandbox);
    }
}

Test(init, alone_it_ends_at_once_on_a_stop_signal)
{
    Sandbox sandbox = sandbox_init(NULL);
    g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
    cr_expect(spr_supervisor_is_alive(client));
    gint64 started = g_get_monotonic_time();
    kill(sandbox.supervisor, SIGTERM);
    cr_expect_eq(end_of(&sandbox), 143);
    cr_expect(g_get_monotonic_time() - started < 2 * G_USEC_PER_SEC);
    forget(&sandbox);
}

Test(init, it_reaps_what_lost_its_parent)
{
    const char *const argv[] = {
        "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'sleep 0.05' &); done; sleep 100",
        NULL};
    Sandbox sandbox = sandbox_init(argv);
    g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
    for (int i = 0; i < 20; i++) {
        g_auto(Ran) ran = run_shell(client, "(sleep 0.05 &) ; exit 0");
        cr_expect(ran.ok);
    }
    g_auto(Ran) ran = run_shell(client, "sleep 0.5; cat /proc/[0-9]*/stat | grep -c ') Z '");
    cr_expect_str_eq(ran.out->str, "0\n");
    sandbox_stop(&sandbox);
}

Test(init, it_can_be_seen_neither_from_its_environment_nor_by_a_tracer)
{
    Sandbox sandbox = sandbox_init(NULL);
    g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
    g_auto(Ran) ran = run_shell(client, "setpriv --reuid 65534 --clear-groups --inh-caps=-all "
                                        "cat /proc/1/environ");
    cr_expect(ran.exit.exit_code != 0 && ran.out->len == 0);
    sandbox_stop(&sandbox);
}

/* The processes and how often they ran and were stopped, once nothing is left to do. */
static GString *activity(const Sandbox *sandbox)
{
    g_autofree pid_t *pids = supervisor_processes(sandbox);
    GString *text = g_string_new(NULL);
    for (pid_t *pid = pids; *pid; pid++)
        g_string_append_printf(text, "%d:%lu+%lu ", (int)*pid,
                               status_number(*pid, "\nvoluntary_ctxt_switches:"),
                               status_number(*pid, "nonvoluntary_ctxt_switches:"));
    return text;
}

static bool is_quiet_for(const Sandbox *sandbox, int seconds)
{
    GString *before = activity(sandbox);
    g_usleep((gulong)seconds * G_USEC_PER_SEC);
    GString *after = activity(sandbox);
    bool quiet = g_string_equal(before, after);
    if (!quiet)
        cr_log_info("%s, then %s", before->str, after->str);
    g_string_free(before, TRUE);
    g_string_free(after, TRUE);
    return quiet;
}

/* With a client and a process that runs, both of whom do nothing. Keepers beyond two are kept for
 * 5 s. */
Test(init, idle_it_is_small_and_never_wakes_up)
{
    Sandbox sandbox = sandbox_init(NULL);
    g_autoptr(SprSupervisor) client = sandbox_connect(&sandbox);
    SprCommand forever = {.command = "exec sleep 1000"};
    SprSpawn request = {.command = &forever};
    SprWait wait = spr_wait_for(10000);
    guint64 id;
    for (int i = 0; i < 5; i++) {
        g_auto(Ran) ran = run_shell(client, "echo hi");
        cr_expect(ran.ok);
    }
    cr_assert(spr_process_spawn(client, &request, &wait, &id, NULL));
    bool quiet = false;
    g_usleep(6 * G_USEC_PER_SEC);
    for (int i = 0; i < 10 && !quiet; i++)
        quiet = is_quiet_for(&sandbox, 1);
    cr_expect(quiet && is_quiet_for(&sandbox, 4));

    g_autofree pid_t *pids = supervisor_processes(&sandbox);
    unsigned long all = 0;
    int count = 0;
    for (pid_t *pid = pids; *pid; pid++, count++)
        all += resident_kib(*pid);
    cr_expect(count <= 5, "%d processes", count);
    if (is_own_build())
        cr_expect(all < 2048, "%lu KiB", all);
    sandbox_stop(&sandbox);
}
