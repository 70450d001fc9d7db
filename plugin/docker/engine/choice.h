/*
 * Which engine is meant: configuration before environment before context before default. A choice
 * that is broken is an error, never a reason to look further. Reads files, never connects.
 */
#pragma once

#include "engine/endpoint.h"

/* What the configuration says; NULL and 0 where it says nothing. */
typedef struct {
    const char *host; /* an address, or a bare name with the next three */
    const char *socket_path;
    const char *protocol; /* "http", "https", "ssh" */
    const char *username;
    int port;
    const char *context;
    const char *ca, *cert, *key; /* DkrTlsSource */
    const char *key_text;        /* in place of key: the key itself, from the host */
    const char *ssh_config;
    const char *version;        /* "1.43", "v1.43" */
    const char *const *headers; /* NULL-terminated "Name: value" */
    gint64 timeout_ms;
    bool ignores_environment; /* it chooses nothing, and is what ssh is started with all the same */
} DkrWish;

/* environment is "NAME=value", NULL-terminated: the process's when the provider was opened. */
bool dkr_endpoint_choose(const DkrWish *wish, const char *const *environment,
                         DkrEndpoint **ret_endpoint, GError **error);
