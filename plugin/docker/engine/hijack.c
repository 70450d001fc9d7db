#include "engine/hijack.h"

#include "base/error.h"
#include "engine/chunks.h"
#include "engine/conn.h"
#include "engine/failure.h"

#include <stdio.h>
#include <string.h>

#define HEAD_MOST (256u << 10)
#define BODY_MOST (64u << 10)
#define BODY_LIMIT_MS 5000

struct DkrHijack {
    const DkrClient *client;
    DkrConn *conn;
    int status;
    GByteArray *early; /* what came in one read with the head */
    gsize early_used;
    bool is_chunked;
    DkrChunks chunks;
};

static bool send_all(DkrHijack *hijack, const char *data, gsize size, const SprWait *wait,
                     GError **error)
{
    while (size > 0) {
        gsize n;
        if (!dkr_hijack_write(hijack, data, size, &n, error))
            return false;
        data += n;
        size -= n;
        struct pollfd p = {.fd = dkr_conn_fd(hijack->conn), .events = POLLOUT};
        int ready;
        if (n == 0 && !spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error))
            return false;
    }
    return true;
}

/* Adds what comes next to early. False at the end and on errors. */
static bool receive(DkrHijack *hijack, const SprWait *wait, GError **error)
{
    for (;;) {
        struct pollfd p = {.fd = dkr_conn_fd(hijack->conn), .events = POLLIN};
        guint8 bytes[4096];
        gsize n;
        bool end;
        int ready;
        if (!dkr_conn_read(hijack->conn, bytes, sizeof bytes, &n, &end, error))
            return false;
        if (end)
            return dkr_conn_fail(hijack->conn, 0, error);
        if (n > 0) {
            g_byte_array_append(hijack->early, bytes, (guint)n);
            return true;
        }
        if (!spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error))
            return false;
    }
}

/* Reads until the empty line behind a head that is not informational; early begins with it, and
 * *ret_length is its length with the line. */
static bool read_head(DkrHijack *hijack, const SprWait *wait, gsize *ret_length, GError **error)
{
    gsize dropped = 0;
    for (;;) {
        GByteArray *early = hijack->early;
        guint8 *end = early->len > 0 ? memmem(early->data, early->len, "\r\n\r\n", 4) : NULL;
        gsize length = end ? (gsize)(end - early->data) + 4 : early->len;
        if (dropped + length > HEAD_MOST)
            return spr_fail(error, SPR_E_IO, "bad-answer",
                            "the engine's answer has a head of more than %u bytes", HEAD_MOST);
        if (!end) {
            if (!receive(hijack, wait, error))
                return false;
            continue;
        }
        g_autofree char *head = g_strndup((const char *)early->data, length);
        int status = 0;
        *ret_length = length;
        sscanf(head, "HTTP/1.%*d %d", &status);
        if (status < 100 || status == 101 || status > 199)
            return true;
        dropped += length;
        g_byte_array_remove_range(early, 0, (guint)length);
    }
}

/* What is there on the connection, with its coding. */
static bool read_raw(DkrHijack *hijack, void *buffer, gsize capacity, gsize *ret_size,
                     bool *ret_end, GError **error)
{
    gsize early = hijack->early->len - hijack->early_used;
    *ret_end = false;
    if (early > 0) {
        *ret_size = MIN(early, capacity);
        memcpy(buffer, hijack->early->data + hijack->early_used, *ret_size);
        hijack->early_used += *ret_size;
        return true;
    }
    return dkr_conn_read(hijack->conn, buffer, capacity, ret_size, ret_end, error);
}

bool dkr_hijack_read(DkrHijack *hijack, void *buffer, gsize capacity, gsize *ret_size,
                     bool *ret_end, GError **error)
{
    *ret_size = 0;
    *ret_end = false;
    while (*ret_size == 0 && !hijack->chunks.ended) {
        gsize n = 0;
        if (!read_raw(hijack, buffer, capacity, &n, ret_end, error))
            return false;
        *ret_size = n;
        if (!hijack->is_chunked || (n == 0 && !*ret_end))
            return true;
        if (*ret_end)
            return dkr_conn_fail(hijack->conn, 0, error); /* before the last chunk */
        if (!dkr_chunks_decode(&hijack->chunks, buffer, n, ret_size, error))
            return false;
    }
    *ret_end = *ret_size == 0;
    return true;
}

/* The value of a header in the head's text, or NULL. */
static char *header(const char *head, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(head, "\r\n", -1);
    gsize length = strlen(name);
    for (char **line = lines; *line; line++) {
        if (g_ascii_strncasecmp(*line, name, length) == 0 && (*line)[length] == ':')
            return g_strstrip(g_strdup(*line + length + 1));
    }
    return NULL;
}

