/*
 * What is told of each thing that a prune finds, and the first error of those that could not be
 * removed. For the code of each provider that looks for them; one prune, one thread.
 */
#pragma once

#include "supervised/prune_rules.h"

/* One JSON object (schema/pruned.json) for a thing that was found. */
typedef void (*DkrPruneTellFn)(void *ctx, const char *json);

typedef struct {
    const DkrPruneOptions *options;
    DkrPruneTellFn tell;
    void *tell_ctx;
    GError *failure; /* the first, which is the call's */
} DkrPruneReport;

typedef struct {
    DkrPruneKind kind;
    const char *name;
    const char *id;      /* of a sandbox, or NULL */
    const char *created; /* RFC 3339, or NULL */
    DkrOwnerState owner;
    gint64 age_ms;
} DkrPruneFound;

/* Fills in when it was made and by whom, as it is kept with it (both may be NULL); age 0 when that
 * does not tell. */
void dkr_prune_take_origin(DkrPruneFound *found, const char *created, const char *owner);

/* Whether it is to be removed now. Tells of one that is not: kept for its owner, or a dry run. */
bool dkr_prune_is_due(DkrPruneReport *report, const DkrPruneFound *found);

/* keeps: who needs it, NULL when it was removed. */
void dkr_prune_tell_done(DkrPruneReport *report, const DkrPruneFound *found, const char *keeps);

/* It could not be removed; one that is in use after all is kept. Takes why over. */
void dkr_prune_tell_failed(DkrPruneReport *report, const DkrPruneFound *found, GError *why);
