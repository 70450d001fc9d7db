/*
 * What prune may take: a table of the kinds of things, and the decision on one of them by its owner
 * and age. Called by prune_report.c for each thing; pure, any thread.
 */
#pragma once

#include "options/prune.h"
#include "supervised/owner.h"

typedef enum {
    DKR_PRUNE_SANDBOX,    /* with its id */
    DKR_PRUNE_HELPER,     /* a container that is never started */
    DKR_PRUNE_FOLDER,     /* of a socket, or of a sandbox that was never whole */
    DKR_PRUNE_VOLUME,     /* with a supervisor of another build */
    DKR_PRUNE_OWN_VOLUME, /* with that of one sandbox */
    DKR_PRUNE_TEMPLATE    /* an image */
} DkrPruneKind;

/* "volume" for both kinds of them, as in the options. */
const char *dkr_prune_kind_name(DkrPruneKind kind);

typedef enum {
    DKR_PRUNE_LEAVE, /* not meant by the options: not worth a word */
    DKR_PRUNE_OWNED, /* meant, but its host lives */
    DKR_PRUNE_TAKE
} DkrPruneVerdict;

/* owner: of what has one. */
DkrPruneVerdict dkr_prune_judge(const DkrPruneOptions *options, DkrPruneKind kind,
                                DkrOwnerState owner, gint64 age_ms);
