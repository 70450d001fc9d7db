#include "wire/fault.h"

#include <string.h>

const char *const wire_do_names[WIRE_DO_COUNT] = {"split",    "join",    "delay",  "drop",
                                                  "truncate", "rewrite", "answer", "stall"};

static const char *const at_names[] = {"request", "sent", "answer", "body", NULL};
static const char *const end_names[] = {"keep", "shutdown", "close", "reset", "stall", NULL};
static const char *const framing_names[] = {"none", "length", "chunked", "close", "keep", NULL};
static const char *const direction_names[] = {"answer", "request", "both", NULL};
static const char *const part_names[] = {"all", "head", "body", NULL};

bool wire_fail(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, WIRE_ERROR, 1, text);
    return false;
}

/* -------------------------------------------------------------------- single values */

/* The place of a word in a NULL-terminated list; a missing key leaves *ret_index alone. */
static bool take_word(json_t *object, const char *key, const char *const *names, int *ret_index,
                      GError **error)
{
    json_t *value = json_object_get(object, key);
    const char *word = json_string_value(value);
    if (!value)
        return true;
    for (int i = 0; word && names[i]; i++) {
        if (strcmp(word, names[i]) == 0) {
            *ret_index = i;
            return true;
        }
    }
    g_autofree char *all = g_strjoinv(", ", (char **)names);
    return wire_fail(error, "\"%s\" is one of %s", key, all);
}

static bool take_number(json_t *object, const char *key, gint64 least, gint64 *ret, GError **error)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < least)
        return wire_fail(error, "\"%s\" is a whole number of at least %" G_GINT64_FORMAT, key,
                         least);
    *ret = json_integer_value(value);
    return true;
}

static bool take_object(json_t *object, const char *key, json_t **ret, GError **error)
{
    json_t *value = json_object_get(object, key);
    const char *name;
    json_t *member;
    if (value && !json_is_object(value))
        return wire_fail(error, "\"%s\" is an object of names and values", key);
    json_object_foreach(value, name, member)
    {
        if (!json_is_string(member) && !json_is_null(member))
            return wire_fail(error, "%s.%s is a text or null", key, name);
    }
    *ret = json_incref(value);
    return true;
}

/* Bytes are given as text, in base64, or as a text that is repeated to a size. */
static bool bytes_of(json_t *value, GBytes **ret, GError **error)
{
    const char *text = NULL;
    json_int_t size = 0;
    gsize length;
    if (json_is_string(value)) {
        *ret = g_bytes_new(json_string_value(value), json_string_length(value));
        return true;
    }
    if (json_unpack(value, "{s:s!}", "base64", &text) == 0) {
        guchar *data = g_base64_decode(text, &length);
        *ret = g_bytes_new_take(data, length);
        return true;
    }
    if (json_unpack(value, "{s:s, s:I!}", "repeat", &text, "bytes", &size) != 0 || !*text ||
        size < 0)
        return wire_fail(error, "bytes are \"text\", {\"base64\": ...} or "
                                "{\"repeat\": \"text\", \"bytes\": N}");
    length = strlen(text);
    char *data = g_malloc((gsize)size + 1);
    for (gsize i = 0; i < (gsize)size; i++)
        data[i] = text[i % length];
    *ret = g_bytes_new_take(data, (gsize)size);
    return true;
}

static bool take_bytes(json_t *object, const char *key, GBytes **ret, GError **error)
{
    json_t *value = json_object_get(object, key);
    if (!value || bytes_of(value, ret, error))
        return true;
    g_prefix_error(error, "\"%s\": ", key);
    return false;
}

/* ------------------------------------------------------------------ single actions */

static bool parse_direction(WireFault *fault, json_t *object, GError **error)
{
    int direction = 0, part = 0;
    if (!take_word(object, "direction", direction_names, &direction, error) ||
        !take_word(object, "part", part_names, &part, error))
        return false;
    fault->on_answer = direction != 1;
    fault->on_request = direction != 0;
    fault->on_head = part != 2;
    fault->on_body = part != 1;
    return true;
}

