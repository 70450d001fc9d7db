#include "wire/message.h"

#include <string.h>

#define PAD_LINE 1000

/* ---------------------------------------------------------------------------- heads */

static bool is_changed(const json_t *changes, const char *line)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)changes, name, value)
    {
        gsize length = strlen(name);
        if (g_ascii_strncasecmp(line, name, length) == 0 && line[length] == ':')
            return true;
    }
    return false;
}

static void append_headers(GString *text, const json_t *headers)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)headers, name, value)
    {
        if (json_is_string(value))
            g_string_append_printf(text, "%s: %s\r\n", name, json_string_value(value));
    }
}

/* "HTTP/1.1 200 OK"; a request keeps its line. */
static void append_start_line(GString *text, const char *line, int status, const char *reason)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 3);
    bool whole = g_strv_length(words) >= 2;
    if (!whole || (status == 0 && !reason)) {
        g_string_append_printf(text, "%s\r\n", line);
        return;
    }
    g_autofree char *number = status ? g_strdup_printf("%d", status) : g_strdup(words[1]);
    g_string_append_printf(text, "%s %s %s\r\n", words[0], number,
                           reason     ? reason
                           : words[2] ? words[2]
                                      : "");
}

static GByteArray *to_bytes(GString *text)
{
    gsize length = text->len;
    return g_byte_array_new_take((guint8 *)g_string_free(text, FALSE), length);
}

GByteArray *wire_head_edit(const GByteArray *head, int status, const char *reason,
                           const json_t *changes)
{
    g_autofree char *old = g_strndup((const char *)head->data, head->len);
    g_auto(GStrv) lines = g_strsplit(old, "\r\n", -1);
    GString *text = g_string_new(NULL);
    append_start_line(text, lines[0], status, reason);
    for (char **line = lines + 1; *line && **line; line++) {
        if (!is_changed(changes, *line))
            g_string_append_printf(text, "%s\r\n", *line);
    }
    append_headers(text, changes);
    g_string_append(text, "\r\n");
    return to_bytes(text);
}

GByteArray *wire_head_frame(const GByteArray *head, WireFraming framing, gsize size)
{
    g_autofree char *length = g_strdup_printf("%zu", size);
    json_auto_t *changes = json_pack("{s:n, s:n}", "Content-Length", "Transfer-Encoding");
    if (framing == WIRE_FRAMING_LENGTH)
        json_object_set_new(changes, "Content-Length", json_string(length));
    else if (framing == WIRE_FRAMING_CHUNKED)
        json_object_set_new(changes, "Transfer-Encoding", json_string("chunked"));
    else if (framing == WIRE_FRAMING_CLOSE)
        json_object_set_new(changes, "Connection", json_string("close"));
    return wire_head_edit(head, 0, NULL, changes);
}

void wire_head_pad(GByteArray *head, gsize size)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; head->len + text->len < size; i++) {
        gsize missing = size - head->len - text->len;
        g_string_append_printf(text, "X-Pad-%u: %0*d\r\n", i, (int)MIN(missing, PAD_LINE), 0);
    }
    g_string_append(text, "\r\n");
    g_byte_array_set_size(head, head->len - 2); /* the empty line */
    g_byte_array_append(head, (guint8 *)text->str, (guint)text->len);
}

/* --------------------------------------------------------------------------- bodies */

void wire_chunks_append(GByteArray *to, const guint8 *data, gsize size, gsize chunk)
{
    while (size > 0) {
        gsize n = chunk > 0 ? MIN(chunk, size) : size;
        g_autofree char *line = g_strdup_printf("%zx\r\n", n);
        g_byte_array_append(to, (guint8 *)line, (guint)strlen(line));
        g_byte_array_append(to, data, (guint)n);
        g_byte_array_append(to, (const guint8 *)"\r\n", 2);
        data += n;
        size -= n;
    }
}

void wire_chunks_end(GByteArray *to, const json_t *trailers)
{
    g_autoptr(GString) text = g_string_new("0\r\n");
    append_headers(text, trailers);
    g_string_append(text, "\r\n");
    g_byte_array_append(to, (guint8 *)text->str, (guint)text->len);
}

