#include "options/names.h"

#include "base/text.h"

#include <string.h>

#define HASH_DIGITS 8
#define RANDOM_DIGITS 6

char *dkr_name_sanitise(const char *text)
{
    GString *out = g_string_new(NULL);
    for (; *text; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (c < 0x80 && (g_ascii_isalnum((char)c) || strchr("_.-", (char)c)))
            g_string_append_c(out, (char)c);
        else
            g_string_append(out, c > 0xffff ? "--" : "-"); /* two UTF-16 units above the BMP */
    }
    if (!g_ascii_isalnum(out->str[0]))
        g_string_prepend(out, "s-");
    if (out->len < 2)
        g_string_append(out, "-sandbox");
    return g_string_free(out, FALSE);
}

char *dkr_name_for_container(const char *id, const char *name)
{
    if (name)
        return dkr_name_sanitise(name);
    g_autofree char *clean = dkr_name_sanitise(id);
    if (strcmp(clean, id) == 0)
        return g_steal_pointer(&clean);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);
    return g_strdup_printf("%s-%.*s", clean, HASH_DIGITS, hash);
}

static void append_base36(GString *out, guint64 value, int min_digits)
{
    char digits[16];
    int n = 0;
    for (; value > 0 || n < min_digits; value /= 36)
        digits[n++] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
    while (n > 0)
        g_string_append_c(out, digits[--n]);
}

char *dkr_name_generate_id(void)
{
    g_autofree char *hex = spr_random_hex(8);
    guint64 random = g_ascii_strtoull(hex, NULL, 16);
    GString *id = g_string_new("docker-sandbox-");
    append_base36(id, (guint64)(g_get_real_time() / 1000), 1);
    g_string_append_c(id, '-');
    append_base36(id, random % G_GUINT64_CONSTANT(2176782336) /* 36^6 */, RANDOM_DIGITS);
    return g_string_free(id, FALSE);
}

bool dkr_name_is_reserved_label(const char *name)
{
    return g_str_has_prefix(name, "mastra.sandbox") || g_str_has_prefix(name, "sprov.");
}

const char *dkr_name_wrong_label(const char *name, const char *text)
{
    if (!dkr_name_is_reserved_label(name))
        return NULL;
    return "is reserved; choose a name that begins neither with \"mastra.sandbox\" nor with "
           "\"sprov.\"";
}
