/*
 * Runs wire-proxy as a child and speaks with it, for tests and for the conformance suite. The
 * proxy has a folder of its own in the temporary directory and ends with its parent, whatever
 * becomes of that. A WireClient belongs to one thread at a time.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct WireClient WireClient;

/* Starts the program before an engine, which is named as in DOCKER_HOST. listen is NULL for a unix
 * socket in the proxy's folder, else as --listen has it. No faults are set. */
bool wire_client_start(const char *program, const char *engine, const char *listen,
                       WireClient **ret_client, GError **error);

/* Ends it; false, with a word on standard error, when it did not end well. NULL does nothing. */
bool wire_client_stop(WireClient *client);

/* What goes into DOCKER_HOST or "host". Lives as long as client. */
const char *wire_client_host(const WireClient *client);

/* From here on these rules hold, and no others; a JSON list. */
bool wire_client_set(WireClient *client, const char *rules, GError **error);

/* From here on everything passes. */
bool wire_client_clear(WireClient *client, GError **error);

/* Forgets the requests seen so far, for wire_client_count() and wire_client_log(). */
bool wire_client_forget(WireClient *client, GError **error);

/* How many requests there were of "METHOD PATH", as in README.md. */
bool wire_client_count(WireClient *client, const char *request, guint *ret_count, GError **error);

/* The entries of the log, a JSON list; also those of exchanges that still go on. */
bool wire_client_log(WireClient *client, json_t **ret_log, GError **error);
