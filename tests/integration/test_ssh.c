/* How an ssh between us and the engine ends: with the stream, killed, or with its line. The ssh is
 * a script that passes bytes on to the engine's socket; a real one is in tests/long/endpoints.sh.
 */
#include "ep.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAIN "\"supervisor\":\"off\""
#define AT_ONCE 10 /* seconds */

/* SIGUSR1: its line is dead. Then no new one gets through either. */
static const char script[] =
    "#!/usr/bin/env python3\n"
    "import os, signal, socket, sys, threading, time\n"
    "folder = os.path.dirname(os.path.abspath(__file__))\n"
    "def end(*args):\n"
    "    open(folder + '/dead', 'w').close()\n"
    "    os.write(2, b'Timeout, server far not responding.\\n')\n"
    "    os._exit(255)\n"
    "signal.signal(signal.SIGUSR1, end)\n"
    "if os.path.exists(folder + '/dead'):\n"
    "    time.sleep(300)\n"
    "if 'SPROV_TEST_LATE' in os.environ:\n"
    "    open(folder + '/late', 'w').close()\n"
    "os.write(2, b'Warning: nothing of importance.\\n')\n"
    "open(folder + '/pid-%d' % os.getpid(), 'w').close()\n"
    "engine = socket.socket(socket.AF_UNIX)\n"
    "engine.connect([a for a in sys.argv if a.startswith('--host=')][0][len('--host=unix://'):])\n"
    "to_cut = False\n"
    "def give():\n"
    "    global to_cut\n"
    "    while data := os.read(0, 65536):\n"
    "        to_cut = b'/start HTTP' in data and os.path.exists(folder + '/cut')\n"
    "        engine.sendall(data)\n"
    "    engine.shutdown(socket.SHUT_WR)\n"
    "threading.Thread(target=give, daemon=True).start()\n"
    "while data := engine.recv(65536):\n"
    "    if to_cut:\n"
    "        os.unlink(folder + '/cut')\n"
    "        os.write(2, b'Connection to far closed by remote host.\\n')\n"
    "        os._exit(255)\n"
    "    while data:\n"
    "        data = data[os.write(1, data):]\n"
    "os._exit(0)\n";

static char folder[] = "/tmp/sprov-ssh-XXXXXX";

static EpBox far_box(void)
{
    EpBox box = {.id = ep_new_id()};
    cr_assert_not_null(mkdtemp(folder));
    FILE *file = fopen(ep_format("%s/ssh", folder), "w");
    fputs(script, file);
    fclose(file);
    chmod(ep_format("%s/ssh", folder), 0755);
    setenv("PATH", ep_format("%s:%s", folder, getenv("PATH")), 1);
    box.provider = ep_open_at(ep_format("ssh://far%s", getenv("DOCKER_HOST") + strlen("unix://")));
    box.sandbox = ep_create(box.provider, box.id, PLAIN);
    ep_start(box.sandbox);
    return box;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    return remove(path);
}

static void end_box(EpBox *box)
{
    unlink(ep_format("%s/dead", folder));
    ep_destroy(box);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int signal_number; /* for signal_one() */

static int signal_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    int pid;
    if (sscanf(path + where->base, "pid-%d", &pid) == 1) {
        kill(pid, signal_number);
        unlink(path);
    }
    return 0;
}

static void end_all_ssh(int number)
{
    signal_number = number;
    nftw(folder, signal_one, 8, FTW_PHYS);
}

typedef struct {
    EpBox box;
    EpBytes out;
    EpRun run;
    double ended;
} Caller;

static void *run_long(void *ctx)
{
    Caller *caller = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_sink sink = ep_sink(&caller->out);
    request.command = "echo begun; sleep 300";
    request.run_timeout_ms = -1;
    request.stdout_sink = &sink;
    caller->run = ep_run(caller->box.sandbox, &request, NULL);
    caller->ended = ep_now();
    return NULL;
}

static bool has_begun(void *ctx)
{
    return __atomic_load_n(&((Caller *)ctx)->out.size, __ATOMIC_ACQUIRE) > 0;
}

