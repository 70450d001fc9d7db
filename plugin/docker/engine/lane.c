#include "engine/lane.h"

#include "engine/multi.h"

#include <stdbool.h>

#define IDLE_MOST 8

void dkr_lanes_init(DkrLanes *lanes)
{
    static gsize once;
    if (g_once_init_enter(&once)) {
        curl_global_init(CURL_GLOBAL_DEFAULT); /* never cleaned up: the host may use curl, too */
        g_once_init_leave(&once, 1);
    }
    g_mutex_init(&lanes->lock);
    g_queue_init(&lanes->idle);
}

void dkr_lanes_clear(DkrLanes *lanes)
{
    g_queue_clear_full(&lanes->idle, (GDestroyNotify)dkr_lane_free);
    g_mutex_clear(&lanes->lock);
}

DkrLane *dkr_lane_take(DkrLanes *lanes)
{
    g_mutex_lock(&lanes->lock);
    DkrLane *lane = g_queue_pop_head(&lanes->idle);
    g_mutex_unlock(&lanes->lock);
    if (lane)
        return lane;
    lane = g_new0(DkrLane, 1);
    lane->multi = dkr_multi_new();
    lane->easy = curl_easy_init();
    return lane;
}

void dkr_lane_give_back(DkrLanes *lanes, DkrLane *lane)
{
    curl_easy_reset(lane->easy);
    g_mutex_lock(&lanes->lock);
    bool keep = lanes->idle.length < IDLE_MOST;
    if (keep)
        g_queue_push_head(&lanes->idle, lane);
    g_mutex_unlock(&lanes->lock);
    if (!keep)
        dkr_lane_free(lane);
}

void dkr_lane_free(DkrLane *lane)
{
    curl_multi_cleanup(lane->multi);
    curl_easy_cleanup(lane->easy);
    g_free(lane);
}
