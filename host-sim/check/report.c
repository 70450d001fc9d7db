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

static void print_details(const Case *one, const Job *job)
{
    printf("  ---\n  verdict: %s\n", job_verdict_name(job->verdict));
    if (job->message)
        print_yaml_text("message", job->message);
    printf(
        "  clause: docs/abi.md#%s\n  level: %d\n  assertions: %d\n  duration_ms: %" G_GINT64_FORMAT
        "\n",
        one->clause, one->level, job->asserted, job->took_ms);
    if (job->output->len > 0) {
        g_auto(GStrv) lines = g_strsplit(job->output->str, "\n", -1);
        printf("  output: |\n");
        for (char **line = lines; *line; line++) {
            g_autofree char *safe = hs_one_line(*line);
            if (*safe)
                printf("    %s\n", safe);
        }
    }
    printf("  ...\n");
}

void report_case(Report *report, guint number, const Case *one, const Job *job)
{
    bool failed = job->verdict != JOB_PASS && job->verdict != JOB_SKIP;
    g_autofree char *sentence = escape(one->sentence);
    printf("%sok %u - %s %s", failed ? "not " : "", number, one->id, sentence);
    if (job->verdict == JOB_SKIP) {
        g_autofree char *reason = escape(job->message);
        printf(" # SKIP %s", reason);
    }
    printf("\n");
    if (failed)
        print_details(one, job);
    fflush(stdout);
    *(failed                     ? &report->failed
      : job->verdict == JOB_SKIP ? &report->skipped
                                 : &report->passed) += 1;
}

void report_end(const Report *report)
{
    printf("%d passed, %d failed, %d skipped\n", report->passed, report->failed, report->skipped);
    fflush(stdout);
}
