/*
 * What is told of a build while it runs and when it failed: progress objects, the step that failed
 * and its output, never a secret. One DkrBuildReport belongs to one build on one thread.
 */
#pragma once

#include "base/error.h"
#include "buildkit/progress.h"
#include "template/buildstream.h"
#include "template/classic.h"

/* Takes one object of schema/progress.json as text. */
typedef void (*DkrReportFn)(void *ctx, const char *json);

typedef struct {
    const char *template_id;
    DkrReportFn on_progress; /* may be NULL */
    void *progress_ctx;
    SprRedactor *redactor;  /* what may not be told; secrets may be added to it at any time */
    DkrBuildStream *stream; /* the engine's answer goes in here */
    DkrProgress *progress;
    DkrClassic *classic; /* for an engine without BuildKit */
} DkrBuildReport;

/* template_id is borrowed. */
DkrBuildReport *dkr_build_report_new(const char *template_id, DkrReportFn on_progress, void *ctx);
void dkr_build_report_free(DkrBuildReport *report);

/* Always false, with SPR_E_BUILD and a detail, for a build whose stream holds an error; tells the
 * last progress object. */
bool dkr_build_report_fail(const DkrBuildReport *report, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrBuildReport, dkr_build_report_free)
