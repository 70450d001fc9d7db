/*
 * One prune: options, census and report. Private to prune/; one thread.
 */
#pragma once

#include "prune/prune.h"

#include <jansson.h>

typedef struct {
    const DkrContext *context;
    DkrPruneReport report;
    const SprWait *wait;
    json_t *containers;  /* all of the engine, as it lists them */
    GHashTable *removed; /* ids of those that are gone by now */
} DkrPruneRun;

/* The owner and age that labels tell; age 0 when they tell none. */
void dkr_prune_take_labels(DkrPruneFound *found, const json_t *labels);

/* Each: false when the run has to end, with run->report.failure. */
bool dkr_prune_sandboxes(DkrPruneRun *run);
bool dkr_prune_folders(DkrPruneRun *run, char *const *folders);
bool dkr_prune_volumes(DkrPruneRun *run);
bool dkr_prune_templates(DkrPruneRun *run);
