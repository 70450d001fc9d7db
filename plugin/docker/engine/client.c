#include "engine/client_own.h"

#include "base/error.h"
#include "engine/failure.h"

#include <curl/curl.h>
#include <string.h>

#define ERROR_BODY_MOST (64u << 10)
#define SILENCE_US (30 * G_USEC_PER_SEC)
#define PING_LIMIT_MS (20 * 1000)
#define CANCEL_TICK_US (100 * 1000)
#define STEP_MOST_MS (3600 * 1000)

DkrClient *dkr_client_new(DkrEndpoint *endpoint, const char *user_agent, const SprLog *log)
{
    DkrClient *client = g_new0(DkrClient, 1);
    client->endpoint = endpoint;
    client->api_minor = endpoint->api_minor;
    client->user_agent = g_strdup(user_agent);
    if (log)
        client->log = *log;
    dkr_lanes_init(&client->lanes, endpoint);
    g_mutex_init(&client->lock);
    return client;
}

void dkr_client_free(DkrClient *client)
{
    if (!client)
        return;
    dkr_lanes_clear(&client->lanes);
    g_mutex_clear(&client->lock);
    dkr_endpoint_free(client->endpoint);
    g_free(client->user_agent);
    g_free(client->architecture);
    g_free(client);
}

const DkrEndpoint *dkr_client_endpoint(const DkrClient *client)
{
    return client->endpoint;
}

void dkr_client_note_refused(DkrClient *client)
{
    dkr_lanes_note_refused(&client->lanes);
}

const char *dkr_client_user_agent(const DkrClient *client)
{
    return client->user_agent;
}

const void *dkr_client_library(void)
{
    return (const void *)curl_easy_init;
}

/* --------------------------------------------------------------------- one transfer */

static void take_result(DkrReply *reply)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(reply->lane->multi, &left));) {
        if (m->msg == CURLMSG_DONE) {
            reply->finished = true;
            reply->result = m->data.result;
        }
    }
}

static DkrAsked asked_of(const DkrReply *reply)
{
    return (DkrAsked){.endpoint = reply->client->endpoint,
                      .method = reply->request.method,
                      .path = reply->request.path,
                      .silent_us = g_get_monotonic_time() - reply->last_byte_us};
}

static bool fail_silent(const DkrReply *reply, GError **error)
{
    DkrAsked asked = asked_of(reply);
    bool by_config = asked.endpoint->limit_ms > 0 && reply->request.limit_ms == 0 &&
                     g_get_monotonic_time() >= reply->limit_us;
    return dkr_failure_silent(error, &asked, by_config);
}

static bool fail_cut_off(const DkrReply *reply, GError *why, GError **error)
{
    DkrAsked asked = asked_of(reply);
    if (reply->request.patient || reply->request.limit_ms > 0)
        asked.silent_us = 0;
    return dkr_failure_cut_off(error, why, &asked);
}

/* A silent engine is told from a busy one by a ping on another connection. */
static bool check_beside(DkrReply *reply, const SprWait *wait, GError **error)
{
    SprWait limited = spr_wait_within(wait, PING_LIMIT_MS);
    if (!dkr_client_ping(reply->client, &limited, error)) {
        dkr_client_note_silent(reply->client);
        spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
        if (error && (*error)->code == SPR_E_TIMEOUT) {
            if (spr_wait_is_over(wait))
                return false;
            g_clear_error(error);
            return fail_silent(reply, error);
        }
        g_prefix_error(error, "%s no longer answers: ", reply->client->endpoint->address);
        return false;
    }
    reply->last_byte_us = g_get_monotonic_time();
    return true;
}

static bool check_silence(DkrReply *reply, const SprWait *wait, GError **error)
{
    gint64 now = g_get_monotonic_time();
    if (reply->request.patient && now - reply->last_byte_us >= SILENCE_US &&
        !check_beside(reply, wait, error))
        return false;
    gint64 idle_us = reply->request.idle_ms * 1000;
    bool idle = idle_us > 0 && reply->again_fd < 0 && now - reply->last_byte_us >= idle_us;
    return (!idle && now < reply->limit_us) || fail_silent(reply, error);
}

static int step_ms(const DkrReply *reply, const SprWait *wait)
{
    gint64 now = g_get_monotonic_time();
    gint64 until = MIN(wait->deadline_us, reply->limit_us);
    if (reply->request.patient)
        until = MIN(until, reply->last_byte_us + SILENCE_US);
    if (reply->request.idle_ms > 0 && reply->again_fd < 0)
        until = MIN(until, reply->last_byte_us + reply->request.idle_ms * 1000);
    if (wait->is_cancelled)
        until = MIN(until, now + CANCEL_TICK_US);
    if (until == SPR_NEVER)
        return STEP_MOST_MS;
    return (int)CLAMP((until - now + 999) / 1000, 0, STEP_MOST_MS);
}

