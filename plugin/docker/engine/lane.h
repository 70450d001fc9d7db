/*
 * Connections to the engine between requests: a lane is a curl multi handle that holds one
 * connection and the easy handle that uses it. Taken for one request, given back when its answer
 * was read to the end. Private to client.c; any thread.
 */
#pragma once

#include <curl/curl.h>
#include <glib.h>

typedef struct {
    CURLM *multi;
    CURL *easy;
    GMutex lock;
    int socket; /* guarded; of its connection, -1 without one */
} DkrLane;

typedef struct {
    GMutex lock;
    GQueue idle; /* of DkrLane */
} DkrLanes;

void dkr_lanes_init(DkrLanes *lanes);
void dkr_lanes_clear(DkrLanes *lanes);

DkrLane *dkr_lane_take(DkrLanes *lanes);
void dkr_lane_give_back(DkrLanes *lanes, DkrLane *lane);

/* Makes the easy handle's next connection this lane's. */
void dkr_lane_set_up(DkrLane *lane);

/* Ends its connection while another thread uses it, whatever that is doing. ctx: the lane. */
void dkr_lane_shut(void *ctx);

/* Closes its connection. */
void dkr_lane_free(DkrLane *lane);