/* An exec during which every ssh ends by this signal. */
static Caller cut_off(EpBox *box, int number)
{
    static Caller caller;
    pthread_t thread;
    caller = (Caller){.box = *box};
    cr_assert_eq(pthread_create(&thread, NULL, run_long, &caller), 0);
    cr_assert(ep_wait_until(has_begun, &caller));
    double cut = ep_now();
    end_all_ssh(number);
    pthread_join(thread, NULL);
    cr_expect_eq(caller.run.status, SPROV_E_IO, "%d: %s", caller.run.status,
                 caller.run.error.message);
    cr_expect(caller.run.error.flags & SPROV_ERROR_RETRYABLE, "%s", caller.run.error.message);
    cr_expect_lt(caller.ended - cut, AT_ONCE, "after %.1f s", caller.ended - cut);
    return caller;
}

Test(ssh, that_is_left_with_input_which_a_command_does_not_take_is_no_broken_connection,
     .timeout = 120)
{
    EpBox box = far_box();
    EpSource from = {.data = ep_random(4 << 20), .size = 4 << 20};
    for (int i = 0; i < 5; i++) {
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        from.used = 0;
        sprov_source source = ep_source(&from, true);
        request.command = "exec 0<&-; echo closed; exit 3";
        request.stdin_source = &source;
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_expect_eq(run.status, SPROV_OK, "%d: %s", run.status, run.error.message);
        cr_expect_eq(run.result.exit_code, 3);
        cr_expect(run.out.data && strcmp(run.out.data, "closed\n") == 0, "%s", run.out.data);
    }
    end_box(&box);
}

/* A host may change it at any time, on another thread. */
Test(ssh, is_found_and_started_in_the_environment_that_open_saw, .timeout = 120)
{
    char *before = ep_format("%s", getenv("PATH"));
    EpBox box = far_box();
    setenv("PATH", before, 1);
    setenv("SPROV_TEST_LATE", "1", 1);
    cr_expect_str_eq(ep_ask(box.sandbox, "echo reached"), "reached");
    cr_expect_neq(access(ep_format("%s/late", folder), F_OK), 0);
    end_box(&box);
}

Test(ssh, that_is_killed_ends_the_call_and_its_command, .timeout = 120)
{
    EpBox box = far_box();
    cut_off(&box, SIGKILL);
    cr_expect_not(ep_runs(box.sandbox, "300"));
    end_box(&box);
}

static void check_dead_line(void)
{
    EpBox box = far_box();
    Caller caller = cut_off(&box, SIGUSR1);
    cr_expect(strstr(caller.run.error.message, "Timeout, server far not responding"), "%s",
              caller.run.error.message);
    unlink(ep_format("%s/dead", folder));
    cr_expect_str_eq(ep_ask(box.sandbox, "echo again"), "again");
    end_box(&box);
}

/* The engine began the command, and nobody heard of it. */
Test(ssh, that_ends_before_the_answer_came_leaves_no_command, .timeout = 120)
{
    EpBox box = far_box();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "sleep 3456";
    fclose(fopen(ep_format("%s/cut", folder), "w"));
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_expect_neq(access(ep_format("%s/cut", folder), F_OK), 0, "it was not cut");
    cr_expect_neq(run.status, SPROV_OK);
    cr_expect(run.error.flags & SPROV_ERROR_RETRYABLE, "%s", run.error.message);
    cr_expect_str_eq(ep_ask(box.sandbox, "grep -lsa 'sleep.345[6]' /proc/[0-9]*/cmdline | wc -l"),
                     "0", "after %s: %s", run.error.reason, run.error.message);
    end_box(&box);
}

Test(ssh, whose_line_is_dead_ends_the_call_although_nobody_can_be_asked, .timeout = 120)
{
    check_dead_line();
}

Test(ssh, whose_line_is_dead_does_so_in_a_host_that_ignores_its_children, .timeout = 120)
{
    signal(SIGCHLD, SIG_IGN);
    check_dead_line();
}
