#include "engine/client_own.h"

#include "base/error.h"

#include <curl/curl.h>
#include <string.h>

#define HEAD_MOST (256u << 10)
#define BUFFER_SIZE (256L << 10)

/* --------------------------------------------------------------- curl's callbacks */

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    DkrReply *reply = ctx;
    gsize length = size * count;
    reply->last_byte_us = g_get_monotonic_time();
    reply->head_size += length;
    if (reply->head_size > HEAD_MOST) {
        spr_fail(&reply->callback_error, SPR_E_IO, "bad-answer",
                 "the engine's answer to %s has a head of more than %u bytes", reply->request.path,
                 HEAD_MOST);
        return 0;
    }
    if (length >= 5 && strncmp(line, "HTTP/", 5) == 0) {
        dkr_lane_heard(reply->lane);
        g_hash_table_remove_all(reply->headers);
        return length;
    }
    const char *colon = memchr(line, ':', length);
    if (colon) {
        gsize name_length = (gsize)(colon - line);
        char *value = g_strndup(colon + 1, length - name_length - 1);
        g_hash_table_replace(reply->headers, g_ascii_strdown(line, (gssize)name_length),
                             g_strstrip(value));
        return length;
    }
    long status = 0; /* the empty line behind a head */
    curl_easy_getinfo(reply->lane->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200) {
        reply->status = (int)status;
        reply->head_done = true;
    }
    return length;
}

static size_t on_write(char *data, size_t size, size_t count, void *ctx)
{
    DkrReply *reply = ctx;
    if (reply->buffer->len > DKR_REPLY_PAUSE_ABOVE) {
        reply->write_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    reply->last_byte_us = g_get_monotonic_time();
    g_byte_array_append(reply->buffer, (const guint8 *)data, (guint)(size * count));
    return size * count;
}

static size_t on_read(char *buffer, size_t size, size_t count, void *ctx)
{
    DkrReply *reply = ctx;
    gsize got = 0;
    int again_fd = -1;
    reply->last_byte_us = g_get_monotonic_time();
    if (!reply->request.read_body(reply->request.read_ctx, buffer, size * count, &got, &again_fd,
                                  &reply->callback_error))
        return CURL_READFUNC_ABORT;
    if (got == 0 && again_fd >= 0) {
        reply->again_fd = again_fd;
        return CURL_READFUNC_PAUSE;
    }
    return got;
}

/* A text in curl's own hands would be sent again when a connection that was kept breaks. */
static size_t on_read_text(char *buffer, size_t size, size_t count, void *ctx)
{
    DkrReply *reply = ctx;
    const char *rest = reply->request.body + reply->body_used;
    gsize n = MIN(strlen(rest), size * count);
    memcpy(buffer, rest, n);
    reply->body_used += n;
    return n;
}

/* ------------------------------------------------------------------ what is asked for */

static void add_header(DkrReply *reply, const char *line)
{
    reply->request_headers = curl_slist_append(reply->request_headers, line);
}

static void add_secret_header(DkrReply *reply, const char *name, const SprSecret *value)
{
    char *line = g_strdup_printf("%s: %s", name, spr_secret_data(value));
    add_header(reply, line);
    spr_wipe_free(line, strlen(line));
}

/* Any of them may be secret. */
void dkr_reply_free_headers(DkrReply *reply)
{
    struct curl_slist *headers = reply->request_headers;
    for (struct curl_slist *one = headers; one; one = one->next)
        explicit_bzero(one->data, strlen(one->data));
    curl_slist_free_all(headers);
}

static void setup_body(DkrReply *reply, const DkrRequest *request)
{
    CURL *easy = reply->lane->easy;
    if (request->read_body) {
        g_autofree char *type = g_strdup_printf("Content-Type: %s", request->body_type);
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(easy, CURLOPT_READDATA, reply);
        /* Engines leave a tar's padding unread and reset the connection behind a good answer. */
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        add_header(reply, type);
        if (request->body_size == 0)
            add_header(reply, "Transfer-Encoding: chunked");
        else
            curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_size);
    } else if (strcmp(request->method, "POST") == 0) {
        gsize length = request->body ? strlen(request->body) : 0;
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read_text);
        curl_easy_setopt(easy, CURLOPT_READDATA, reply);
        add_header(reply, "Content-Type: application/json");
        add_header(reply, "Expect:");
    } else if (strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

void dkr_reply_setup(DkrReply *reply, const DkrRequest *request, int api_minor)
{
    CURL *easy = reply->lane->easy;
    const DkrEndpoint *endpoint = reply->client->endpoint;
    g_autofree char *authority = dkr_endpoint_authority(endpoint);
    g_autofree char *version = g_strdup_printf("/v1.%d", api_minor);
    reply->url =
        g_strdup_printf("%s://%s%s%s%s", endpoint->tls ? "https" : "http", authority,
                        endpoint->base, request->unversioned ? "" : version, request->path);
    for (char **line = endpoint->headers; line && *line; line++)
        add_header(reply, *line);
    if (request->registry_auth)
        add_secret_header(reply, "X-Registry-Auth", request->registry_auth);
    dkr_lane_setup(reply->lane);
    setup_body(reply, request);
    curl_easy_setopt(easy, CURLOPT_URL, reply->url);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, reply->client->user_agent);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, reply->request_headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, reply);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, reply);
    curl_multi_add_handle(reply->lane->multi, easy);
}
