#include "base/text.h"

#include <string.h>
#include <sys/random.h>

char *spr_shell_quote(const char *text)
{
    static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "._/=:@-";
    if (text[0] != '\0' && strspn(text, bare) == strlen(text))
        return g_strdup(text);
    return spr_shell_quote_always(text);
}

char *spr_shell_quote_always(const char *text)
{
    GString *out = g_string_new("'");
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            g_string_append(out, "'\\''");
        else
            g_string_append_c(out, *p);
    }
    g_string_append_c(out, '\'');
    return g_string_free(out, FALSE);
}

char *spr_url_escape(const char *text)
{
    GString *out = g_string_new(NULL);
    for (const guchar *p = (const guchar *)text; *p; p++) {
        if (g_ascii_isalnum(*p) || strchr("-._~", *p))
            g_string_append_c(out, (char)*p);
        else
            g_string_append_printf(out, "%%%02X", *p);
    }
    return g_string_free(out, FALSE);
}

char *spr_random_hex(gsize n_bytes)
{
    guint8 bytes[64];
    gsize have = 0;
    n_bytes = MIN(n_bytes, sizeof bytes);
    while (have < n_bytes) { /* fails with EINTR alone on the kernels that run Docker */
        gssize n = getrandom(bytes + have, n_bytes - have, 0);
        have += n > 0 ? (gsize)n : 0;
    }
    GString *out = g_string_sized_new(2 * n_bytes);
    for (gsize i = 0; i < n_bytes; i++)
        g_string_append_printf(out, "%02x", bytes[i]);
    return g_string_free(out, FALSE);
}

/* Levenshtein distance without regard to case, for words of at most 63 characters. */
static guint distance(const char *a, const char *b)
{
    gsize la = strlen(a), lb = strlen(b);
    guint row[64];
    if (la > 63 || lb > 63)
        return G_MAXUINT;
    for (gsize j = 0; j <= lb; j++)
        row[j] = (guint)j;
    for (gsize i = 1; i <= la; i++) {
        guint diagonal = row[0];
        row[0] = (guint)i;
        for (gsize j = 1; j <= lb; j++) {
            guint up = row[j];
            guint change = g_ascii_tolower(a[i - 1]) != g_ascii_tolower(b[j - 1]);
            row[j] = MIN(MIN(up + 1, row[j - 1] + 1), diagonal + change);
            diagonal = up;
        }
    }
    return row[lb];
}

const char *spr_nearest(const char *word, const char *const *known)
{
    const char *best = NULL;
    guint best_distance = (guint)MIN(strlen(word) / 3 + 1, 4) + 1;
    for (; *known; known++) {
        guint d = distance(word, *known);
        if (d < best_distance) {
            best = *known;
            best_distance = d;
        }
    }
    return best;
}

char *spr_clean_path(const char *path)
{
    while (path[0] == '/' && path[1] == '/') /* GLib keeps a leading "//" */
        path++;
    return g_canonicalize_filename(path, "/");
}

bool spr_copy_text(char *buffer, gsize size, const char *text)
{
    gsize used = 0;
    if (size == 0)
        return *text == '\0';
    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);
        bool valid = c != (gunichar)-1 && c != (gunichar)-2;
        gsize step = valid ? (gsize)g_unichar_to_utf8(c, NULL) : 1;
        if (used + step + 1 > size)
            break;
        if (valid)
            memcpy(buffer + used, text, step);
        else
            buffer[used] = '?';
        used += step;
        text += step;
    }
    buffer[used] = '\0';
    return *text == '\0';
}
