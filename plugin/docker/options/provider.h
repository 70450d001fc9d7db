/*
 * The provider's configuration: what open() is given as JSON. Called by glue in open(); pure, any
 * thread. What an address means, and what goes together, is engine/choice's business.
 */
#pragma once

#include "options/json.h"

/* NULL and not set: it was not given. */
typedef struct {
    char *host;
    char *socket_path;
    char *protocol;
    char *username;
    DkrOptInt port;
    char *context;
    char *ca, *cert, *key, *key_secret;
    char *ssh_config;
    char *version;
    DkrPairs headers;
    DkrOptInt timeout; /* ms */
    DkrOptBool environment;
    char *runtime_dir; /* absolute, the folder for sockets */
} DkrProviderConfig;

/* json NULL is "{}". */
bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error);

/* For a table: a configuration within other options, as far as it says which engine is meant. The
 * member is a DkrProviderConfig *. */
bool dkr_provider_config_read(const json_t *value, const DkrJsonPath *path,
                              const DkrJsonField *field, void *target, GError **error);

/* Whether it says which engine it is, and not only how one is spoken to. */
bool dkr_provider_config_names_engine(const DkrProviderConfig *config);

void dkr_provider_config_free(DkrProviderConfig *config);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrProviderConfig, dkr_provider_config_free)
