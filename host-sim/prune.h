/*
 * What the commands that prune share: options for the extension sprov.provider/1, and a table of
 * what it found. Main thread.
 */
#pragma once

#include "session.h"

typedef struct {
    char *older_than; /* as it was typed; NULL: not given */
    char **labels;    /* NAME=VALUE; may be NULL */
    char **only;      /* may be NULL */
    gboolean orphans, dry_run, as_json;
} HsPrune;

void hs_prune_clear(HsPrune *prune);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HsPrune, hs_prune_clear)

/* The options as JSON; false when they make no sense. */
bool hs_prune_options(const HsPrune *prune, char **ret_json, GError **error);

/* Has the provider prune, and prints what came of it, also before a failure. */
bool hs_prune_run(HsSession *session, const HsPrune *prune, const char *options, GError **error);