static bool parse_split(WireFault *fault, json_t *object, GError **error)
{
    json_t *sizes = json_object_get(object, "sizes");
    json_t *size;
    size_t i;
    gint64 gap_ms = 0;
    if (json_array_size(sizes) == 0 || json_array_size(sizes) > WIRE_SIZES_MOST)
        return wire_fail(error, "\"sizes\" is a list of 1 to %d numbers", WIRE_SIZES_MOST);
    json_array_foreach(sizes, i, size)
    {
        if (json_integer_value(size) < 1)
            return wire_fail(error, "sizes[%zu] is a whole number of at least 1", i);
        fault->shape.sizes[i] = (gsize)json_integer_value(size);
    }
    fault->shape.n_sizes = i;
    if (!take_number(object, "gap_ms", 0, &gap_ms, error))
        return false;
    fault->shape.gap_us = gap_ms * 1000;
    return parse_direction(fault, object, error);
}

static bool parse_join(WireFault *fault, json_t *object, GError **error)
{
    gint64 size = 1 << 20, quiet_ms = 50;
    if (!take_number(object, "size", 2, &size, error) ||
        !take_number(object, "quiet_ms", 1, &quiet_ms, error))
        return false;
    fault->shape.join = (gsize)size;
    fault->shape.quiet_us = quiet_ms * 1000;
    return parse_direction(fault, object, error);
}

static bool parse_place(WireFault *fault, json_t *object, GError **error)
{
    int at = (int)fault->at;
    gint64 after = 0;
    if (!take_word(object, "at", at_names, &at, error) ||
        !take_number(object, "after", 0, &after, error))
        return false;
    if (after > 0 && at != WIRE_AT_BODY)
        return wire_fail(error, "\"after\" goes with \"at\": \"body\"");
    if (at == WIRE_AT_SENT && fault->what != WIRE_DO_DROP)
        return wire_fail(error, "\"at\": \"sent\" is for drop alone");
    fault->at = (WireAt)at;
    fault->after = (guint64)after;
    return true;
}

static bool parse_delay(WireFault *fault, json_t *object, GError **error)
{
    if (!json_object_get(object, "ms"))
        return wire_fail(error, "\"ms\" is missing");
    return take_number(object, "ms", 0, &fault->ms, error) && parse_place(fault, object, error);
}

static bool parse_stall(WireFault *fault, json_t *object, GError **error)
{
    fault->at = WIRE_AT_REQUEST;
    return parse_place(fault, object, error);
}

static bool parse_drop(WireFault *fault, json_t *object, GError **error)
{
    int end = WIRE_END_CLOSE;
    if (!take_word(object, "how", end_names, &end, error) || !parse_place(fault, object, error))
        return false;
    if (end != WIRE_END_CLOSE && end != WIRE_END_RESET)
        return wire_fail(error, "\"how\" is close or reset");
    fault->end = (WireEnd)end;
    return true;
}

static bool parse_truncate(WireFault *fault, json_t *object, GError **error)
{
    gint64 after = 0;
    if (!take_number(object, "after", 0, &after, error))
        return false;
    fault->after = (guint64)after;
    return true;
}

static bool check_replace(json_t *replace, GError **error)
{
    size_t i;
    json_t *pair;
    if (replace && !json_is_array(replace))
        return wire_fail(error, "\"replace\" is a list");
    json_array_foreach(replace, i, pair)
    {
        const char *from, *to;
        if (json_unpack(pair, "{s:s, s:s!}", "from", &from, "to", &to) != 0 || !*from)
            return wire_fail(error, "replace[%zu] is {\"from\": \"text\", \"to\": \"text\"}", i);
    }
    return true;
}

/* What rewrite and answer have in common. */
static bool parse_content(WireFault *fault, json_t *object, GError **error)
{
    gint64 status = fault->status, chunk = 0, interim = 0, pad = 0;
    int framing = (int)fault->framing;
    if (!take_number(object, "status", 100, &status, error) ||
        !take_number(object, "chunk", 1, &chunk, error) ||
        !take_number(object, "interim", 0, &interim, error) ||
        !take_number(object, "pad_head", 0, &pad, error) ||
        !take_word(object, "framing", framing_names, &framing, error) ||
        !take_object(object, "headers", &fault->headers, error) ||
        !take_object(object, "trailers", &fault->trailers, error) ||
        !take_bytes(object, "body", &fault->body, error))
        return false;
    if ((chunk > 0 || fault->trailers) && framing != WIRE_FRAMING_CHUNKED)
        return wire_fail(error, "\"chunk\" and \"trailers\" go with \"framing\": \"chunked\"");
    fault->status = (int)status;
    fault->reason = g_strdup(json_string_value(json_object_get(object, "reason")));
    fault->framing = (WireFraming)framing;
    fault->chunk = (gsize)chunk;
    fault->interim = (int)interim;
    fault->pad_head = (gsize)pad;
    fault->endless_head = json_is_true(json_object_get(object, "endless_head"));
    return true;
}

