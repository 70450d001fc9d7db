/* What a provider tells of its sandboxes. */
#include "cases/cases.h"

#include <string.h>

static void info_tells_who_it_is(void)
{
    g_autoptr(GDateTime) before = g_date_time_new_now_utc();
    const char *name = case_text("name-%s", case_token());
    sprov_sandbox *sandbox = case_fresh(case_text("{\"name\":\"%s\"}", name));
    CHECK_TEXT(case_bytes(case_info(sandbox, "id")), case_id(sandbox));
    CHECK_TEXT(case_bytes(case_info(sandbox, "name")), name);
    CHECK_TEXT(case_bytes(case_info(sandbox, "provider")), case_lib()->entry->descriptor->id);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
    Ran ran = case_sh(sandbox, "pwd");
    CHECK_TEXT(ran.out, case_text("%s\n", case_info(sandbox, "workingDirectory")));
    const char *created = case_info(sandbox, "createdAt");
    g_autoptr(GDateTime) made = g_date_time_new_from_iso8601(created, NULL);
    CHECK_THAT(made != NULL && g_str_has_suffix(created, "Z"), "createdAt is no UTC time: %s",
               created);
    /* The engine has its own clock: a minute is little. */
    double age = (double)g_date_time_difference(made, before) / G_TIME_SPAN_SECOND;
    CHECK(age >= -60 && age <= 60 + (double)case_within(0) / 1000);
}

static void status_follows(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "pending");
    case_start(sandbox);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
    sprov_sandbox *other = case_handle(case_id(sandbox), NULL, NULL);
    CHECK_TEXT(case_bytes(case_info(other, "status")), "running");
    CHECK_STATUS(case_lib()->lifecycle->stop(other, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "stopped");
    case_start(sandbox);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
}

static void instructions_may_be_ones_own(void)
{
    const char *token = case_token();
    sprov_sandbox *usual = case_create(NULL);
    const char *instructions = case_describe(usual, "instructions");
    CHECK_THAT(strstr(instructions, case_describe(usual, "workingDirectory")) != NULL,
               "the instructions do not name the working directory: %s", instructions);
    sprov_sandbox *own = case_create(case_text("{\"instructions\":\"do %s\"}", token));
    CHECK_TEXT(case_bytes(case_describe(own, "instructions")), case_text("do %s", token));
    sprov_sandbox *none = case_create("{\"instructions\":\"\"}");
    CHECK_TEXT(case_bytes(case_describe(none, "instructions")), "");
}

static void list_tells_all(void)
{
    sprov_sandbox *one = case_fresh(NULL);
    sprov_sandbox *two = case_fresh(NULL);
    sprov_sandbox *never = case_create(NULL);
    CHECK_STATUS(case_lib()->lifecycle->stop(two, NULL, case_error()), SPROV_OK);
    CHECK_INT(case_count_listed(case_id(one)), 1);
    CHECK_INT(case_count_listed(case_id(two)), 1);
    CHECK_INT(case_count_listed(case_id(never)), 0);
    case_destroy(one);
    CHECK_INT(case_count_listed(case_id(one)), 0);
}

const Case cases_info[] = {
    {"INF-01", 1, "lifecycle", "info() tells id, name, provider, status, directory and time", "1.5",
     info_tells_who_it_is},
    {"INF-04", 2, "lifecycle", "the status follows the sandbox, whoever changed it", "1.5",
     status_follows},
    {"INF-05", 2, "lifecycle", "the instructions name the directory, or are one's own", "7.2",
     instructions_may_be_ones_own},
    {"INF-06", 1, "lifecycle", "list() tells running and stopped sandboxes, no others", "1.5",
     list_tells_all},
    {0},
};
