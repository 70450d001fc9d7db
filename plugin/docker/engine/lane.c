#include "engine/lane.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

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
    g_mutex_init(&lane->lock);
    lane->socket = -1;
    lane->multi = curl_multi_init();
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

/* libcurl 7.88 does not set close-on-exec itself. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    DkrLane *lane = ctx;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    g_mutex_lock(&lane->lock);
    lane->socket = fd;
    g_mutex_unlock(&lane->lock);
    return fd;
}

/* Before the number can be another's. */
static int close_socket(void *ctx, curl_socket_t fd)
{
    DkrLane *lane = ctx;
    g_mutex_lock(&lane->lock);
    if (lane->socket == fd)
        lane->socket = -1;
    g_mutex_unlock(&lane->lock);
    return close(fd);
}

void dkr_lane_set_up(DkrLane *lane)
{
    curl_easy_setopt(lane->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(lane->easy, CURLOPT_OPENSOCKETDATA, lane);
    curl_easy_setopt(lane->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(lane->easy, CURLOPT_CLOSESOCKETDATA, lane);
}

void dkr_lane_shut(void *ctx)
{
    DkrLane *lane = ctx;
    g_mutex_lock(&lane->lock);
    if (lane->socket >= 0)
        shutdown(lane->socket, SHUT_RDWR);
    g_mutex_unlock(&lane->lock);
}

void dkr_lane_free(DkrLane *lane)
{
    curl_multi_cleanup(lane->multi);
    curl_easy_cleanup(lane->easy);
    g_mutex_clear(&lane->lock);
    g_free(lane);
}
