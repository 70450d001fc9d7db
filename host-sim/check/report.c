#include "check/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- files */

/* A device, a pipe or a link, which a new file must not replace. */
static bool is_special(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool fail_file(const char *path, GError **error)
{
    return hs_fail(error, HS_USAGE, "the report %s cannot be written: %s", path, g_strerror(errno));
}

bool report_write(const char *path, const char *page, GError **error)
{
    if (!is_special(path))
        return g_file_set_contents(path, page, -1, error);
    FILE *file = fopen(path, "we");
    bool is_written = file && fputs(page, file) >= 0;
    if (file && fclose(file) != 0)
        is_written = false;
    return is_written || fail_file(path, error);
}

bool report_can_be_written(const char *path, GError **error)
{
    if (is_special(path))
        return access(path, W_OK) == 0 || fail_file(path, error);
    if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
        errno = EISDIR;
        return fail_file(path, error);
    }
    g_autofree char *beside = g_strconcat(path, ".XXXXXX", NULL); /* as it will be made */
    int fd = g_mkstemp(beside);
    if (fd < 0)
        return fail_file(path, error);
    close(fd);
    unlink(beside);
    return true;
}
