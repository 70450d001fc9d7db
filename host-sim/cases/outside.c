/* What others do to a sandbox, and to the way to its engine. The user's hooks do it. */
#include "cases/cases.h"

#include <string.h>

static sprov_status exec_within(sprov_sandbox *sandbox, gint64 timeout_ms, guint32 flags, Ran *ran)
{
    sprov_exec_request request = case_command("cat kept");
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = timeout_ms;
    call.flags = flags;
    *ran = case_exec(sandbox, &request, &call);
    CHECK(ran->status == SPROV_OK || ran->out.size + ran->err.size == 0);
    return ran->status;
}

static sprov_sandbox *fresh_with_file(const char **ret_token)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    *ret_token = case_token();
    CHECK_INT(case_sh(sandbox, "printf %%s %s > kept", *ret_token).result.exit_code, 0);
    return sandbox;
}

static bool tells_running(sprov_sandbox *sandbox)
{
    return case_lib()->lifecycle && strcmp(case_info(sandbox, "status"), "running") == 0;
}

static void a_removed_one_is_missed(void)
{
    Ran ran;
    const char *token;
    sprov_sandbox *sandbox = fresh_with_file(&token);
    case_hook("remove", case_id(sandbox));
    sprov_status status = exec_within(sandbox, 0, SPROV_CALL_NO_CREATE, &ran);
    CHECK_THAT(status == SPROV_E_NOT_FOUND || status == SPROV_E_NOT_READY,
               "exec() in a sandbox that was removed answered %d", status);
    CHECK(!tells_running(sandbox));
    case_start(sandbox);
    CHECK_TEXT(case_sh(sandbox, "cat kept 2> /dev/null; echo new").out, "new\n");
}

static void a_stopped_one_starts_again(void)
{
    Ran ran;
    const char *token;
    sprov_sandbox *sandbox = fresh_with_file(&token);
    case_hook("stop", case_id(sandbox));
    CHECK(!tells_running(sandbox));
    CHECK_STATUS(exec_within(sandbox, 0, SPROV_CALL_NO_START, &ran), SPROV_E_NOT_READY);
    CHECK_STATUS(exec_within(sandbox, 0, 0, &ran), SPROV_OK);
    CHECK_TEXT(ran.out, token);
}

static gpointer run_until_it_is_killed(gpointer data)
{
    Ran ran;
    sprov_exec_request request = case_command("echo begun > begun; sleep 300");
    ran = case_exec(data, &request, NULL);
    CHECK_STATUS(ran.status, SPROV_E_NOT_READY);
    CHECK(case_last_error()->flags & SPROV_ERROR_SANDBOX_GONE);
    return NULL;
}

static void a_killed_one_ends_its_calls(void)
{
    Ran ran;
    const char *token;
    sprov_sandbox *sandbox = fresh_with_file(&token);
    GThread *thread = case_thread(run_until_it_is_killed, sandbox);
    CHECK(case_eventually(sandbox, 5000, "test -e begun"));
    case_hook("kill", case_id(sandbox));
    g_thread_join(thread);
    CHECK(!tells_running(sandbox));
    CHECK_STATUS(exec_within(sandbox, 0, SPROV_CALL_NO_START, &ran), SPROV_E_NOT_READY);
    CHECK_TEXT(case_sh(sandbox, "cat kept").out, token);
}

static gpointer run_over_a_pause(gpointer data)
{
    CHECK_TEXT(case_sh(data, "echo begun > begun; sleep 2; echo end").out, "end\n");
    return NULL;
}

static void a_paused_one_is_no_trap(void)
{
    Ran ran;
    const char *token;
    sprov_sandbox *sandbox = fresh_with_file(&token);
    GThread *thread = case_thread(run_over_a_pause, sandbox);
    CHECK(case_eventually(sandbox, 5000, "test -e begun"));
    case_hook("pause", case_id(sandbox));
    gint64 begin = case_now_ms();
    sprov_status status = exec_within(sandbox, 3000, SPROV_CALL_NO_START, &ran);
    CHECK_THAT(status == SPROV_E_NOT_READY || status == SPROV_E_CONFLICT ||
                   status == SPROV_E_TIMEOUT,
               "exec() in a paused sandbox answered %d", status);
    /* Behind its deadline the provider tries to end the command, which nobody answers. */
    gint64 took = case_now_ms() - begin;
    CHECK_THAT(took <= case_within(13000), "it came back after %" G_GINT64_FORMAT " ms", took);
    if (took > case_within(3000))
        case_warn("exec() with a deadline of 3000 ms came back after %" G_GINT64_FORMAT " ms",
                  took);
    case_hook("resume", case_id(sandbox));
    g_thread_join(thread);
    CHECK_TEXT(case_sh(sandbox, "cat kept").out, token);
}

