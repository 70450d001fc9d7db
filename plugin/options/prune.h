/*
 * What prune() of sprov.provider/1 is given as JSON, checked. Glue parses it; immutable after
 * parsing.
 */
#pragma once

#include "options/values.h"

typedef struct {
    DkrOptInt older_than; /* milliseconds */
    DkrOptBool orphans;
    DkrOptBool dry_run;
    char **only;     /* kinds, NULL-terminated; NULL: all */
    DkrPairs labels; /* that a sandbox has to have; with any, nothing but sandboxes is meant */
} DkrPruneOptions;

/* The kinds of things, in the order in which they are looked at; ends with NULL. */
extern const char *const dkr_prune_kinds[];

/* json NULL is "{}". */
bool dkr_prune_options_parse(const char *json, DkrPruneOptions **ret_options, GError **error);
void dkr_prune_options_free(DkrPruneOptions *options);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrPruneOptions, dkr_prune_options_free)

/* Whether things of this kind are meant at all. */
bool dkr_prune_options_mean(const DkrPruneOptions *options, const char *kind);
