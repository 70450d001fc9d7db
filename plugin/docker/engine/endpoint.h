/*
 * Where an engine is found. Pure parsing of what configuration and environment say; the result is
 * immutable and shared by every connection of a provider, from any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define DKR_DEFAULT_SOCKET "/var/run/docker.sock"

typedef struct {
    char *unix_path;
    char *address; /* "unix:///var/run/docker.sock", for messages */
    char *origin;  /* what chose it: "config \"host\"", "DOCKER_HOST", "default" */
} DkrEndpoint;

/* config_host and docker_host (the environment's) may be NULL or empty; the first that says
 * something counts, and a wrong one is an error, never a fallback. */
bool dkr_endpoint_resolve(const char *config_host, const char *docker_host,
                          DkrEndpoint **ret_endpoint, GError **error);

DkrEndpoint *dkr_endpoint_copy(const DkrEndpoint *endpoint);
void dkr_endpoint_free(DkrEndpoint *endpoint);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrEndpoint, dkr_endpoint_free)