static GByteArray *replace_one(const GByteArray *data, const char *from, const char *to)
{
    GByteArray *result = g_byte_array_new();
    const guint8 *at = data->data, *end = data->data + data->len, *hit;
    while (at < end && (hit = memmem(at, (gsize)(end - at), from, strlen(from)))) {
        g_byte_array_append(result, at, (guint)(hit - at));
        g_byte_array_append(result, (const guint8 *)to, (guint)strlen(to));
        at = hit + strlen(from);
    }
    if (at < end)
        g_byte_array_append(result, at, (guint)(end - at));
    return result;
}

GByteArray *wire_bytes_replace(const GByteArray *data, const json_t *replace)
{
    GByteArray *result = g_byte_array_new();
    size_t i;
    json_t *pair;
    if (data->len > 0)
        g_byte_array_append(result, data->data, data->len);
    json_array_foreach(replace, i, pair)
    {
        GByteArray *next = replace_one(result, json_string_value(json_object_get(pair, "from")),
                                       json_string_value(json_object_get(pair, "to")));
        g_byte_array_unref(result);
        result = next;
    }
    return result;
}

/* ---------------------------------------------------------------------------- flows */

GByteArray *wire_body_frame(const WireFault *fault, WireFraming framing, const guint8 *data,
                            gsize size)
{
    GByteArray *framed = g_byte_array_new();
    if (framing == WIRE_FRAMING_CHUNKED) {
        wire_chunks_append(framed, data, size, fault ? fault->chunk : 0);
        wire_chunks_end(framed, fault ? fault->trailers : NULL);
    } else if (framing != WIRE_FRAMING_NONE && size > 0) {
        g_byte_array_append(framed, data, (guint)size);
    }
    return framed;
}

void wire_flow_head(WireFlow *flow, const WireFault *fault, const GByteArray *head,
                    const WireShape *shape)
{
    static const char interim[] = "HTTP/1.1 102 Processing\r\n\r\n";
    if (!fault) {
        wire_flow_bytes(flow, head->data, head->len, shape);
        return;
    }
    g_autoptr(GByteArray) edited =
        wire_head_edit(head, fault->status, fault->reason, fault->headers);
    for (int i = 0; i < fault->interim; i++)
        wire_flow_bytes(flow, interim, sizeof interim - 1, shape);
    if (fault->pad_head > edited->len)
        wire_head_pad(edited, fault->pad_head);
    gsize length = fault->endless_head ? edited->len - 2 : edited->len;
    wire_flow_bytes(flow, edited->data, length, shape);
    if (fault->endless_head)
        wire_flow_endless(flow);
}

static GByteArray *new_head(const WireFault *fault, gsize size)
{
    bool upgraded = fault->status == 101;
    g_autofree char *line = g_strdup_printf("HTTP/1.1 %d %s\r\n", fault->status,
                                            fault->reason ? fault->reason : "Answered");
    g_autoptr(GByteArray) head = g_byte_array_new();
    const char *headers = upgraded ? "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
                                   : "Content-Type: application/json\r\n\r\n";
    g_byte_array_append(head, (guint8 *)line, (guint)strlen(line));
    g_byte_array_append(head, (const guint8 *)headers, (guint)strlen(headers));
    if (upgraded)
        return g_steal_pointer(&head);
    return wire_head_frame(head, fault->framing, size);
}

void wire_flow_answer(WireFlow *flow, const WireFault *fault, bool to_head,
                      const WireShapes *shapes)
{
    gsize size, raw_size;
    const guint8 *data = g_bytes_get_data(fault->body, &size);
    WireFraming framing = to_head ? WIRE_FRAMING_NONE : fault->framing;
    if (fault->raw) {
        const guint8 *raw = g_bytes_get_data(fault->raw, &raw_size);
        wire_flow_bytes(flow, raw, raw_size, &shapes->head);
    } else {
        g_autoptr(GByteArray) head = new_head(fault, size);
        g_autoptr(GByteArray) body = wire_body_frame(fault, framing, data, size);
        wire_flow_head(flow, fault, head, &shapes->head);
        wire_flow_bytes(flow, body->data, body->len, &shapes->body);
    }
    if (fault->end != WIRE_END_KEEP)
        wire_flow_end(flow, fault->end);
}
