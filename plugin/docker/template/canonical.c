#include "template/canonical.h"

#include <string.h>

#define EXCERPT_BYTES 60

void dkr_canonical_append_string(GString *out, const char *text, gsize size)
{
    static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    g_string_append_c(out, '"');
    for (gsize i = 0; i < size; i++) {
        guchar c = (guchar)text[i];
        const char *at = c ? strchr(special, c) : NULL;
        if (at)
            g_string_append_printf(out, "\\%c", letter[at - special]);
        else if (c < 0x20)
            g_string_append_printf(out, "\\u%04x", c);
        else
            g_string_append_c(out, (char)c);
    }
    g_string_append_c(out, '"');
}

/* The shortest digits that read back as value, as "d.ddde±x" without a locale's decimal point. */
static void shortest_digits(double value, char *digits, int *ret_exponent)
{
    char text[40], format[16];
    for (int precision = 0; precision <= 16; precision++) {
        g_snprintf(format, sizeof format, "%%.%de", precision);
        g_ascii_formatd(text, sizeof text, format, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    char *e = strchr(text, 'e');
    *ret_exponent = (int)g_ascii_strtoll(e + 1, NULL, 10);
    for (const char *p = text; p < e; p++)
        if (*p != '.')
            *digits++ = *p;
    *digits = '\0';
}

/* Number::toString of ECMAScript: plain digits from 1e-7 (exclusive) up to 1e21. */
static void append_number(GString *out, double value)
{
    char digits[40];
    int exponent;
    if (value == 0) { /* also -0 */
        g_string_append_c(out, '0');
        return;
    }
    if (value < 0)
        g_string_append_c(out, '-');
    shortest_digits(value < 0 ? -value : value, digits, &exponent);
    int n_digits = (int)strlen(digits), point = exponent + 1;
    if (point > 21 || point < -5) {
        g_string_append_c(out, digits[0]);
        if (n_digits > 1)
            g_string_append_printf(out, ".%s", digits + 1);
        g_string_append_printf(out, "e%+d", exponent);
    } else if (point <= 0) {
        g_string_append(out, "0.");
        for (int i = point; i < 0; i++)
            g_string_append_c(out, '0');
        g_string_append(out, digits);
    } else if (point >= n_digits) {
        g_string_append(out, digits);
        for (int i = n_digits; i < point; i++)
            g_string_append_c(out, '0');
    } else {
        g_string_append_len(out, digits, point);
        g_string_append_printf(out, ".%s", digits + point);
    }
}

static void append_object(GString *out, const json_t *object)
{
    const char *key;
    json_t *value;
    bool first = true;
    g_string_append_c(out, '{');
    json_object_foreach((json_t *)object, key, value)
    {
        if (!first)
            g_string_append_c(out, ',');
        first = false;
        dkr_canonical_append_string(out, key, strlen(key));
        g_string_append_c(out, ':');
        dkr_canonical_append(out, value);
    }
    g_string_append_c(out, '}');
}

void dkr_canonical_append(GString *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(out, value);
        break;
    case JSON_ARRAY:
        g_string_append_c(out, '[');
        for (gsize i = 0; i < json_array_size(value); i++) {
            if (i > 0)
                g_string_append_c(out, ',');
            dkr_canonical_append(out, json_array_get(value, i));
        }
        g_string_append_c(out, ']');
        break;
    case JSON_STRING:
        dkr_canonical_append_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        append_number(out, json_number_value(value));
        break;
    case JSON_TRUE:
        g_string_append(out, "true");
        break;
    case JSON_FALSE:
        g_string_append(out, "false");
        break;
    case JSON_NULL:
        g_string_append(out, "null");
        break;
    }
}

char *dkr_canonical_excerpt_string(const char *text, gsize size)
{
    gsize shown = MIN(size, EXCERPT_BYTES);
    while (shown > 0 && shown < size && ((guchar)text[shown] & 0xc0) == 0x80)
        shown--;
    GString *out = g_string_new(NULL);
    dkr_canonical_append_string(out, text, shown);
    if (shown < size)
        g_string_append(out, "...");
    return g_string_free(out, FALSE);
}

char *dkr_canonical_excerpt(const json_t *value)
{
    if (!value)
        return g_strdup("nothing");
    if (json_is_string(value))
        return dkr_canonical_excerpt_string(json_string_value(value), json_string_length(value));
    if (json_is_array(value))
        return g_strdup("a list");
    if (json_is_object(value))
        return g_strdup("an object");
    GString *out = g_string_new(NULL);
    dkr_canonical_append(out, value);
    return g_string_free(out, FALSE);
}

gsize dkr_utf16_length(const char *text, gsize size)
{
    gsize length = 0;
    for (gsize i = 0; i < size; i++) {
        guchar c = (guchar)text[i];
        if ((c & 0xc0) != 0x80)
            length += c >= 0xf0 ? 2 : 1;
    }
    return length;
}

/* Where a character sorts among UTF-16 code units: beyond the basic plane by its surrogates,
 * which lie below U+E000. */
static gunichar utf16_rank(gunichar c)
{
    return c >= 0x10000 ? 0xd800 : c;
}

int dkr_utf16_compare(const char *a, const char *b)
{
    while (*a && *b) {
        gunichar ca = g_utf8_get_char(a), cb = g_utf8_get_char(b);
        if (ca != cb) {
            gunichar ra = utf16_rank(ca), rb = utf16_rank(cb);
            if (ra == rb)
                return ca < cb ? -1 : 1;
            return ra < rb ? -1 : 1;
        }
        a = g_utf8_next_char(a);
        b = g_utf8_next_char(b);
    }
    return *a ? 1 : *b ? -1 : 0;
}

bool dkr_is_space(gunichar c)
{
    return g_unichar_isspace(c) || c == 0x0b || c == 0x85;
}

bool dkr_is_blank(const char *text)
{
    while (*text && dkr_is_space(g_utf8_get_char(text)))
        text = g_utf8_next_char(text);
    return *text == '\0';
}
