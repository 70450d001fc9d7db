/* Everything the client can do, once or a few times: for valgrind, which sees no case of Criterion.
 * Prints TAP of one line. */
#include "fixture.h"

#include "supervisor/client/process.h"

#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;
static bool good = true;

static void check(bool holds, const char *what)
{
    if (!holds)
        printf("# %s\n", what);
    good &= holds;
}

static SprSourceStatus give_once(void *ctx, void *buffer, gsize room, gsize *count)
{
    gsize *left = ctx;
    *count = MIN(room, *left);
    memset(buffer, 'x', *count);
    *left -= *count;
    return SPR_SOURCE_OK;
}

static void run_commands(void)
{
    const char *const missing[] = {"/no/such", NULL};
    gsize left = 300000;
    SprSource source = {&left, -1, give_once};
    g_auto(Ran) plain = run_shell(supervisor, "echo out; echo err >&2; exit 3");
    check(plain.ok && plain.exit.exit_code == 3 && plain.out->len == 4, "a command");
    g_auto(Ran) cat = run_command(supervisor, &(SprCommand){.command = "cat"}, &source, NULL);
    check(cat.ok && cat.out->len == 300000, "input");
    g_auto(Ran) none = run_command(supervisor, &(SprCommand){.argv = missing}, NULL, NULL);
    check(none.ok && none.exit.exit_code == 127, "a missing command");
    g_auto(Ran) cwd =
        run_command(supervisor, &(SprCommand){.command = "true", .cwd = "/no"}, NULL, NULL);
    check(!cwd.ok, "a missing directory");
    g_auto(Ran) slow = run_command(
        supervisor, &(SprCommand){.command = "sleep 50", .deadline_ms = 50}, NULL, NULL);
    check(slow.ok && slow.exit.exit_code == 137, "a deadline");
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = eventfd(1, EFD_CLOEXEC);
    g_auto(Ran) cancelled = run_command(supervisor, &(SprCommand){.command = "true"}, NULL, &wait);
    check(!cancelled.ok, "a token");
    close(wait.cancel_fd);
}

static bool count_listed(void *ctx, const SprProcessInfo *info)
{
    (*(int *)ctx)++;
    return true;
}

static void run_processes(void)
{
    SprCommand command = {.command = "read x; echo got $x; sleep 50"};
    SprSpawn request = {.command = &command, .feeds_stdin = true};
    SprWait wait = spr_wait_for(60000);
    guint64 id, offset = 0;
    gsize written, count = 0;
    char text[100];
    int listed = 0;
    bool confirmed;
    SprProcessInfo info;
    SprExit result;
    check(spr_process_spawn(supervisor, &request, &wait, &id, NULL), "spawn");
    check(spr_process_write(supervisor, id, "it\n", 3, &written, &wait, NULL), "write");
    check(spr_process_read(supervisor, id, SPR_STREAM_OUT, false, &offset, text, sizeof text,
                           &count, &wait, NULL) &&
              count == 7,
          "read");
    check(spr_process_list(supervisor, count_listed, &listed, &wait, NULL) && listed == 1, "list");
    check(!spr_process_forget(supervisor, id, &wait, NULL), "forget what runs");
    check(spr_process_kill(supervisor, id, SIGKILL, SPR_SCOPE_TREE, 0, &wait, &confirmed, NULL) &&
              confirmed,
          "kill");
    check(spr_process_wait(supervisor, id, &wait, &result, NULL) && result.exit_code == 137,
          "wait");
    check(spr_process_forget(supervisor, id, &wait, NULL), "forget");
    check(!spr_process_find(supervisor, id, &wait, &info, NULL), "find what is forgotten");
}

static gpointer call_often(gpointer data)
{
    for (int i = 0; i < 5; i++) {
        g_auto(Ran) ran = run_shell(supervisor, "seq 1 5000");
        check(ran.ok && ran.out->len == 23893, "a caller among several");
    }
    return NULL;
}

static void run_threads(void)
{
    GThread *threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = g_thread_new("caller", call_often, NULL);
    for (int i = 0; i < 4; i++)
        g_thread_join(threads[i]);
}

static void lose_it(void)
{
    kill(sandbox.supervisor, SIGKILL);
    g_auto(Ran) lost = run_shell(supervisor, "true");
    check(!lost.ok && spr_error_is(lost.error, SPR_E_IO, NULL), "a supervisor that is killed");
}

int main(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    run_commands();
    run_processes();
    run_threads();
    lose_it();
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
    printf("1..1\n%sok 1 - the client does all it can\n", good ? "" : "not ");
    return good ? 0 : 1;
}
