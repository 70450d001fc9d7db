#include "engine/lane.h"

#include "base/error.h"
#include "engine/failure.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_MOST 8
#define CONNECT_LIMIT_MS (20 * 1000) /* dial's and as much for TLS */
#define IN_TURN_MOST IDLE_MOST
#define TURN_MS 1000
#define SCARCE_US (60 * G_USEC_PER_SEC)

void dkr_lanes_init(DkrLanes *lanes, const DkrEndpoint *endpoint)
{
    static gsize once;
    if (g_once_init_enter(&once)) {
        curl_global_init(CURL_GLOBAL_DEFAULT); /* never cleaned up: the host may use curl, too */
        g_once_init_leave(&once, 1);
    }
    lanes->endpoint = endpoint;
    g_mutex_init(&lanes->lock);
    g_queue_init(&lanes->idle);
    if (endpoint->via == DKR_VIA_SSH)
        lanes->gate = spr_gate_new(IN_TURN_MOST, TURN_MS);
}

void dkr_lanes_clear(DkrLanes *lanes)
{
    g_queue_clear_full(&lanes->idle, (GDestroyNotify)dkr_lane_free);
    spr_gate_free(lanes->gate);
    g_mutex_clear(&lanes->lock);
}

static DkrLane *lane_new(const DkrLanes *lanes)
{
    DkrLane *lane = g_new0(DkrLane, 1);
    g_mutex_init(&lane->lock);
    lane->endpoint = lanes->endpoint;
    lane->dials = g_array_new(FALSE, FALSE, sizeof(DkrDial));
    lane->multi = curl_multi_init();
    lane->easy = curl_easy_init();
    return lane;
}

bool dkr_lane_take(DkrLanes *lanes, DkrLaneUse use, const SprWait *wait, DkrLane **ret_lane,
                   GError **error)
{
    SprPass *pass;
    if (!spr_gate_enter(use == DKR_LANE_IN_TURN ? lanes->gate : NULL, wait, &pass, error))
        return false;
    g_mutex_lock(&lanes->lock);
    DkrLane *lane = g_queue_pop_head(&lanes->idle);
    g_mutex_unlock(&lanes->lock);
    if (!lane)
        lane = lane_new(lanes);
    lane->pass = pass;
    lane->urgent = use == DKR_LANE_URGENT;
    *ret_lane = lane;
    return true;
}

void dkr_lane_give_back(DkrLanes *lanes, DkrLane *lane)
{
    SprPass *pass = g_steal_pointer(&lane->pass);
    curl_easy_reset(lane->easy);
    lane->wait = NULL;
    g_mutex_lock(&lanes->lock);
    bool scarce = g_get_monotonic_time() < lanes->scarce_until_us;
    bool keep = lanes->idle.length < (scarce ? 1 : IDLE_MOST);
    if (keep)
        g_queue_push_head(&lanes->idle, lane);
    g_mutex_unlock(&lanes->lock);
    if (!keep)
        dkr_lane_free(lane);
    spr_gate_leave(&pass); /* whoever is next finds the lane */
}

void dkr_lanes_note_refused(DkrLanes *lanes)
{
    GQueue idle = G_QUEUE_INIT;
    g_mutex_lock(&lanes->lock);
    lanes->scarce_until_us = g_get_monotonic_time() + SCARCE_US;
    for (DkrLane *lane; (lane = g_queue_pop_head(&lanes->idle));)
        g_queue_push_tail(&idle, lane);
    g_mutex_unlock(&lanes->lock);
    g_queue_clear_full(&idle, (GDestroyNotify)dkr_lane_free);
}

void dkr_lane_shut(void *ctx)
{
    DkrLane *lane = ctx;
    g_mutex_lock(&lane->lock);
    for (guint i = 0; i < lane->dials->len; i++)
        shutdown(g_array_index(lane->dials, DkrDial, i).fd, SHUT_RDWR);
    g_mutex_unlock(&lane->lock);
}

