#include "base/redact.h"

#include "base/text.h"
#include "base/wipe.h"

#include <string.h>

/* Shorter values are looked for as they are alone: their codes would be in every text. */
#define CODED_LEAST 4
/* A line of a value of several lines. */
#define LINE_LEAST 8
/* How much of a value gives it away where a stream ends in it. */
#define PART_LEAST 8

struct SprRedactor {
    GPtrArray *needles;  /* SprSecret, each once, longest first */
    bool may_begin[256]; /* bytes that some needle begins with */
};

struct SprRedactStream {
    const SprRedactor *redactor;
    GByteArray *held;
};

SprRedactor *spr_redactor_new(void)
{
    SprRedactor *redactor = g_new0(SprRedactor, 1);
    redactor->needles = g_ptr_array_new_with_free_func((GDestroyNotify)spr_secret_free);
    return redactor;
}

void spr_redactor_free(SprRedactor *redactor)
{
    if (!redactor)
        return;
    g_ptr_array_unref(redactor->needles);
    g_free(redactor);
}

/* ------------------------------------------------------------------------- needles */

static bool is_known(const SprRedactor *redactor, const char *data, gsize size)
{
    for (guint i = 0; i < redactor->needles->len; i++) {
        const SprSecret *needle = redactor->needles->pdata[i];
        if (spr_secret_size(needle) == size && memcmp(spr_secret_data(needle), data, size) == 0)
            return true;
    }
    return false;
}

static int compare_longest(const void *a, const void *b)
{
    gsize size_a = spr_secret_size(*(SprSecret *const *)a);
    gsize size_b = spr_secret_size(*(SprSecret *const *)b);
    return size_a > size_b ? -1 : size_a < size_b;
}

static void add_needle(SprRedactor *redactor, const char *data, gsize size)
{
    SprSecret *needle =
        size == 0 || is_known(redactor, data, size) ? NULL : spr_secret_new(data, size);
    if (!needle)
        return;
    redactor->may_begin[(guchar)data[0]] = true;
    g_ptr_array_add(redactor->needles, needle);
    g_ptr_array_sort(redactor->needles, compare_longest);
}

/* Takes text and wipes it. */
static void add_coded(SprRedactor *redactor, char *text)
{
    add_needle(redactor, text, strlen(text));
    spr_wipe_free(text, strlen(text));
}

static char *hex_of(const char *value, gsize size, const char *digits)
{
    char *text = g_malloc(2 * size + 1);
    for (gsize i = 0; i < size; i++) {
        text[2 * i] = digits[(guchar)value[i] >> 4];
        text[2 * i + 1] = digits[(guchar)value[i] & 15];
    }
    text[2 * size] = '\0';
    return text;
}

/* Standard and URL alphabet; without what the bytes around it would change. */
static void add_base64(SprRedactor *redactor, const char *value, gsize size)
{
    char *text = g_base64_encode((const guchar *)value, size - size % 3);
    char *url = g_strdelimit(g_strdup(text), "+", '-');
    add_coded(redactor, g_strdelimit(url, "/", '_'));
    add_coded(redactor, text);
}

static void add_codes(SprRedactor *redactor, const char *value, gsize size)
{
    add_base64(redactor, value, size);
    add_coded(redactor, hex_of(value, size, "0123456789abcdef"));
    add_coded(redactor, hex_of(value, size, "0123456789ABCDEF"));
    if (!memchr(value, '\0', size))
        add_coded(redactor, spr_url_escape(value));
}

static void add_lines(SprRedactor *redactor, const char *value, gsize size)
{
    const char *end = value + size;
    while (value < end) {
        const char *stop = memchr(value, '\n', (gsize)(end - value));
        gsize length = (gsize)((stop ? stop : end) - value);
        if (length >= LINE_LEAST)
            add_needle(redactor, value, length);
        value += length + 1;
    }
}

/* A shell cuts the line breaks at the end of a value. */
static gsize size_without_breaks(const char *value, gsize size)
{
    while (size > 0 && (value[size - 1] == '\n' || value[size - 1] == '\r'))
        size--;
    return size;
}

