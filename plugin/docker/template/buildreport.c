#include "template/buildreport.h"

#include "base/text.h"
#include "template/canonical.h"

#include <string.h>

#define EXCERPT_BYTES 200

/* ------------------------------------------------------------------------ progress */

static char *take_text(json_t *object)
{
    GString *text = g_string_new(NULL);
    dkr_canonical_append(text, object);
    json_decref(object);
    return g_string_free(text, FALSE);
}

static void emit(const DkrBuildReport *report, json_t *object)
{
    g_autofree char *text = take_text(object);
    if (report->on_progress)
        report->on_progress(report->progress_ctx, text);
}

static void on_step(void *ctx, guint step, const char *name, DkrStepStatus status)
{
    static const char *const words[] = {
        [DKR_STEP_STARTED] = "started",
        [DKR_STEP_CACHED] = "cached",
        [DKR_STEP_DONE] = "done",
        [DKR_STEP_FAILED] = "failed",
    };
    emit(ctx, json_pack("{s:s, s:i, s:s, s:s}", "type", "build-step", "step", (int)step, "name",
                        name, "status", words[status]));
}

static void on_log(void *ctx, guint step, int stream, const char *text)
{
    emit(ctx, json_pack("{s:s, s:i, s:s, s:s}", "type", "build-log", "step", (int)step, "stream",
                        stream == 2 ? "stderr" : "stdout", "text", text));
}

static void on_layer(void *ctx, guint step, const DkrLayer *layer)
{
    json_t *object =
        json_pack("{s:s, s:i, s:s, s:I, s:b}", "type", "build-layer", "step", (int)step, "layer",
                  layer->id, "current", (json_int_t)layer->current, "done", layer->done);
    if (layer->total > 0)
        json_object_set_new(object, "total", json_integer(layer->total));
    emit(ctx, object);
}

/* A record that cannot be read costs a line of progress, never the build. */
static void on_trace(void *ctx, const void *record, gsize size)
{
    DkrBuildReport *report = ctx;
    dkr_progress_feed(report->progress, record, size, NULL);
}

static void on_text(void *ctx, const char *text)
{
    DkrBuildReport *report = ctx;
    dkr_classic_feed(report->classic, text);
}

/* ------------------------------------------------------------------------- failure */

/* What stands in the shell's place of an exec form, when the engine left its JSON whole. */
static char *shell_text_of(const char *command)
{
    json_auto_t *words = json_loads(command, 0, NULL);
    const char *shell = json_string_value(json_array_get(words, 0));
    const char *text = json_string_value(json_array_get(words, 2));
    if (json_array_size(words) != 3 || g_strcmp0(shell, "/bin/sh") != 0)
        return NULL;
    return g_strdup(text);
}

/* "[stage 2/3] RUN false" is the command "false" for whoever wrote it. */
static char *command_of(const char *name)
{
    const char *bracket = name[0] == '[' ? strstr(name, "] ") : NULL;
    const char *command = bracket ? bracket + 2 : name;
    if (!g_str_has_prefix(command, "RUN "))
        return g_strdup(command);
    char *text = shell_text_of(command + 4);
    return text ? text : g_strdup(command + 4);
}

/* Short, and without what would move a terminal's cursor. */
static char *excerpt(const char *text)
{
    char buffer[EXCERPT_BYTES];
    bool whole = spr_copy_text(buffer, sizeof buffer, text);
    for (char *p = buffer; *p; p++)
        if (g_ascii_iscntrl(*p))
            *p = ' ';
    return g_strconcat(buffer, whole ? "" : "...", NULL);
}

static char *last_line(const char *text)
{
    g_autofree char *copy = g_strchomp(g_strdup(text));
    const char *line = strrchr(copy, '\n');
    return excerpt(line ? line + 1 : copy);
}

static char *explain(const DkrStepFailure *failure, const char *whole_command)
{
    g_autofree char *command = excerpt(whole_command);
    g_autofree char *said = last_line(failure->exit_code >= 0 ? failure->output : failure->message);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "step \"%s\" failed", command);
    if (failure->exit_code >= 0)
        g_string_append_printf(text, " with exit code %d", failure->exit_code);
    if (*said)
        g_string_append_printf(text, ": %s", said);
    return g_string_free(text, FALSE);
}

bool dkr_build_report_fail(const DkrBuildReport *report, GError **error)
{
    dkr_classic_fail(report->classic, dkr_build_stream_error_code(report->stream),
                     dkr_build_stream_error(report->stream));
    dkr_progress_finish(report->progress);
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(report->progress);
    g_autofree char *command = failure ? command_of(failure->name) : NULL;
    g_autofree char *why =
        failure ? explain(failure, command)
                : spr_redact(report->redactor, dkr_build_stream_error(report->stream));
    const char *output = failure ? failure->output : "";
    json_t *object = json_pack("{s:s}", "type", "failure");
    json_t *detail = json_pack("{s:s, s:n, s:n, s:n, s:s}", "templateId", report->template_id,
                               "step", "command", "exitCode", "output", output);
    if (failure) {
        json_t *step = json_integer(failure->step);
        json_object_set(object, "step", step);
        json_object_set_new(detail, "step", step);
        json_object_set_new(detail, "command", json_string(command));
    }
    if (failure && failure->exit_code >= 0) {
        json_object_set_new(object, "exitCode", json_integer(failure->exit_code));
        json_object_set_new(detail, "exitCode", json_integer(failure->exit_code));
    }
    json_object_set_new(object, "output", json_string(output));
    emit(report, object);
    spr_fail(error, SPR_E_BUILD, failure ? "step-failed" : "build-failed", "template %s: %s",
             report->template_id, why);
    spr_error_take_detail(error, take_text(detail));
    return false;
}

/* --------------------------------------------------------------------------- report */

DkrBuildReport *dkr_build_report_new(const char *template_id, DkrReportFn on_progress, void *ctx)
{
    static const DkrProgressVisitor visitor = {.step = on_step, .log = on_log, .layer = on_layer};
    DkrBuildReport *report = g_new0(DkrBuildReport, 1);
    report->template_id = template_id;
    report->on_progress = on_progress;
    report->progress_ctx = ctx;
    report->redactor = spr_redactor_new();
    report->stream = dkr_build_stream_new(on_trace, on_text, report);
    report->progress = dkr_progress_new(&visitor, report, report->redactor);
    report->classic = dkr_classic_new(report->progress);
    return report;
}

void dkr_build_report_free(DkrBuildReport *report)
{
    if (!report)
        return;
    dkr_classic_free(report->classic);
    dkr_progress_free(report->progress);
    dkr_build_stream_free(report->stream);
    spr_redactor_free(report->redactor);
    g_free(report);
}