void dkr_lane_free(DkrLane *lane)
{
    curl_multi_cleanup(lane->multi);
    curl_easy_cleanup(lane->easy);
    g_array_unref(lane->dials); /* all were closed by libcurl */
    g_clear_error(&lane->dial_error);
    g_free(lane->complaint);
    spr_gate_leave(&lane->pass);
    g_mutex_clear(&lane->lock);
    g_free(lane);
}

/* --------------------------------------------------------------- curl's callbacks */

/* In the middle of a transfer, on its caller's thread. libcurl connects it to what address says
 * when this returns. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    DkrLane *lane = ctx;
    DkrDial dial = DKR_DIAL_NONE;
    DkrTarget target;
    g_clear_error(&lane->dial_error);
    g_clear_pointer(&lane->complaint, g_free);
    SprPass *login;
    gint64 began_us = g_get_monotonic_time();
    if (!spr_gate_enter(lane->endpoint->logins[lane->urgent], lane->wait, &login,
                        &lane->dial_error))
        return CURL_SOCKET_BAD;
    lane->queued_us += g_get_monotonic_time() - began_us;
    if (!dkr_dial_prepare(lane->endpoint, login, lane->wait, &dial, &target, &lane->dial_error))
        return CURL_SOCKET_BAD;
    address->family = target.address.ss_family;
    address->addrlen = target.size;
    memcpy(&address->addr, &target.address, target.size); /* libcurl has room for any address */
    g_mutex_lock(&lane->lock);
    g_array_append_val(lane->dials, dial);
    g_mutex_unlock(&lane->lock);
    return dial.fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    DkrLane *lane = ctx;
    for (guint i = 0; i < lane->dials->len; i++) {
        DkrDial dial = g_array_index(lane->dials, DkrDial, i);
        if (dial.fd != fd)
            continue;
        /* Before the number can be another's. */
        g_mutex_lock(&lane->lock);
        g_array_remove_index_fast(lane->dials, i);
        g_mutex_unlock(&lane->lock);
        g_free(lane->complaint);
        lane->complaint = dial.child ? spr_child_complaint(dial.child) : NULL;
        lane->got_through = dial.heard;
        dkr_dial_close(&dial);
        return 0;
    }
    return 0;
}

static void on_message(int is_ours, int version, int type, const void *data, size_t size, SSL *ssl,
                       void *ctx)
{
    const guint8 *alert = data;
    DkrLane *lane = ctx;
    if (!is_ours && type == SSL3_RT_ALERT && size == 2)
        lane->alert = dkr_tls_alert_text(alert[1]);
}

static CURLcode use_tls(CURL *easy, void *context, void *ctx)
{
    DkrLane *lane = ctx;
    lane->shakes_hands = true;
    SSL_CTX_set_msg_callback(context, on_message);
    SSL_CTX_set_msg_callback_arg(context, lane);
    return dkr_tls_apply(lane->endpoint->tls, lane->endpoint->host, context)
               ? CURLE_OK
               : CURLE_SSL_CERTPROBLEM;
}

