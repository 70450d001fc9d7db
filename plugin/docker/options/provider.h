/*
 * The provider's configuration: what open() is given as JSON. Called by glue in open(); pure, any
 * thread. The environment is not its business, but a host address from there is checked by the
 * same function.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *socket_path; /* of the engine, absolute; NULL when "host" was not given */
} DkrProviderConfig;

/* json NULL is "{}". */
bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error);

void dkr_provider_config_free(DkrProviderConfig *config);

/* The path in "unix:///path". origin ("host", "DOCKER_HOST") names the value in errors; other
 * schemes are SPR_E_UNSUPPORTED. */
bool dkr_provider_host_parse(const char *host, const char *origin, char **ret_socket_path,
                             GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrProviderConfig, dkr_provider_config_free)
