#include "base/error.h"
#include "base/program.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static bool run(const char *script, const char *const *env, gint64 limit_ms,
                SprProgramResult *result, GError **error)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    static const char *const none[] = {NULL};
    SprWait wait = spr_wait_for(limit_ms);
    return spr_program_run(argv, env ? env : none, &wait, result, error);
}

Test(program, tells_what_it_printed_and_how_it_ended)
{
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    static const char *const env[] = {"NAME=value", NULL};
    cr_assert(run("echo $NAME; echo wrong >&2; cat; exit 7", env, 60000, &result, NULL));
    cr_expect_str_eq(result.out->str, "value\n", "it has nothing to read");
    cr_expect_str_eq(result.err->str, "wrong\n");
    cr_expect_eq(result.exit_code, 7);
}

Test(program, tells_the_signal_that_ended_it)
{
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    cr_assert(run("kill -9 $$", NULL, 60000, &result, NULL));
    cr_expect_eq(result.exit_code, 137);
}

Test(program, takes_no_more_than_it_has_room_for)
{
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    cr_assert(run("head -c 6000000 /dev/zero; echo end >&2", NULL, 60000, &result, NULL));
    cr_expect_eq(result.out->len, SPR_PROGRAM_OUTPUT_MOST);
    cr_expect_str_eq(result.err->str, "end\n");
}

Test(program, is_killed_with_what_it_started_when_the_wait_ends)
{
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    g_autoptr(GError) error = NULL;
    gint64 since = g_get_monotonic_time();
    cr_assert_not(run("sleep 300 & sleep 300", NULL, 300, &result, &error));
    cr_expect(spr_error_is(error, SPR_E_TIMEOUT, NULL));
    cr_expect(g_get_monotonic_time() - since < 60 * G_USEC_PER_SEC);
}

Test(program, that_is_not_there_is_told)
{
    const char *const argv[] = {"/nonexistent/program", NULL}, *const env[] = {NULL};
    SprWait wait = spr_wait_for(60000);
    SprProgramResult result;
    g_autoptr(GError) error = NULL;
    cr_assert_not(spr_program_run(argv, env, &wait, &result, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_FOUND, "no-program"));
    cr_expect(strstr(error->message, "/nonexistent/program"));
}

/* A host may ignore SIGCHLD, and then nobody learns how a child ended. */
Test(program, ends_also_where_children_are_not_waited_for)
{
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    signal(SIGCHLD, SIG_IGN);
    cr_assert(run("echo out; exit 3", NULL, 60000, &result, NULL));
    cr_expect_str_eq(result.out->str, "out\n");
    cr_expect(result.exit_code == -1 || result.exit_code == 3);
}
