/* Faults on the way to the engine, made by the hook proxy. A provider may have other ways for some
 * calls: what holds is that nothing false is told, and that nobody waits for ever. */
#include "cases/cases.h"

#include <string.h>

static sprov_provider *open_with(const char *fault)
{
    return case_open(NULL, case_hook_proxy(fault));
}

static sprov_sandbox *start_with(const char *fault)
{
    sprov_sandbox *sandbox = case_handle(case_new_id(), NULL, open_with(fault));
    case_start(sandbox);
    return sandbox;
}

/* Another way to the same sandbox, without a fault. */
static sprov_sandbox *by_a_good_way(sprov_sandbox *sandbox)
{
    return case_handle(case_id(sandbox), NULL, NULL);
}

/* ---- pieces */

static void odd_pieces_change_nothing(void)
{
    sprov_sandbox *sandbox = start_with("pieces");
    CaseBytes noise = case_noise(case_random(20000, 40000));
    case_write(sandbox, "file", noise, 0);
    CHECK_BYTES(case_read(sandbox, "file"), noise);
    Ran ran = case_sh(sandbox, "cat file; cat file >&2; exit 7");
    CHECK_BYTES(ran.out, noise);
    CHECK_BYTES(ran.err, noise);
    CHECK_INT(ran.result.exit_code, 7);
}

static void large_heads_are_read(void)
{
    sprov_sandbox *sandbox = start_with("large-heads");
    const char *token = case_token();
    CHECK_TEXT(case_sh(sandbox, "echo %s", token).out, case_text("%s\n", token));
}

/* ---- cuts */

/* Success is the whole, and what is not the whole is told. */
static void a_cut_is_no_success(void)
{
    sprov_sandbox *sandbox = start_with("cut");
    CaseBytes noise = case_noise(200000);
    sprov_sandbox *good = by_a_good_way(sandbox);
    case_write(good, "file", noise, 0);
    for (int i = 0; i < 3; i++) {
        sprov_exec_request request = case_command("cat file; exit 3");
        Ran ran = case_exec(sandbox, &request, NULL);
        CHECK_STATUS(ran.status, ran.status);
        CHECK_THAT(ran.out.size <= noise.size &&
                       memcmp(ran.out.data, noise.data, ran.out.size) == 0,
                   "the output is another");
        if (ran.status == SPROV_OK && !(ran.result.flags & SPROV_EXEC_UNCONFIRMED)) {
            CHECK_INT(ran.out.size, noise.size);
            CHECK_INT(ran.result.exit_code, 3);
        }
        CaseBytes bytes;
        sprov_status status = case_try_read(sandbox, "file", &bytes);
        CHECK_STATUS(status, status);
        if (status == SPROV_OK)
            CHECK_BYTES(bytes, noise);
    }
    CHECK_BYTES(case_read(good, "file"), noise);
}

/* ---- silence */

static void a_command_on_a_silent_way_ends(void)
{
    sprov_sandbox *sandbox =
        case_handle(case_id(case_fresh(NULL)), NULL, open_with("stall-output"));
    sprov_exec_request request = case_command("echo begun; sleep 300");
    request.run_timeout_ms = 1500;
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 6000;
    Ran ran = case_exec(sandbox, &request, &call);
    CHECK_THAT(ran.status != SPROV_OK || ran.result.flags & SPROV_EXEC_TIMED_OUT,
               "it ended by itself, with exit code %d", ran.result.exit_code);
    CHECK_STATUS(ran.status, ran.status);
    CHECK(ran.ms <= case_within(6000 + 3000));
    case_destroy(sandbox);
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(sandbox)) == 0);
}

static void what_is_known_is_told_without_the_engine(void)
{
    sprov_provider *provider = open_with("stall");
    const char *token = case_token();
    sprov_sandbox *sandbox =
        case_handle(case_new_id(), case_text("{\"name\":\"%s\"}", token), provider);
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 1500;
    gint64 begin = case_now_ms();
    CHECK_STATUS(case_api()->start(sandbox, &call, NULL, case_error()), SPROV_E_TIMEOUT);
    CHECK_TEXT(case_bytes(case_describe(sandbox, "id")), case_id(sandbox));
    CHECK_TEXT(case_bytes(case_describe(sandbox, "name")), token);
    CHECK(strcmp(case_describe(sandbox, "status"), "running") != 0);
    CHECK(case_on_time(begin, 1500));
    case_abandon(sandbox);
}

