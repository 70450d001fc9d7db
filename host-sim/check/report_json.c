/*
 * A run as a JSON object and back. The format is told in docs/conformance.md.
 */
#include "check/run.h"

#include <string.h>

#include "error.h"

#define FORMAT "sprov-conformance/1"

static json_t *text(const char *from)
{
    return from ? json_string(from) : json_null();
}

static json_t *of_result(const CheckResult *result)
{
    json_t *object = json_object();
    json_object_set_new(object, "id", text(result->id));
    json_object_set_new(object, "verdict", text(job_verdict_name(result->verdict)));
    json_object_set_new(object, "message", text(result->message));
    json_object_set_new(object, "sentence", text(result->sentence));
    json_object_set_new(object, "clause", text(result->clause));
    json_object_set_new(object, "gate", text(result->gate));
    json_object_set_new(object, "level", json_integer(result->level));
    json_object_set_new(object, "assertions", json_integer(result->asserted));
    json_object_set_new(object, "begun_ms", json_integer(result->begun_ms));
    json_object_set_new(object, "duration_ms", json_integer(result->took_ms));
    if (*result->output)
        json_object_set_new(object, "output", text(result->output));
    return object;
}

char *check_report_json(const CheckRun *run)
{
    json_t *cases = json_array();
    for (guint i = 0; i < run->results->len; i++)
        json_array_append_new(cases, of_result(run->results->pdata[i]));
    json_t *root = json_pack("{s:s, s:{s:i, s:i, s:i, s:I}, s:O, s:O, s:o}", "format", FORMAT,
                             "totals", "passed", run->passed, "failed", run->failed, "skipped",
                             run->skipped, "duration_ms", (json_int_t)run->took_ms, "environment",
                             run->environment, "gates", run->gates, "cases", cases);
    char *dumped = json_dumps(root, JSON_INDENT(1));
    char *page = g_strconcat(dumped, "\n", NULL);
    free(dumped);
    json_decref(root);
    return page;
}

/* ---- and back */

static char *member(json_t *object, const char *key)
{
    return g_strdup(json_string_value(json_object_get(object, key)));
}

static bool to_result(json_t *object, CheckResult **ret_result)
{
    g_autoptr(CheckResult) result = g_new0(CheckResult, 1);
    g_autofree char *verdict = member(object, "verdict");
    result->id = member(object, "id");
    result->sentence = member(object, "sentence");
    result->clause = member(object, "clause");
    result->gate = member(object, "gate");
    result->message = member(object, "message");
    result->output = member(object, "output");
    if (!result->output)
        result->output = g_strdup("");
    result->level = (int)json_integer_value(json_object_get(object, "level"));
    result->asserted = (int)json_integer_value(json_object_get(object, "assertions"));
    result->begun_ms = json_integer_value(json_object_get(object, "begun_ms"));
    result->took_ms = json_integer_value(json_object_get(object, "duration_ms"));
    if (!result->id || !result->sentence || !result->clause || !result->gate || !verdict ||
        !job_verdict_parse(verdict, &result->verdict))
        return false;
    *ret_result = g_steal_pointer(&result);
    return true;
}

static bool fill(CheckRun *run, json_t *root, const char *path, GError **error)
{
    size_t i;
    json_t *object;
    json_t *environment = json_object_get(root, "environment");
    json_t *gates = json_object_get(root, "gates");
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, FORMAT) != 0)
        return hs_fail(error, HS_USAGE,
                       "%s is no report of this suite: give one that host-sim check --json wrote",
                       path);
    json_object_update(run->environment, environment);
    json_object_update(run->gates, gates);
    json_t *totals = json_object_get(root, "totals");
    run->took_ms = json_integer_value(json_object_get(totals, "duration_ms"));
    json_array_foreach(json_object_get(root, "cases"), i, object)
    {
        CheckResult *result = NULL;
        if (!to_result(object, &result))
            return hs_fail(error, HS_USAGE, "%s: case %u of the report is not whole", path,
                           (guint)i + 1);
        check_run_add(run, result);
    }
    return true;
}

bool check_report_read(const char *path, CheckRun **ret_run, GError **error)
{
    json_error_t wrong;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &wrong);
    if (!root)
        return hs_fail(error, HS_USAGE, "%s: %s (line %d)", path, wrong.text, wrong.line);
    g_autoptr(CheckRun) run = check_run_new();
    bool filled = fill(run, root, path, error);
    json_decref(root);
    if (filled)
        *ret_run = g_steal_pointer(&run);
    return filled;
}
