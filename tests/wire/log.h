/*
 * What went through the proxy: an entry for each request from its head on, for the control socket
 * to count and show, and a JSON line in a file when its exchange is over. Values in a query are
 * shown only where the key is known to carry no secret; headers and bodies are never kept.
 */
#pragma once

#include "wire/fault.h"

typedef struct WireLog WireLog;

typedef struct {
    guint number;     /* from 1, in the order of arrival */
    guint connection; /* of the client, from 1 */
    char *method;
    char *target;                      /* path and query without the version, values masked */
    int api;                           /* NN of "/v1.NN", or -1 */
    int status;                        /* the one that the client got, 0: none */
    guint64 request_size, answer_size; /* of the bodies: sent by the client, by the engine */
    gint64 began_us, ended_us;         /* 0: it goes on */
    guint faults;                      /* bits of WireDo */
    bool cut;                          /* the connection ended before the exchange did */
} WireEntry;

/* path may be NULL. */
bool wire_log_open(const char *path, WireLog **ret_log, GError **error);
void wire_log_free(WireLog *log);

/* The entry belongs to the log, or, once it was forgotten, to nobody: end it all the same. */
WireEntry *wire_log_begin(WireLog *log, guint connection, const char *method, const char *target);
void wire_log_end(WireLog *log, WireEntry *entry, bool cut);

/* How many requests wire_request_matches() since the last wire_log_forget(). */
guint wire_log_count(const WireLog *log, const char *request);
json_t *wire_log_json(const WireLog *log);
void wire_log_forget(WireLog *log);
