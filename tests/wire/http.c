#include "wire/http.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_MOST (1u << 20)
#define LINE_MOST (64u << 10)

enum {
    CHUNK_SIZE,
    CHUNK_DATA,
    CHUNK_END,
    CHUNK_TRAILER
};

void wire_http_init(WireHttp *http, bool is_answer, bool to_head)
{
    *http = (WireHttp){.is_answer = is_answer,
                       .to_head = to_head,
                       .head = g_byte_array_new(),
                       .line = g_string_new(NULL)};
}

void wire_http_clear(WireHttp *http)
{
    if (http->head)
        g_byte_array_unref(http->head);
    if (http->line)
        g_string_free(http->line, TRUE);
    g_free(http->method);
    g_free(http->target);
    *http = (WireHttp){0};
}

/* ---------------------------------------------------------------------------- heads */

char *wire_http_header(const GByteArray *head, const char *name)
{
    g_autofree char *text = g_strndup((const char *)head->data, head->len);
    g_auto(GStrv) lines = g_strsplit(text, "\r\n", -1);
    gsize length = strlen(name);
    for (char **line = lines[0] ? lines + 1 : lines; *line; line++) {
        if (g_ascii_strncasecmp(*line, name, length) == 0 && (*line)[length] == ':')
            return g_strstrip(g_strdup(*line + length + 1));
    }
    return NULL;
}

/* "GET /path HTTP/1.1" or "HTTP/1.1 200 OK". */
static bool parse_start_line(WireHttp *http)
{
    const guint8 *end = memchr(http->head->data, '\r', http->head->len);
    g_autofree char *line = g_strndup((char *)http->head->data, (gsize)(end - http->head->data));
    g_auto(GStrv) words = g_strsplit(line, " ", 3);
    if (g_strv_length(words) < 2)
        return false;
    if (http->is_answer) {
        http->status = atoi(words[1]);
        return g_str_has_prefix(words[0], "HTTP/1.") && http->status >= 100 && http->status < 1000;
    }
    if (!words[2] || !g_str_has_prefix(words[2], "HTTP/1."))
        return false;
    http->method = g_strdup(words[0]);
    http->target = g_strdup(words[1]);
    return true;
}

static bool has_no_body(const WireHttp *http)
{
    if (!http->is_answer)
        return false;
    return http->to_head || http->status < 200 || http->status == 204 || http->status == 304;
}

static void start_body(WireHttp *http)
{
    g_autofree char *coding = wire_http_header(http->head, "transfer-encoding");
    g_autofree char *length = wire_http_header(http->head, "content-length");
    g_autofree char *upgrade = wire_http_header(http->head, "upgrade");
    http->wants_upgrade = upgrade != NULL;
    http->state = WIRE_HTTP_DONE;
    if (http->is_answer && http->status == 101) {
        http->framing = WIRE_FRAMING_CLOSE;
        http->state = WIRE_HTTP_TO_END;
    } else if (has_no_body(http)) {
        http->framing = WIRE_FRAMING_NONE;
    } else if (coding && g_ascii_strcasecmp(coding, "chunked") == 0) {
        http->framing = WIRE_FRAMING_CHUNKED;
        http->state = WIRE_HTTP_BODY;
    } else if (length) {
        http->framing = WIRE_FRAMING_LENGTH;
        http->left = g_ascii_strtoull(length, NULL, 10);
        http->state = http->left > 0 ? WIRE_HTTP_BODY : WIRE_HTTP_DONE;
    } else if (http->is_answer) {
        http->framing = WIRE_FRAMING_CLOSE;
        http->state = WIRE_HTTP_TO_END;
    }
}

/* What cannot become a start line is told at once, not when a megabyte of it has come. */
static bool begins_badly(const WireHttp *http)
{
    const GByteArray *head = http->head;
    if (http->is_answer)
        return memcmp(head->data, "HTTP/1.", MIN(head->len, 7)) != 0;
    return !g_ascii_isupper(head->data[0]) || head->len > HEAD_MOST;
}

static gsize feed_head(WireHttp *http, const guint8 *data, gsize size)
{
    gsize before = http->head->len;
    g_byte_array_append(http->head, data, (guint)size);
    gsize from = before > 3 ? before - 3 : 0;
    const guint8 *end = memmem(http->head->data + from, http->head->len - from, "\r\n\r\n", 4);
    if (!end) {
        if (begins_badly(http) || http->head->len > HEAD_MOST)
            http->state = WIRE_HTTP_BAD;
        return size;
    }
    gsize length = (gsize)(end + 4 - http->head->data);
    g_byte_array_set_size(http->head, (guint)length);
    if (parse_start_line(http)) {
        start_body(http);
    } else {
        http->state = WIRE_HTTP_BAD;
    }
    return length - before;
}

/* --------------------------------------------------------------------------- bodies */

static gsize feed_bytes(WireHttp *http, const guint8 *data, gsize size, GByteArray *body)
{
    gsize n = (gsize)MIN(http->left, size);
    http->left -= n;
    http->body_size += n;
    if (body)
        g_byte_array_append(body, data, (guint)n);
    return n;
}

static void end_line(WireHttp *http)
{
    const char *line = http->line->str;
    if (http->part == CHUNK_SIZE) {
        char *end;
        http->left = g_ascii_strtoull(line, &end, 16);
        if (end == line)
            http->state = WIRE_HTTP_BAD;
        http->part = http->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    } else if (http->part == CHUNK_END) {
        http->part = CHUNK_SIZE;
    } else if (*line == '\0') {
        http->state = WIRE_HTTP_DONE;
    }
    g_string_truncate(http->line, 0);
}

/* One line, of which bytes may have come before; CR is left out. */
static gsize feed_line(WireHttp *http, const guint8 *data, gsize size)
{
    const guint8 *end = memchr(data, '\n', size);
    gsize n = end ? (gsize)(end - data) + 1 : size;
    for (gsize i = 0; i < n; i++) {
        if (data[i] != '\r' && data[i] != '\n')
            g_string_append_c(http->line, (char)data[i]);
    }
    if (end)
        end_line(http);
    else if (http->line->len > LINE_MOST)
        http->state = WIRE_HTTP_BAD;
    return n;
}

static gsize feed_chunked(WireHttp *http, const guint8 *data, gsize size, GByteArray *body)
{
    gsize used = 0;
    while (used < size && http->state == WIRE_HTTP_BODY) {
        if (http->part == CHUNK_DATA) {
            used += feed_bytes(http, data + used, size - used, body);
            if (http->left == 0)
                http->part = CHUNK_END;
        } else {
            used += feed_line(http, data + used, size - used);
        }
    }
    return used;
}

gsize wire_http_feed(WireHttp *http, const guint8 *data, gsize size, GByteArray *body)
{
    gsize n;
    if (size == 0)
        return 0;
    switch (http->state) {
    case WIRE_HTTP_HEAD:
        return feed_head(http, data, size);
    case WIRE_HTTP_BODY:
        if (http->framing == WIRE_FRAMING_CHUNKED)
            return feed_chunked(http, data, size, body);
        n = feed_bytes(http, data, size, body);
        if (http->left == 0)
            http->state = WIRE_HTTP_DONE;
        return n;
    case WIRE_HTTP_TO_END:
        http->left = size;
        return feed_bytes(http, data, size, body);
    default:
        return 0;
    }
}
