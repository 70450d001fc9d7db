/*
 * One client of the proxy with its connection to the engine: conn.c moves bytes between the two
 * sockets and their flows, exchange.c finds requests and answers in them and puts the faults of
 * the rules into the flows. Driven by the poll loop of main.c; one thread.
 */
#pragma once

#include "wire/address.h"
#include "wire/log.h"
#include "wire/message.h"
#include "wire/rule.h"

#include <poll.h>

/* What all connections share. */
typedef struct {
    WireAddress engine;
    WireRules *rules; /* may be NULL */
    WireLog *log;
    guint connections; /* ever made */
} WireContext;

typedef struct {
    int fd; /* -1: none */
    WireFlow *flow;
    bool ended;  /* it sends no more */
    bool gone;   /* it neither sends nor reads, */
    bool told;   /* and the other side was told so */
    bool broken; /* it reads no more */
    WirePump pump;
    gint64 wake_us;
} WireSide;

typedef struct WireExchange WireExchange;

typedef struct {
    WireContext *context;
    guint number;
    WireSide client, engine;
    WireExchange *exchange; /* the one under way, or NULL */
    GByteArray *pending;    /* of the client, behind the request under way */
    bool over;
} WireConn;

/* Takes over fd. */
WireConn *wire_conn_new(WireContext *context, int fd);
void wire_conn_free(WireConn *conn);

/* What to poll for, and until when at most. */
void wire_conn_prepare(const WireConn *conn, struct pollfd fds[2], gint64 *wake_us);
void wire_conn_step(WireConn *conn, const struct pollfd fds[2]);

/* Connects to the engine unless that is done; false when it cannot be reached. */
bool wire_conn_reach_engine(WireConn *conn);

/* ------------------------------------------------------------------- exchange.c */

void wire_exchange_client(WireConn *conn, const guint8 *data, gsize size);
void wire_exchange_client_end(WireConn *conn);
void wire_exchange_engine(WireConn *conn, const guint8 *data, gsize size);
void wire_exchange_engine_end(WireConn *conn);

/* Whether bytes of that side are wanted now. */
bool wire_exchange_reads_client(const WireConn *conn);
bool wire_exchange_reads_engine(const WireConn *conn);

/* Logs what was under way as cut off. */
void wire_exchange_abandon(WireConn *conn);