/* ---- wrong answers */

static void try_with(const char *fault, const char *told)
{
    sprov_sandbox *sandbox = case_handle(case_new_id(), NULL, open_with(fault));
    gint64 begin = case_now_ms();
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    CHECK_THAT(status != SPROV_OK, "start() with %s is a success", fault);
    CHECK_STATUS(status, status); /* holds the error to its rules */
    CHECK_THAT(!told || strstr(case_last_error()->message, told), "%s is not told: %s", told,
               case_last_error()->message);
    CHECK_THAT(case_on_time(begin, 10000), "with %s it took %" G_GINT64_FORMAT " ms", fault,
               case_now_ms() - begin);
    case_abandon(sandbox);
}

static void errors_of_any_form_are_told(void)
{
    try_with("error-json", "on fire");
    try_with("error-text", "on fire");
    try_with("error-page", NULL);
    try_with("error-huge", NULL);
}

static void answers_that_are_none_are_errors(void)
{
    try_with("garbage", NULL);
    try_with("half", NULL);
    try_with("wrong-type", NULL);
}

/* ---- everything at once */

#define CALLS 60

static void make_call(sprov_sandbox *sandbox)
{
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 8000;
    sprov_exec_request request = case_command("echo some; exit 5");
    CaseBytes bytes = case_bytes("");
    gint64 begin = case_now_ms();
    sprov_status status = SPROV_OK;
    switch (case_random(0, 3)) {
    case 0: {
        Ran ran = case_exec(sandbox, &request, &call);
        status = ran.status;
        if (status == SPROV_OK && !(ran.result.flags & SPROV_EXEC_UNCONFIRMED)) {
            CHECK_INT(ran.result.exit_code, 5);
            CHECK_TEXT(ran.out, "some\n");
        }
        break;
    }
    case 1:
        status = case_try_write(sandbox, "file", case_bytes("all of it"), 0);
        break;
    case 2:
        status = case_try_read(sandbox, "file", &bytes);
        if (status == SPROV_OK)
            CHECK_TEXT(bytes, "all of it");
        break;
    default:
        status = case_api()->start(sandbox, &call, NULL, case_error());
    }
    CHECK_STATUS(status, status);
    CHECK_THAT(case_on_time(begin, 30000), "a call took %" G_GINT64_FORMAT " ms",
               case_now_ms() - begin);
}

static void a_bad_line_is_survived(void)
{
    sprov_sandbox *sandbox = case_handle(case_new_id(), NULL, open_with("flaky"));
    for (int i = 0; i < CALLS; i++)
        make_call(sandbox);
    sprov_sandbox *good = by_a_good_way(sandbox);
    case_start(good);
    CHECK_TEXT(case_sh(good, "echo well").out, "well\n");
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(good)) == 1);
    case_destroy(good);
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(good)) == 0);
}

const Case cases_way[] = {
    {"EXE-14", 2, "@proxy", "an engine that answers in odd pieces is understood", "8.1",
     odd_pieces_change_nothing, 3},
    {"EXE-27", 3, "@proxy", "a connection that is cut is no success of what it carried", "8.1",
     a_cut_is_no_success, 2},
    {"TMO-10", 2, "@proxy",
     "a command whose output stalls ends by its deadline, and can be destroyed", "5.4",
     a_command_on_a_silent_way_ends, 2},
    {"INF-03", 2, "lifecycle @proxy", "what is known is told while the engine is silent", "5.4",
     what_is_known_is_told_without_the_engine},
    {"WIR-02", 2, "@proxy", "errors of the engine are told, whatever their form and size", "6.2",
     errors_of_any_form_are_told, 2},
    {"WIR-04", 3, "@proxy", "heads of 64 KiB behind interim answers are read", "8.1",
     large_heads_are_read, 2},
    {"WIR-05", 2, "@proxy", "answers that are none are errors", "6.2",
     answers_that_are_none_are_errors, 2},
    {"WIR-09", 3, "@proxy", "on a bad line every call ends, and nothing is left in the end", "7.6",
     a_bad_line_is_survived, 6},
    {0},
};