static short curl_events(short events)
{
    return (short)((events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                   (events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
}

static void poll_lane(DkrReply *reply, const SprWait *wait)
{
    struct curl_waitfd extra[4];
    unsigned int n = 0, source = 0;
    const DkrBeside *beside = reply->request.beside;
    short events = beside ? beside->events(beside->ctx) : 0;
    if (reply->again_fd >= 0)
        extra[n++] = (struct curl_waitfd){.fd = reply->again_fd, .events = CURL_WAIT_POLLIN};
    if (wait->cancel_fd >= 0)
        extra[n++] = (struct curl_waitfd){.fd = wait->cancel_fd, .events = CURL_WAIT_POLLIN};
    unsigned int other = n;
    if (events)
        extra[n++] = (struct curl_waitfd){.fd = beside->fd, .events = curl_events(events)};
    if (wait->gone)
        extra[n++] =
            (struct curl_waitfd){.fd = spr_latch_fd(wait->gone), .events = CURL_WAIT_POLLIN};
    curl_multi_poll(reply->lane->multi, extra, n, step_ms(reply, wait), NULL);
    if (events && extra[other].revents)
        beside->ready(beside->ctx);
    if (reply->again_fd >= 0 && extra[source].revents) {
        reply->again_fd = -1;
        reply->last_byte_us = g_get_monotonic_time();
        curl_easy_pause(reply->lane->easy, reply->write_paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    }
}

/* Its time begins when it may dial. */
static void excuse_queue(DkrReply *reply)
{
    gint64 queued_us = dkr_lane_queued_us(reply->lane);
    if (queued_us == 0)
        return;
    reply->last_byte_us = g_get_monotonic_time();
    if (reply->limit_us != SPR_NEVER)
        reply->limit_us += queued_us;
}

/* Moves the transfer one poll further. One that never rests is ended as well. */
static bool step(DkrReply *reply, const SprWait *wait, GError **error)
{
    GError *why = NULL;
    if (!spr_wait_check(wait, &why))
        return fail_cut_off(reply, why, error);
    reply->lane->wait = wait;
    if (reply->write_paused && reply->buffer->len <= DKR_REPLY_PAUSE_ABOVE) {
        reply->write_paused = false;
        curl_easy_pause(reply->lane->easy, reply->again_fd < 0 ? CURLPAUSE_CONT : CURLPAUSE_SEND);
    }
    guint had = reply->buffer->len;
    bool had_head = reply->head_done;
    if (!dkr_lane_perform(reply->lane, error))
        return false;
    excuse_queue(reply);
    take_result(reply);
    if (reply->finished || reply->buffer->len > had || reply->head_done != had_head)
        return true;
    if (!check_silence(reply, wait, error))
        return false;
    poll_lane(reply, wait);
    return true;
}

/* What libcurl cannot send again it calls so. An ssh knows better. */
static const char *text_of(const DkrLane *lane, CURLcode result)
{
    if (lane->complaint)
        return lane->complaint;
    return result == CURLE_SEND_FAIL_REWIND ? "it was closed" : curl_easy_strerror(result);
}

/* Of a connection that this request made. NULL: none. */
static char *doubt_of(const DkrReply *reply)
{
    const DkrTls *tls = reply->client->endpoint->tls;
    bool is_new = tls && reply->lane->shakes_hands && reply->head_size == 0;
    return is_new ? dkr_tls_doubt(tls) : NULL;
}

static bool fail_transfer(DkrReply *reply, const SprWait *wait, GError **error)
{
    if (spr_wait_is_gone(wait)) /* which is why the connection broke */
        return spr_wait_check(wait, error);
    if (reply->callback_error) {
        g_propagate_error(error, g_steal_pointer(&reply->callback_error));
        return false;
    }
    if (reply->head_size == 0)
        dkr_lanes_note_refused(&reply->client->lanes);
    GError *why = NULL;
    if (!dkr_lane_check(reply->lane, reply->result, &why))
        return fail_cut_off(reply, why, error);
    g_autofree char *doubt = doubt_of(reply);
    spr_fail(error, SPR_E_IO, "connection-broken",
             "the connection to %s broke during %s %.*s: %s%s%s", reply->client->endpoint->address,
             reply->request.method, (int)strcspn(reply->request.path, "?"), reply->request.path,
             text_of(reply->lane, reply->result), doubt ? "; " : "", doubt ? doubt : "");
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

static bool fail_status(DkrReply *reply, const SprWait *wait, GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    const void *data;
    gsize size = 1;
    while (size > 0 && text->len < ERROR_BODY_MOST &&
           dkr_reply_read(reply, wait, &data, &size, NULL))
        g_byte_array_append(text, data, (guint)MIN(size, ERROR_BODY_MOST - text->len));
    const guint8 *bytes = text->data ? text->data : (guint8 *)"";
    return dkr_failure_set_of(error, reply->client->endpoint, reply->status, bytes, text->len,
                              dkr_reply_header(reply, DKR_MARK) != NULL);
}

/* An engine that refuses an upload early may reset the connection behind its answer: the answer
 * counts. */
static bool read_head(DkrReply *reply, const SprWait *wait, GError **error)
{
    while (!reply->head_done && !reply->finished) {
        if (!step(reply, wait, error))
            return false;
    }
    if (!reply->head_done)
        return fail_transfer(reply, wait, error);
    if (reply->status >= 400)
        return fail_status(reply, wait, error);
    return true;
}

gint64 dkr_client_limit_ms(const DkrClient *client)
{
    return client->endpoint->limit_ms > 0 ? client->endpoint->limit_ms : DKR_REQUEST_LIMIT_MS;
}

static DkrLaneUse use_of(const DkrRequest *request)
{
    if (request->urgent || request->unversioned)
        return DKR_LANE_URGENT;
    return request->limit_ms == 0 ? DKR_LANE_IN_TURN : DKR_LANE_OWN;
}

bool dkr_client_open_versioned(DkrClient *client, const DkrRequest *request, int api_minor,
                               const SprWait *wait, DkrReply **ret_reply, GError **error)
{
    DkrLane *lane;
    GError *why = NULL;
    if (!dkr_lane_take(&client->lanes, use_of(request), wait, &lane, &why))
        return dkr_failure_cut_off(error, why,
                                   &(DkrAsked){.endpoint = client->endpoint,
                                               .method = request->method,
                                               .path = request->path});
    g_autoptr(DkrReply) reply = g_new0(DkrReply, 1);
    reply->client = client;
    reply->lane = lane;
    reply->request = *request;
    reply->request.path = reply->path = g_strdup(request->path);
    reply->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reply->buffer = g_byte_array_new();
    reply->again_fd = -1;
    reply->limit_us =
        spr_deadline_after(request->limit_ms ? request->limit_ms : dkr_client_limit_ms(client));
    reply->last_byte_us = g_get_monotonic_time();
    dkr_reply_setup(reply, request, api_minor);
    if (wait->gone) {
        reply->gone = spr_latch_ref(wait->gone);
        reply->on_gone = (SprLatchListener){.opened = dkr_lane_shut, .ctx = reply->lane};
        spr_latch_listen(reply->gone, &reply->on_gone);
    }
    if (!read_head(reply, wait, error))
        return false;
    dkr_client_note_answer(client);
    spr_log(&client->log, SPR_LOG_DEBUG, "engine", "%s %s -> %d", request->method, request->path,
            reply->status);
    *ret_reply = g_steal_pointer(&reply);
    return true;
}

bool dkr_client_open(DkrClient *client, const DkrRequest *request, const SprWait *wait,
                     DkrReply **ret_reply, GError **error)
{
    int api_minor = 0;
    if (!spr_wait_check(wait, error))
        return false;
    if (!request->unversioned && !dkr_client_api_minor(client, wait, &api_minor, error))
        return false;
    return dkr_client_open_versioned(client, request, api_minor, wait, ret_reply, error);
}

int dkr_reply_status(const DkrReply *reply)
{
    return reply->status;
}

const char *dkr_reply_header(const DkrReply *reply, const char *name)
{
    return g_hash_table_lookup(reply->headers, name);
}

bool dkr_reply_read(DkrReply *reply, const SprWait *wait, const void **ret_data, gsize *ret_size,
                    GError **error)
{
    if (reply->handed_out) /* what came with the head is still to be */
        g_byte_array_set_size(reply->buffer, 0);
    reply->handed_out = true;
    while (reply->buffer->len == 0 && !reply->finished) {
        if (!step(reply, wait, error))
            return false;
    }
    if (reply->buffer->len == 0 && reply->result != CURLE_OK)
        return fail_transfer(reply, wait, error);
    *ret_data = reply->buffer->data;
    *ret_size = reply->buffer->len;
    return true;
}

void dkr_reply_free(DkrReply *reply)
{
    if (!reply)
        return;
    bool reusable = reply->finished && reply->result == CURLE_OK;
    if (reply->gone)
        spr_latch_unlisten(reply->gone, &reply->on_gone);
    spr_latch_unref(reply->gone);
    curl_multi_remove_handle(reply->lane->multi, reply->lane->easy);
    if (reusable)
        dkr_lane_give_back(&reply->client->lanes, reply->lane);
    else
        dkr_lane_free(reply->lane);
    dkr_reply_free_headers(reply);
    g_hash_table_unref(reply->headers);
    g_byte_array_unref(reply->buffer);
    g_clear_error(&reply->callback_error);
    g_free(reply->url);
    g_free(reply->path);
    g_free(reply);
}
