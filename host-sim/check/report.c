#include "check/report.h"

#include <stdio.h>
#include <string.h>

#include "error.h"

void report_begin(guint cases)
{
    printf("TAP version 14\n1..%u\n", cases);
    fflush(stdout);
}

void report_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = hs_one_line(text);
    printf("# %s\n", line);
    fflush(stdout);
}

void report_bail_out(const char *why)
{
    g_autofree char *line = hs_one_line(why);
    printf("Bail out! %s\n", line);
    fflush(stdout);
}

/* In a TAP description '#' begins a directive. */
static char *escape(const char *text)
{
    g_autofree char *line = hs_one_line(text);
    g_autoptr(GString) escaped = g_string_new(line);
    g_string_replace(escaped, "\\", "\\\\", 0);
    g_string_replace(escaped, "#", "\\#", 0);
    return g_strdup(escaped->str);
}

static void print_yaml_text(const char *key, const char *text)
{
    g_autofree char *line = hs_one_line(text);
    g_autoptr(GString) quoted = g_string_new(line);
    g_string_replace(quoted, "'", "''", 0);
    printf("  %s: '%s'\n", key, quoted->str);
}

static void print_output(const char *output)
{
    g_auto(GStrv) lines = g_strsplit(output, "\n", -1);
    printf("  output: |\n");
    for (char **line = lines; *line; line++) {
        g_autofree char *safe = hs_one_line(*line);
        if (*safe)
            printf("    %s\n", safe);
    }
}

static void print_details(const CheckResult *result)
{
    printf("  ---\n  verdict: %s\n", job_verdict_name(result->verdict));
    if (result->message)
        print_yaml_text("message", result->message);
    printf(
        "  clause: docs/abi.md#%s\n  level: %d\n  assertions: %d\n  duration_ms: %" G_GINT64_FORMAT
        "\n",
        result->clause, result->level, result->asserted, result->took_ms);
    if (*result->output)
        print_output(result->output);
    printf("  ...\n");
}

/* What stands behind the description of a case that did not simply pass or fail. */
static const char *directive(JobVerdict verdict)
{
    return verdict == JOB_SKIP ? " # SKIP " : verdict == JOB_KNOWN ? " # TODO " : NULL;
}

void report_case(guint number, const CheckResult *result)
{
    bool failed = job_verdict_counts(result->verdict) == JOB_COUNTS_FAILED;
    bool is_known = result->verdict == JOB_KNOWN; /* TAP wants "not ok" with its TODO */
    g_autofree char *sentence = escape(result->sentence);
    printf("%sok %u - %s %s", failed || is_known ? "not " : "", number, result->id, sentence);
    if (directive(result->verdict)) {
        g_autofree char *reason = escape(result->message);
        printf("%s%s", directive(result->verdict), reason);
    }
    printf("\n");
    if (failed || result->verdict == JOB_WARN)
        print_details(result);
    fflush(stdout);
}

void report_end(const CheckRun *run)
{
    printf("%d passed, %d failed, %d skipped\n", run->passed, run->failed, run->skipped);
    fflush(stdout);
}
