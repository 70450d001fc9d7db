/*
 * The provider's configuration: what open() is given as JSON. Called by glue in open(); pure, any
 * thread. What an address means is engine/endpoint's business.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *host;        /* the engine's address; NULL when it was not given */
    char *runtime_dir; /* absolute, the folder for sockets; NULL when it was not given */
} DkrProviderConfig;

/* json NULL is "{}". */
bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error);

void dkr_provider_config_free(DkrProviderConfig *config);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrProviderConfig, dkr_provider_config_free)
