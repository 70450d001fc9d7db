/*
 * Connections to the engine between requests: a lane is a curl multi handle that holds one
 * connection and the easy handle that uses it. Taken for one request, given back when its answer
 * was read to the end. libcurl speaks HTTP and TLS on it; dial.h makes it. Private to client.c; any
 * thread.
 */
#pragma once

#include "engine/dial.h"

#include <curl/curl.h>

/* Who waits for whom on the way to an engine where a connection takes its time. */
typedef enum {
    DKR_LANE_IN_TURN, /* over soon as a rule: rather waits for another's than makes one more */
    DKR_LANE_OWN,     /* may take long */
    DKR_LANE_URGENT   /* ends something, or asks whether anybody is there */
} DkrLaneUse;

typedef struct {
    CURLM *multi;
    CURL *easy;
    const DkrEndpoint *endpoint;
    const SprWait *wait; /* of whoever moves the transfer on, for dialling */
    GMutex lock;
    GArray *dials;      /* of DkrDial: lent to libcurl, one as a rule; changed under the lock */
    GError *dial_error; /* why there is no connection */
    char *complaint;    /* of an ssh that ended */
    bool got_through;   /* that ssh: something came from it */
    char tls_text[CURL_ERROR_SIZE];
    bool shakes_hands; /* or did so: a connection was there before */
    const char *alert; /* that came by TLS, as OpenSSL has it; NULL: none */
    bool urgent;
    SprPass *pass;    /* of the lanes, or NULL */
    gint64 queued_us; /* that it had to wait before it could dial */
} DkrLane;

typedef struct {
    const DkrEndpoint *endpoint;
    GMutex lock;
    GQueue idle;            /* of DkrLane */
    gint64 scarce_until_us; /* a connection was refused: the idle may be what others lack */
    SprGate *gate;          /* ssh: a login takes longer than most requests; else NULL */
} DkrLanes;

void dkr_lanes_init(DkrLanes *lanes, const DkrEndpoint *endpoint);
void dkr_lanes_clear(DkrLanes *lanes);

bool dkr_lane_take(DkrLanes *lanes, DkrLaneUse use, const SprWait *wait, DkrLane **ret_lane,
                   GError **error);
void dkr_lane_give_back(DkrLanes *lanes, DkrLane *lane);

/* A connection was not served at all. Those that are kept for later are closed, and for a while no
 * more than one is kept, since whoever refuses may only take so many. */
void dkr_lanes_note_refused(DkrLanes *lanes);

/* Ends its connection while another thread uses it, whatever that is doing. ctx: the lane. */
void dkr_lane_shut(void *ctx);

/* Closes its connection. */
void dkr_lane_free(DkrLane *lane);

/* Tells libcurl how the engine is reached: all that concerns the connection. */
void dkr_lane_setup(DkrLane *lane);

/* An answer has begun. */
void dkr_lane_heard(DkrLane *lane);

/* How long its transfer had to wait for its turn to dial since this was asked last. */
gint64 dkr_lane_queued_us(DkrLane *lane);

/* Moves the transfer as far as it goes without waiting. False when its connection cannot be made.
 */
bool dkr_lane_perform(DkrLane *lane, GError **error);

/* False always when the transfer of this lane failed for want of a connection, or for its TLS, with
 * the error of that; else true. */
bool dkr_lane_check(DkrLane *lane, CURLcode result, GError **error);
