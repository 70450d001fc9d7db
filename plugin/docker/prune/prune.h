/*
 * Removes what this plugin made and nobody owns any more: containers, folders of the direct socket,
 * volumes with the supervisor's program, images of templates. Never anything that has not our
 * labels, nor what is in use. Called by glue; blocking, any thread and several at once.
 */
#pragma once

#include "sandbox/context.h"
#include "supervised/prune_report.h"

/* What can't be removed is told and does not stop the others; the first such error is the answer.
 */
bool dkr_prune(const DkrContext *context, const DkrPruneOptions *options, const SprWait *wait,
               DkrPruneTellFn tell, void *tell_ctx, GError **error);