void spr_redactor_add(SprRedactor *redactor, const char *value, gsize size)
{
    SprSecret *whole = spr_secret_new(value, size_without_breaks(value, size));
    if (!whole)
        return;
    const char *data = spr_secret_data(whole);
    gsize length = spr_secret_size(whole);
    add_needle(redactor, data, length);
    if (length >= CODED_LEAST)
        add_codes(redactor, data, length);
    if (memchr(data, '\n', length))
        add_lines(redactor, data, length);
    spr_secret_free(whole);
}

/* --------------------------------------------------------------------------- search */

typedef enum {
    MATCH_NONE,
    MATCH_WHOLE,
    MATCH_PART
} Match;

/* What begins at data. A longer needle that may still come wins over a shorter one that is there,
 * unless nothing more will come. */
static Match match_at(const SprRedactor *redactor, const guint8 *data, gsize size, bool is_end,
                      gsize *ret_size)
{
    if (!redactor->may_begin[data[0]])
        return MATCH_NONE;
    for (guint i = 0; i < redactor->needles->len; i++) {
        const SprSecret *needle = redactor->needles->pdata[i];
        gsize length = spr_secret_size(needle), compared = MIN(length, size);
        if (memcmp(data, spr_secret_data(needle), compared) != 0)
            continue;
        *ret_size = compared;
        if (compared == length)
            return MATCH_WHOLE;
        if (!is_end || compared >= PART_LEAST)
            return is_end ? MATCH_WHOLE : MATCH_PART;
    }
    return MATCH_NONE;
}

/* Appends to out what can be told of data and returns how many bytes that were. */
static gsize redact_bytes(const SprRedactor *redactor, const guint8 *data, gsize size, bool is_end,
                          GByteArray *out)
{
    gsize at = 0, told = 0;
    while (at < size) {
        gsize length = 0;
        Match match = match_at(redactor, data + at, size - at, is_end, &length);
        if (match == MATCH_NONE) {
            at++;
            continue;
        }
        g_byte_array_append(out, data + told, (guint)(at - told));
        told = at;
        if (match == MATCH_PART)
            return told;
        g_byte_array_append(out, (const guint8 *)SPR_REDACTED, strlen(SPR_REDACTED));
        at += length;
        told = at;
    }
    g_byte_array_append(out, data + told, (guint)(size - told));
    return size;
}

char *spr_redact(const SprRedactor *redactor, const char *text)
{
    if (!redactor)
        return g_strdup(text);
    GByteArray *out = g_byte_array_new();
    redact_bytes(redactor, (const guint8 *)text, strlen(text), true, out);
    g_byte_array_append(out, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(out, FALSE);
}

SprRedactStream *spr_redact_stream_new(const SprRedactor *redactor)
{
    SprRedactStream *stream = g_new0(SprRedactStream, 1);
    stream->redactor = redactor;
    stream->held = g_byte_array_new();
    return stream;
}

void spr_redact_stream_free(SprRedactStream *stream)
{
    if (!stream)
        return;
    if (stream->held->len > 0)
        explicit_bzero(stream->held->data, stream->held->len);
    g_byte_array_unref(stream->held);
    g_free(stream);
}

void spr_redact_stream_push(SprRedactStream *stream, const void *data, gsize size, GByteArray *out)
{
    if (!stream->redactor || stream->redactor->needles->len == 0) {
        g_byte_array_append(out, data, (guint)size);
        return;
    }
    g_byte_array_append(stream->held, data, (guint)size);
    gsize told = redact_bytes(stream->redactor, stream->held->data, stream->held->len, false, out);
    g_byte_array_remove_range(stream->held, 0, (guint)told);
}

void spr_redact_stream_finish(SprRedactStream *stream, GByteArray *out)
{
    if (stream->held->len > 0)
        redact_bytes(stream->redactor, stream->held->data, stream->held->len, true, out);
    g_byte_array_set_size(stream->held, 0);
}
