/* Whether anybody uses a sandbox, and that nobody begins to while it is taken away. */
#include "fixture.h"

#include "supervisor/client/files.h"
#include "supervisor/client/process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *visitor;

static SprSupervisor *visit(void)
{
    SprPipe pipe = spr_pipe_for_socket(sandbox_socket(&sandbox));
    SprWait wait = spr_wait_for(10000);
    g_autoptr(GError) error = NULL;
    SprSupervisor *supervisor = NULL;
    bool ok = spr_supervisor_visit(&pipe, &wait, &supervisor, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return supervisor;
}

static void set_up(void)
{
    sandbox = sandbox_serve();
    visitor = visit();
}

static void tear_down(void)
{
    spr_supervisor_unref(visitor);
    sandbox_stop(&sandbox);
}

TestSuite(retire, .init = set_up, .fini = tear_down, .timeout = 120);

static guint64 ask(bool only_tells)
{
    SprWait wait = spr_wait_for(10000);
    g_autoptr(GError) error = NULL;
    guint64 n = G_MAXUINT64;
    bool ok = spr_supervisor_retire(visitor, only_tells, &wait, &n, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return n;
}

static guint64 uses(void)
{
    return ask(false);
}

static guint64 wait_for_uses(guint64 wanted)
{
    guint64 n = uses();
    for (int i = 0; i < 1000 && n != wanted; i++, n = uses())
        g_usleep(10000);
    return n;
}

Test(retire, a_connection_is_a_use_and_a_visit_is_none)
{
    SprSupervisor *host = sandbox_connect(&sandbox);
    g_autoptr(SprSupervisor) other = visit();
    cr_assert(other);
    cr_expect_eq(uses(), 1);
    spr_supervisor_unref(host);
    cr_expect_eq(wait_for_uses(0), 0);
}

Test(retire, what_a_command_left_running_is_a_use)
{
    SprSupervisor *host = sandbox_connect(&sandbox);
    g_autofree char *word = unique_word();
    g_autofree char *line = g_strdup_printf("sh -c 'sleep 300; : %s' >/dev/null 2>&1 &", word);
    g_auto(Ran) ran = run_shell(host, line);
    cr_assert(ran.ok);
    spr_supervisor_unref(host);
    cr_expect_eq(wait_for_uses(1), 1);
    cr_expect_eq(uses(), 1, "and it stays one");
}

static bool ignore(void *ctx, const SprFileEntry *entry)
{
    (void)ctx;
    (void)entry;
    return true;
}

/* Whoever carries it out says only then that it is over. */
Test(retire, a_request_about_files_that_was_answered_is_none)
{
    for (int i = 0; i < 3000; i++) {
        SprWait wait = spr_wait_for(10000);
        cr_assert(spr_files_list(visitor, sandbox.directory, 0, ignore, NULL, &wait, NULL));
        cr_assert_eq(ask(true), 0, "after %d", i);
    }
}

static guint64 spawn(SprSupervisor *host, const char *line)
{
    SprCommand command = {.command = line};
    SprSpawn spawn = {.command = &command};
    SprWait wait = spr_wait_for(10000);
    g_autoptr(GError) error = NULL;
    guint64 id = 0;
    cr_assert(spr_process_spawn(host, &spawn, &wait, &id, &error));
    return id;
}

Test(retire, a_spawned_process_is_a_use_until_it_ends)
{
    SprSupervisor *host = sandbox_connect(&sandbox);
    SprWait wait = spr_wait_for(10000);
    guint64 id = spawn(host, "sleep 300");
    bool confirmed;
    spr_supervisor_unref(host);
    cr_expect_eq(wait_for_uses(1), 1);
    cr_assert(spr_process_kill(visitor, id, SIGKILL, SPR_SCOPE_TREE, 0, &wait, &confirmed, NULL));
    cr_expect_eq(wait_for_uses(0), 0, "its output is kept, and is no use");
}

Test(retire, who_comes_after_a_mere_look_does_not_wait)
{
    cr_assert_eq(ask(true), 0);
    SprPipe pipe = spr_pipe_for_socket(sandbox_socket(&sandbox));
    SprWait wait = spr_wait_for(3000); /* of the 5 s that others wait */
    g_autoptr(SprSupervisor) host = NULL;
    g_autoptr(GError) error = NULL;
    bool ok = spr_supervisor_open(&pipe, &wait, &host, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    cr_expect_eq(ask(true), 1);
}

Test(retire, who_comes_then_waits_and_is_served)
{
    cr_assert_eq(uses(), 0);
    int fd = sandbox_socket(&sandbox);
    SprPipe pipe = spr_pipe_for_socket(fd);
    SprWait soon = spr_wait_for(500), later = spr_wait_for(30000);
    SprSupervisor *host = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(spr_supervisor_open(&pipe, &soon, &host, &error));
    cr_expect_eq(error->code, SPR_E_TIMEOUT);
    g_clear_error(&error);
    pipe = spr_pipe_for_socket(sandbox_socket(&sandbox));
    bool ok = spr_supervisor_open(&pipe, &later, &host, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    g_auto(Ran) ran = run_shell(host, "echo served");
    cr_expect_str_eq(ran.out->str, "served\n");
    spr_supervisor_unref(host);
}