static void setup_tls(DkrLane *lane)
{
    long verify = dkr_tls_verifies(lane->endpoint->tls);
    curl_easy_setopt(lane->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(lane->easy, CURLOPT_CAINFO, NULL);
    curl_easy_setopt(lane->easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(lane->easy, CURLOPT_SSL_VERIFYPEER, verify);
    curl_easy_setopt(lane->easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    curl_easy_setopt(lane->easy, CURLOPT_SSL_CTX_FUNCTION, use_tls);
    curl_easy_setopt(lane->easy, CURLOPT_SSL_CTX_DATA, lane);
    lane->tls_text[0] = '\0';
    lane->shakes_hands = false;
    lane->alert = NULL;
    curl_easy_setopt(lane->easy, CURLOPT_ERRORBUFFER, lane->tls_text);
}

void dkr_lane_setup(DkrLane *lane)
{
    /* Its name plays no part: with it libcurl looks none up, open_socket() does. */
    curl_easy_setopt(lane->easy, CURLOPT_UNIX_SOCKET_PATH, "engine");
    curl_easy_setopt(lane->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(lane->easy, CURLOPT_OPENSOCKETDATA, lane);
    curl_easy_setopt(lane->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(lane->easy, CURLOPT_CLOSESOCKETDATA, lane);
    curl_easy_setopt(lane->easy, CURLOPT_PROTOCOLS_STR, lane->endpoint->tls ? "https" : "http");
    curl_easy_setopt(lane->easy, CURLOPT_PROXY, "");
    if (lane->endpoint->via != DKR_VIA_SSH) /* which has a limit of its own, once it may begin */
        curl_easy_setopt(lane->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_LIMIT_MS);
    curl_easy_setopt(lane->easy, CURLOPT_NOSIGNAL, 1L);
    if (lane->endpoint->tls)
        setup_tls(lane);
}

void dkr_lane_heard(DkrLane *lane)
{
    for (guint i = 0; i < lane->dials->len; i++)
        dkr_dial_heard(&g_array_index(lane->dials, DkrDial, i));
}

gint64 dkr_lane_queued_us(DkrLane *lane)
{
    gint64 queued_us = lane->queued_us;
    lane->queued_us = 0;
    return queued_us;
}

bool dkr_lane_perform(DkrLane *lane, GError **error)
{
    int running = 0;
    curl_multi_perform(lane->multi, &running);
    for (guint i = 0; i < lane->dials->len; i++) {
        if (!dkr_dial_settle(lane->endpoint, &g_array_index(lane->dials, DkrDial, i), error))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------- failures */

/* Why nothing could be written may still be there to read, which libcurl does as it closes. */
static void hear_out(DkrLane *lane)
{
    curl_multi_remove_handle(lane->multi, lane->easy);
    curl_multi_cleanup(lane->multi);
    lane->multi = curl_multi_init();
}

static bool check_tls(DkrLane *lane, CURLcode result, GError **error)
{
    long verify = X509_V_OK;
    if (lane->shakes_hands && result == CURLE_SEND_ERROR)
        hear_out(lane);
    const char *text = dkr_tls_knows(lane->alert) ? lane->alert : lane->tls_text;
    bool in_handshake = result == CURLE_SSL_CONNECT_ERROR ||
                        result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CERTPROBLEM;
    if (!lane->endpoint->tls || (!in_handshake && !dkr_tls_knows(text)))
        return true;
    if (in_handshake && dkr_tls_verifies(lane->endpoint->tls))
        curl_easy_getinfo(lane->easy, CURLINFO_SSL_VERIFYRESULT, &verify);
    if (verify == X509_V_ERR_UNSPECIFIED) /* libcurl's for a handshake that did not come so far */
        verify = X509_V_OK;
    return dkr_tls_fail(lane->endpoint->tls, lane->endpoint->address, verify, text, error);
}

static bool fail_slow(const DkrLane *lane, GError **error)
{
    if (lane->shakes_hands)
        return dkr_tls_fail_silent(lane->endpoint->address, CONNECT_LIMIT_MS, error);
    return dkr_failure_unreachable(error, lane->endpoint, ETIMEDOUT, NULL);
}

bool dkr_lane_check(DkrLane *lane, CURLcode result, GError **error)
{
    if (lane->dial_error) {
        g_propagate_error(error, g_steal_pointer(&lane->dial_error));
        return false;
    }
    if (!check_tls(lane, result, error))
        return false;
    if (result == CURLE_COULDNT_CONNECT) {
        long os_errno = 0;
        curl_easy_getinfo(lane->easy, CURLINFO_OS_ERRNO, &os_errno);
        return dkr_failure_unreachable(error, lane->endpoint, (int)os_errno, NULL);
    }
    if (result == CURLE_OPERATION_TIMEDOUT)
        return fail_slow(lane, error);
    if (lane->complaint && !lane->got_through)
        return dkr_failure_unreachable(error, lane->endpoint, 0, lane->complaint);
    if (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_WEIRD_SERVER_REPLY)
        return dkr_failure_no_http(error, lane->endpoint);
    return true;
}