static void a_start_that_cannot_be_leaves_nothing(void)
{
    sprov_sandbox *bad = case_create(case_hook_options());
    sprov_status status = case_api()->start(bad, NULL, NULL, case_error());
    CHECK_THAT(status != SPROV_OK, "start() with the options of the hook succeeded");
    CHECK_STATUS(status, status); /* holds the error to its rules */
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(bad)) == 0);
    case_destroy(bad);
    CHECK_INT(case_sh(case_fresh(NULL), "true").result.exit_code, 0);
}

/* ---- the way to the engine */

static void is_in_time(const char *function, sprov_status status, gint64 begin)
{
    CHECK_THAT(status == SPROV_E_TIMEOUT || status == SPROV_E_UNAVAILABLE, "%s answered %d: %s",
               function, status, case_last_error()->message);
    CHECK_THAT(case_on_time(begin, 1500), "%s came back after %" G_GINT64_FORMAT " ms", function,
               case_now_ms() - begin);
}

static void a_silent_engine_holds_nobody(void)
{
    sprov_provider *provider = case_open(NULL, case_hook_proxy("stall"));
    sprov_sandbox *sandbox = case_handle(case_new_id(), NULL, provider);
    Ran ran;
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 1500;
    gint64 begin = case_now_ms();
    is_in_time("start()", case_api()->start(sandbox, &call, NULL, case_error()), begin);
    begin = case_now_ms();
    is_in_time("exec()", exec_within(sandbox, 1500, 0, &ran), begin);
    begin = case_now_ms();
    is_in_time("destroy()", case_api()->destroy(sandbox, &call, case_error()), begin);
    case_abandon(sandbox);
}

static void pieces_on_the_way_change_nothing(void)
{
    sprov_sandbox *sandbox =
        case_handle(case_new_id(), NULL, case_open(NULL, case_hook_proxy("split")));
    case_start(sandbox);
    CaseBytes noise = case_noise(3000);
    CHECK_TEXT(case_sh(sandbox, "seq 1 500 | tail -n 1; echo err >&2").out, "500\n");
    case_write(sandbox, "file", noise, 0);
    CHECK_BYTES(case_read(sandbox, "file"), noise);
    CHECK_TEXT(case_bytes(case_sha256_inside(sandbox, "file")), case_sha256(noise));
    Ran ran = case_sh(sandbox, "cat file; cat file >&2; exit 3");
    CHECK_BYTES(ran.out, noise);
    CHECK_BYTES(ran.err, noise);
    CHECK_INT(ran.result.exit_code, 3);
}

static void a_lost_answer_loses_no_sandbox(void)
{
    sprov_sandbox *sandbox =
        case_handle(case_new_id(), NULL, case_open(NULL, case_hook_proxy("cut-create")));
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status != SPROV_OK)
        CHECK_STATUS(status, status); /* holds the error to its rules */
    case_start(sandbox);
    CHECK_TEXT(case_sh(sandbox, "echo on").out, "on\n");
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(sandbox)) == 1);
    case_destroy(sandbox);
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(sandbox)) == 0);
}

const Case cases_outside[] = {
    {"LIF-19", 2, "@remove", "a sandbox that somebody removed is missed, and can start anew", "7.6",
     a_removed_one_is_missed},
    {"LIF-20", 2, "@stop", "a sandbox that somebody stopped is started again with its files", "7.5",
     a_stopped_one_starts_again},
    {"LIF-31", 2, "@kill",
     "a sandbox that was killed ends its calls, and starts again with its files", "8.11",
     a_killed_one_ends_its_calls},
    {"LIF-21", 3, "@pause", "a paused sandbox answers by the deadline, and goes on when resumed",
     "8.4", a_paused_one_is_no_trap},
    {"LIF-30", 2, "@bad", "a start that cannot be leaves nothing, and others start", "7.6",
     a_start_that_cannot_be_leaves_nothing},
    {"LIF-22", 2, "@proxy", "an answer that is lost on the way loses no sandbox", "7.6",
     a_lost_answer_loses_no_sandbox},
    {"TMO-11", 2, "@proxy", "on a silent engine every call ends by its deadline", "5.4",
     a_silent_engine_holds_nobody},
    {"WIR-03", 2, "@proxy", "an engine that answers byte by byte is understood", "8.1",
     pieces_on_the_way_change_nothing, 3},
    {0},
};
