/*
 * A run as JUnit XML, as CI servers read it: one suite an area.
 */
#include "check/run.h"

#include <string.h>

/* XML has no way to write most control characters. */
static char *escape(const char *from)
{
    g_autofree char *sound = g_strdup(from);
    for (char *at = sound; *at; at++) {
        if ((guchar)*at < 0x20 && !strchr("\t\n\r", *at))
            *at = '?';
    }
    return g_markup_escape_text(sound, -1);
}

static bool is_area(const CheckResult *result, const char *area)
{
    return strncmp(result->id, area, 4) == 0;
}

static void put_verdict(GString *out, const CheckResult *result)
{
    g_autofree char *message = escape(result->message ? result->message : "");
    const char *name = job_verdict_name(result->verdict);
    switch (job_verdict_counts(result->verdict)) {
    case JOB_COUNTS_SKIPPED:
        g_string_append_printf(out, "   <skipped message=\"%s\"/>\n", message);
        break;
    case JOB_COUNTS_FAILED:
        g_string_append_printf(out, "   <%s type=\"%s\" message=\"%s\"/>\n",
                               result->verdict == JOB_FAIL ? "failure" : "error", name, message);
        break;
    case JOB_COUNTS_PASSED:
        if (result->message)
            g_string_append_printf(out, "   <system-err>%s: %s</system-err>\n", name, message);
        break;
    }
}

static void put_case(GString *out, const CheckResult *result)
{
    g_autofree char *sentence = escape(result->sentence);
    g_string_append_printf(out, "  <testcase classname=\"%.3s\" name=\"%s %s\" time=\"%.3f\">\n",
                           result->id, result->id, sentence, (double)result->took_ms / 1000);
    put_verdict(out, result);
    if (*result->output && job_verdict_counts(result->verdict) == JOB_COUNTS_FAILED) {
        g_autofree char *output = escape(result->output);
        g_string_append_printf(out, "   <system-out>%s</system-out>\n", output);
    }
    g_string_append(out, "  </testcase>\n");
}

/* What ran: versions, seed, machine. CI servers look for it in each suite. */
static void put_properties(GString *out, const CheckRun *run)
{
    const char *key;
    json_t *value;
    g_string_append(out, "  <properties>\n");
    json_object_foreach(run->environment, key, value)
    {
        g_autofree char *text = escape(json_string_value(value));
        g_string_append_printf(out, "   <property name=\"%s\" value=\"%s\"/>\n", key, text);
    }
    g_string_append(out, "  </properties>\n");
}

static void put_area(GString *out, const CheckRun *run, const char *area)
{
    g_autoptr(CheckRun) part = check_run_new(); /* counts, and owns nothing */
    g_ptr_array_set_free_func(part->results, NULL);
    for (guint i = 0; i < run->results->len; i++) {
        CheckResult *result = run->results->pdata[i];
        if (is_area(result, area)) {
            check_run_add(part, result);
            part->took_ms += result->took_ms;
        }
    }
    g_string_append_printf(
        out,
        " <testsuite name=\"%.3s\" tests=\"%u\" failures=\"%d\" skipped=\"%d\" time=\"%.3f\">\n",
        area, part->results->len, part->failed, part->skipped, (double)part->took_ms / 1000);
    put_properties(out, run);
    for (guint i = 0; i < part->results->len; i++)
        put_case(out, part->results->pdata[i]);
    g_string_append(out, " </testsuite>\n");
}

char *check_report_junit(const CheckRun *run)
{
    GString *out = g_string_new("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *provider = escape(check_run_fact(run, "provider"));
    g_string_append_printf(
        out, "<testsuites name=\"%s\" tests=\"%u\" failures=\"%d\" skipped=\"%d\" time=\"%.3f\">\n",
        provider, run->results->len, run->failed, run->skipped, (double)run->took_ms / 1000);
    for (guint i = 0; i < run->results->len; i++) {
        const CheckResult *result = run->results->pdata[i];
        if (g_hash_table_add(seen, g_strndup(result->id, 4)))
            put_area(out, run, result->id);
    }
    g_string_append(out, "</testsuites>\n");
    return g_string_free(out, FALSE);
}
