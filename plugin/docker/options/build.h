/*
 * The options of one build: what build_template() is given as JSON, checked. Glue parses and reads
 * them; immutable after parsing.
 */
#pragma once

#include "options/values.h"

typedef struct {
    char *network;     /* "default", "host" or "none"; NULL: the engine's choice, as the next */
    char *platform;    /* "linux/arm64" */
    char *cache_scope; /* NULL: none */
    DkrOptBool pull;
} DkrBuildOptions;

/* json NULL is "{}". */
bool dkr_build_options_parse(const char *json, DkrBuildOptions **ret_options, GError **error);
void dkr_build_options_free(DkrBuildOptions *options);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrBuildOptions, dkr_build_options_free)
