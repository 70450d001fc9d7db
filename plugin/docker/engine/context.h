/*
 * The contexts that the docker command keeps: which one is current, and where one leads. Reads the
 * files below a configuration folder, any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *host;
    bool skip_verify;
    char *ca, *cert, *key; /* paths of files that are there, or NULL */
} DkrContextEndpoint;

/* *ret_name is NULL when none is chosen, or there is no config.json. */
bool dkr_context_current(const char *folder, char **ret_name, GError **error);

/* SPR_E_INVALID_ARGUMENT, reason "no-context", when there is none of this name or it has no docker
 * endpoint. */
bool dkr_context_read(const char *folder, const char *name, DkrContextEndpoint **ret_endpoint,
                      GError **error);
void dkr_context_endpoint_free(DkrContextEndpoint *endpoint);

/* The path of a file in folder, if there is one, else NULL. */
char *dkr_context_file(const char *folder, const char *name);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrContextEndpoint, dkr_context_endpoint_free)
