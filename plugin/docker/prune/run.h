/*
 * One prune: options and census, and what is told of each thing that was found. Private to prune/;
 * one thread.
 */
#pragma once

#include "prune/prune.h"
#include "prune/rules.h"

#include <jansson.h>

typedef struct {
    const DkrContext *context;
    const DkrPruneOptions *options;
    const SprWait *wait;
    DkrPruneTellFn tell;
    void *tell_ctx;
    json_t *containers;  /* all of the engine, as it lists them */
    GHashTable *removed; /* ids of those that are gone by now */
    GError *failure;     /* the first, which is the call's */
} DkrPruneRun;

typedef struct {
    DkrPruneKind kind;
    const char *name;
    const char *id;      /* of a sandbox, or NULL */
    const char *created; /* RFC 3339, or NULL */
    DkrOwnerState owner;
    gint64 age_ms;
} DkrPruneFound;

/* The owner and age that labels tell; age 0 when they tell none. */
void dkr_prune_take_labels(DkrPruneFound *found, const json_t *labels);

/* Whether it is to be removed now. Tells of one that is not: kept for its owner, or a dry run. */
bool dkr_prune_is_due(DkrPruneRun *run, const DkrPruneFound *found);

/* keeps: who needs it, NULL when it was removed. */
void dkr_prune_tell_done(DkrPruneRun *run, const DkrPruneFound *found, const char *keeps);

/* It could not be removed; one that is in use after all is kept. Takes why over. */
void dkr_prune_tell_failed(DkrPruneRun *run, const DkrPruneFound *found, GError *why);

/* Each: false when the run has to end, with run->failure. */
bool dkr_prune_sandboxes(DkrPruneRun *run);
bool dkr_prune_folders(DkrPruneRun *run, char *const *folders);
bool dkr_prune_volumes(DkrPruneRun *run);
bool dkr_prune_templates(DkrPruneRun *run);