static bool parse_rewrite(WireFault *fault, json_t *object, GError **error)
{
    json_t *replace = json_object_get(object, "replace");
    fault->framing = WIRE_FRAMING_KEEP;
    if (!check_replace(replace, error) ||
        !take_object(object, "request_headers", &fault->request_headers, error))
        return false;
    fault->replace = json_incref(replace);
    return parse_content(fault, object, error);
}

static bool parse_answer(WireFault *fault, json_t *object, GError **error)
{
    int end = WIRE_END_KEEP, at = WIRE_AT_SENT;
    fault->status = 200;
    fault->framing = WIRE_FRAMING_LENGTH;
    if (!take_word(object, "end", end_names, &end, error) ||
        !take_word(object, "at", at_names, &at, error) ||
        !take_bytes(object, "raw", &fault->raw, error) || !parse_content(fault, object, error))
        return false;
    if (at != WIRE_AT_REQUEST && at != WIRE_AT_SENT)
        return wire_fail(error, "\"at\" of an answer is request or sent");
    fault->at = (WireAt)at;
    if (fault->framing == WIRE_FRAMING_KEEP)
        return wire_fail(error, "\"framing\": \"keep\" is for rewrite");
    if ((fault->framing == WIRE_FRAMING_CLOSE || fault->status == 101) && end == WIRE_END_KEEP)
        end = WIRE_END_CLOSE;
    fault->end = (WireEnd)end;
    if (!fault->body)
        fault->body = g_bytes_new_static("", 0);
    return true;
}

/* ------------------------------------------------------------------------- actions */

#define CONTENT "status reason headers trailers body framing chunk interim pad_head endless_head"

static const struct {
    const char *keys;
    bool (*parse)(WireFault *fault, json_t *object, GError **error);
} actions[WIRE_DO_COUNT] = {
    [WIRE_DO_SPLIT] = {"sizes gap_ms direction part", parse_split},
    [WIRE_DO_JOIN] = {"size quiet_ms direction part", parse_join},
    [WIRE_DO_DELAY] = {"ms at after", parse_delay},
    [WIRE_DO_DROP] = {"at after how", parse_drop},
    [WIRE_DO_TRUNCATE] = {"after", parse_truncate},
    [WIRE_DO_REWRITE] = {CONTENT " replace request_headers", parse_rewrite},
    [WIRE_DO_ANSWER] = {CONTENT " raw end at", parse_answer},
    [WIRE_DO_STALL] = {"at after", parse_stall},
};

static bool check_keys(json_t *object, WireDo what, GError **error)
{
    g_auto(GStrv) known = g_strsplit(actions[what].keys, " ", -1);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "do") != 0 && !g_strv_contains((const char *const *)known, key))
            return wire_fail(error, "%s has no \"%s\"; it takes: %s", wire_do_names[what], key,
                             actions[what].keys);
    }
    return true;
}

bool wire_fault_parse(json_t *object, WireFault **ret_fault, GError **error)
{
    const char *word = json_string_value(json_object_get(object, "do"));
    int what = 0;
    while (what < WIRE_DO_COUNT && g_strcmp0(word, wire_do_names[what]) != 0)
        what++;
    if (what == WIRE_DO_COUNT)
        return wire_fail(error, "\"do\" is one of split, join, delay, drop, truncate, rewrite, "
                                "answer, stall");
    g_autoptr(WireFault) fault = g_new0(WireFault, 1);
    fault->refs = 1;
    fault->what = (WireDo)what;
    fault->at = WIRE_AT_ANSWER;
    if (!check_keys(object, fault->what, error) || !actions[what].parse(fault, object, error))
        return false;
    *ret_fault = g_steal_pointer(&fault);
    return true;
}

WireFault *wire_fault_ref(WireFault *fault)
{
    fault->refs++;
    return fault;
}

void wire_fault_unref(WireFault *fault)
{
    if (!fault || --fault->refs > 0)
        return;
    json_decref(fault->headers);
    json_decref(fault->request_headers);
    json_decref(fault->replace);
    json_decref(fault->trailers);
    g_clear_pointer(&fault->body, g_bytes_unref);
    g_clear_pointer(&fault->raw, g_bytes_unref);
    g_free(fault->reason);
    g_free(fault);
}
