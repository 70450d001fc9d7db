/*
 * From what the engine answered to a typed error: one table of HTTP statuses, one place where the
 * engine's text is taken out of its body. Used by the client and by hijacked connections. Pure.
 */
#pragma once

#include "engine/endpoint.h"

/* Always false; body is JSON {"message"} or plain text of any kind. */
bool dkr_failure_set(GError **error, int status, const void *body, gsize size);

/* The same of a known engine: that it wants TLS, has web pages, or neither an engine's errors nor
 * one of its headers (is_marked), is an address that is wrong. */
bool dkr_failure_set_of(GError **error, const DkrEndpoint *endpoint, int status, const void *body,
                        gsize size, bool is_marked);

/* A header, in lower case, that every engine's answer has. */
#define DKR_MARK "api-version"

/* Always false; the connection could not be made: text, or else errno_value, says why. Without an
 * errno_value nobody knows whether the request came through. */
bool dkr_failure_unreachable(GError **error, const DkrEndpoint *endpoint, int errno_value,
                             const char *text);

/* A request that has no answer yet. */
typedef struct {
    const DkrEndpoint *endpoint;
    const char *method, *path; /* a query is not shown */
    gint64 silent_us;          /* since the last byte; 0 where it may take its time */
} DkrAsked;

/* Always false; the engine said nothing for too long, by our limit or by the configuration's. */
bool dkr_failure_silent(GError **error, const DkrAsked *asked, bool by_config);

/* Always false; takes why over, and where that is the call's own deadline, says what it cut off. */
bool dkr_failure_cut_off(GError **error, GError *why, const DkrAsked *asked);

/* Always false; an open connection ended too early, which what tells. May be tried again. */
bool dkr_failure_broken(GError **error, const char *what);

/* Always false; something else than an engine took the connection. */
bool dkr_failure_no_http(GError **error, const DkrEndpoint *endpoint);

/* Whether an engine's or its runtime's text is about a container that does not run any more. */
bool dkr_failure_says_ended(const char *text);

/* The HTTP status behind an error of the engine, or 0. */
int dkr_failure_status(const GError *error);

/* Whether the engine may have done what was asked for, or be about to: its answer was not heard. */
bool dkr_failure_is_in_doubt(const GError *error);
