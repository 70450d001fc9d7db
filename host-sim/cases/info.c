/* What a provider tells of its sandboxes. */
#include "cases/cases.h"

#include <jansson.h>
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

/* ---- of the provider itself */

typedef struct {
    guint calls;
    json_t *last;
    guint removed;
} Told;

static void take_object(void *ctx, const char *text, size_t size)
{
    Told *told = ctx;
    told->calls++;
    told->last = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    CHECK_THAT(json_is_object(told->last), "no JSON object: %.*s", (int)size, text);
    told->removed += json_is_true(json_object_get(told->last, "removed"));
}

static const char *member(json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static void provider_tells_its_engine(void)
{
    Told told = {0};
    CHECK_STATUS(
        case_lib()->provider->info(case_provider(), NULL, take_object, &told, case_error()),
        SPROV_OK);
    CHECK_INT(told.calls, 1);
    json_t *engine = json_object_get(told.last, "engine");
    CHECK_THAT(*member(engine, "name"), "there is no name of the engine");
    CHECK_THAT(*member(engine, "version"), "there is no version of the engine");
}

static sprov_status prune(const char *options, Told *told)
{
    return case_lib()->provider->prune(case_provider(), options, NULL, take_object, told,
                                       case_error());
}

static void prune_leaves_what_is_owned(void)
{
    Told told = {0};
    const char *token = case_token();
    const char *labels = case_text("\"labels\":{\"case\":\"%s\"}", token);
    sprov_sandbox *sandbox = case_fresh(case_text("{%s}", labels));
    CHECK_STATUS(prune(case_text("{\"dryRun\":true,%s}", labels), &told), SPROV_OK);
    CHECK_INT(told.removed, 0);
    told = (Told){0};
    CHECK_STATUS(prune(case_text("{\"olderThan\":0,%s}", labels), &told), SPROV_OK);
    CHECK_INT(told.calls, 1);
    CHECK_INT(told.removed, 0);
    CHECK_TEXT(case_bytes(member(told.last, "kind")), "sandbox");
    CHECK_TEXT(case_bytes(member(told.last, "id")), case_id(sandbox));
    CHECK_THAT(*member(told.last, "reason"), "nothing says why it stays");
    CHECK_TEXT(case_sh(sandbox, "echo %s", token).out, case_text("%s\n", token));
    told = (Told){0};
    CHECK_STATUS(prune(case_text("{\"%s\":1}", token), &told), SPROV_E_INVALID_ARGUMENT);
    CHECK_THAT(strstr(case_last_error()->message, token) != NULL, "the key is not named: %s",
               case_last_error()->message);
    CHECK_INT(told.calls, 0);
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
    {"INF-07", 1, "provider", "the provider tells name and version of its engine", "1.8",
     provider_tells_its_engine},
    {"INF-08", 2, "provider", "a prune leaves what a living host owns, and a dry one leaves all",
     "14.4", prune_leaves_what_is_owned},
    {0},
};
