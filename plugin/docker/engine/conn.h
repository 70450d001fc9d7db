/*
 * A connection to the engine that carries bytes both ways, whatever it goes over: what a hijacked
 * request is made on. Where the endpoint has TLS, it is spoken here. One thread may read while
 * another writes.
 */
#pragma once

#include "engine/dial.h"

typedef struct DkrConn DkrConn;

/* Dials, and shakes hands where there is TLS: 10 s each. login: as dkr_dial() takes it. */
bool dkr_conn_open(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait,
                   DkrConn **ret_conn, GError **error);

/* To be polled, after a read or write that gave nothing. */
int dkr_conn_fd(const DkrConn *conn);

/* *ret_size 0 with *ret_end at the clean end, 0 without it when there is nothing now. */
bool dkr_conn_read(DkrConn *conn, void *buffer, gsize capacity, gsize *ret_size, bool *ret_end,
                   GError **error);

/* Takes what fits now; *ret_size may be 0. Then the same bytes come first in the next call. */
bool dkr_conn_write(DkrConn *conn, const void *data, gsize size, gsize *ret_size, GError **error);

/* The other side reads an end; what it sends is read on. Nothing may be written from then on. */
void dkr_conn_half_close(DkrConn *conn);

/* Ends both directions, from any thread. */
void dkr_conn_shut(DkrConn *conn);

void dkr_conn_free(DkrConn *conn);

/* False always: the other side is gone, which errno_value (or 0: it ended) says; over ssh with what
 * ssh complained about. */
bool dkr_conn_fail(DkrConn *conn, int errno_value, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrConn, dkr_conn_free)