/* The rest of a refusal's body: best effort, for its text. */
static bool fail_refused(DkrHijack *hijack, const char *head, const SprWait *wait, GError **error)
{
    g_autofree char *length_text = header(head, "content-length");
    gsize want = length_text ? (gsize)g_ascii_strtoull(length_text, NULL, 10) : BODY_MOST;
    SprWait limited = spr_wait_within(wait, BODY_LIMIT_MS);
    g_autofree guint8 *text = g_malloc(BODY_MOST);
    gsize have = 0, n;
    bool end = false;
    want = MIN(want, BODY_MOST);
    while (have < want && !end &&
           dkr_hijack_read(hijack, text + have, want - have, &n, &end, NULL)) {
        struct pollfd p = {.fd = dkr_conn_fd(hijack->conn), .events = POLLIN};
        int ready;
        have += n;
        if (n == 0 && !end && !spr_wait_poll(&limited, &p, 1, SPR_NEVER, &ready, NULL))
            break;
    }
    g_autofree char *mark = header(head, DKR_MARK);
    return dkr_failure_set_of(error, dkr_client_endpoint(hijack->client), hijack->status, text,
                              have, mark != NULL);
}

static bool check_head(DkrHijack *hijack, gsize head_length, const SprWait *wait, GError **error)
{
    g_autofree char *head = g_strndup((const char *)hijack->early->data, head_length);
    if (sscanf(head, "HTTP/1.%*d %d", &hijack->status) != 1)
        return dkr_failure_no_http(error, dkr_client_endpoint(hijack->client));
    g_autofree char *coding = header(head, "transfer-encoding");
    hijack->is_chunked = coding && hijack->status != 101;
    hijack->early_used = head_length;
    if (hijack->status != 101 && hijack->status != 200)
        return fail_refused(hijack, head, wait, error);
    return true;
}

static char *request_text(DkrClient *client, int minor, const DkrHijackRequest *request)
{
    const DkrEndpoint *endpoint = dkr_client_endpoint(client);
    g_autofree char *authority = dkr_endpoint_authority(endpoint);
    g_autofree char *more = endpoint->headers ? g_strjoinv("\r\n", endpoint->headers) : NULL;
    const char *body = request->body ? request->body : "";
    return g_strdup_printf("POST %s/v1.%d%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n"
                           "%s%sContent-Type: application/json\r\nContent-Length: %zu\r\n%s"
                           "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n%s",
                           endpoint->base, minor, request->path, authority,
                           dkr_client_user_agent(client), more ? more : "",
                           more && *more ? "\r\n" : "", strlen(body),
                           request->headers ? request->headers : "", request->protocol, body);
}

/* Takes why over. The client's limit is not the call's deadline. */
static bool fail_late(const DkrHijack *hijack, const char *path, gint64 began_us,
                      const SprWait *wait, GError *why, GError **error)
{
    DkrAsked asked = {.endpoint = dkr_client_endpoint(hijack->client),
                      .method = "POST",
                      .path = path,
                      .silent_us = g_get_monotonic_time() - began_us};
    if (!spr_error_is(why, SPR_E_TIMEOUT, "deadline") || spr_wait_is_over(wait))
        return dkr_failure_cut_off(error, why, &asked);
    g_error_free(why);
    return dkr_failure_silent(error, &asked, asked.endpoint->limit_ms > 0);
}

bool dkr_hijack_open(DkrClient *client, const DkrHijackRequest *request, const SprWait *wait,
                     DkrHijack **ret_hijack, GError **error)
{
    int minor;
    SprPass *login;
    const DkrEndpoint *endpoint = dkr_client_endpoint(client);
    if (!dkr_client_api_minor(client, wait, &minor, error) ||
        !spr_gate_enter(endpoint->logins[request->urgent], wait, &login, error))
        return false;
    SprWait limited = spr_wait_within(wait, dkr_client_limit_ms(client));
    g_autoptr(DkrHijack) hijack = g_new0(DkrHijack, 1);
    hijack->client = client;
    hijack->early = g_byte_array_new();
    g_autofree char *text = request_text(client, minor, request);
    gsize head_length = 0;
    gint64 began_us = g_get_monotonic_time();
    GError *why = NULL;
    if (!dkr_conn_open(endpoint, login, &limited, &hijack->conn, &why) ||
        !send_all(hijack, text, strlen(text), &limited, &why) ||
        !read_head(hijack, &limited, &head_length, &why) ||
        !check_head(hijack, head_length, &limited, &why)) {
        if (hijack->early->len == 0 && spr_wait_check(wait, NULL))
            dkr_client_note_refused(client);
        return fail_late(hijack, request->path, began_us, wait, why, error);
    }
    *ret_hijack = g_steal_pointer(&hijack);
    return true;
}

int dkr_hijack_fd(const DkrHijack *hijack)
{
    return dkr_conn_fd(hijack->conn);
}

bool dkr_hijack_is_upgraded(const DkrHijack *hijack)
{
    return hijack->status == 101;
}

bool dkr_hijack_write(DkrHijack *hijack, const void *data, gsize size, gsize *ret_size,
                      GError **error)
{
    return dkr_conn_write(hijack->conn, data, size, ret_size, error);
}

void dkr_hijack_half_close(DkrHijack *hijack)
{
    dkr_conn_half_close(hijack->conn);
}

void dkr_hijack_shut(DkrHijack *hijack)
{
    dkr_conn_shut(hijack->conn);
}

void dkr_hijack_free(DkrHijack *hijack)
{
    if (!hijack)
        return;
    dkr_conn_free(hijack->conn);
    g_byte_array_unref(hijack->early);
    g_free(hijack);
}
