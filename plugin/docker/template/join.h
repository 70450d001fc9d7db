/*
 * One build at a time for an identity and an engine in this process: whoever wants the same while
 * it runs waits for its outcome and hears its progress from the beginning, on the own thread. When
 * the caller who does the work is cancelled, the next starts over. Any thread.
 */
#pragma once

#include "template/build.h"

typedef struct {
    const char *engine;      /* its address */
    const char *template_id; /* one build of it at a time, */
    const char *variant;     /* whose outcome is for callers with the same of this */
} DkrJoinKey;

/* Does the work, telling its progress to report. */
typedef bool (*DkrJoinWork)(void *ctx, DkrReportFn report, void *report_ctx,
                            DkrTemplateImage **ret_image, GError **error);

/* wait ends the waiting for others; work honours its own. on_progress may be NULL. */
bool dkr_join(const DkrJoinKey *key, DkrJoinWork work, void *ctx, DkrReportFn on_progress,
              void *progress_ctx, const SprWait *wait, DkrTemplateImage **ret_image,
              GError **error);
