#include "sandbox/tmpfs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool parse_mode(const char *option, int *ret_mode)
{
    guint64 value;
    if (!g_str_has_prefix(option, "mode=") ||
        !g_ascii_string_to_unsigned(option + strlen("mode="), 8, 0, 07777, &value, NULL))
        return false;
    *ret_mode = (int)value;
    return true;
}

int dkr_tmpfs_mode(const char *options)
{
    g_auto(GStrv) parts = g_strsplit(options, ",", -1);
    int mode = DKR_TMPFS_NO_MODE;
    for (char **part = parts; *part; part++)
        parse_mode(g_strstrip(*part), &mode);
    return mode;
}

char *dkr_tmpfs_with_mode(const char *options)
{
    if (dkr_tmpfs_mode(options) != DKR_TMPFS_NO_MODE)
        return g_strdup(options);
    return g_strdup_printf("%s%smode=%o", options, *options ? "," : "", DKR_TMPFS_MODE);
}

/* "size=64m" in bytes, and "mode=0700" without its zero. */
static char *plain_option(const char *option)
{
    static const char units[] = "kmgtpe";
    gsize name = strcspn(option, "=");
    char *end = NULL;
    int mode;
    if (parse_mode(option, &mode))
        return g_strdup_printf("mode=%o", mode);
    guint64 number = option[name] ? g_ascii_strtoull(option + name + 1, &end, 10) : 0;
    const char *unit = end && *end ? strchr(units, g_ascii_tolower(*end)) : NULL;
    if (!unit || end == option + name + 1 || end[1] != '\0')
        return g_strdup(option);
    guint shift = 10 * (guint)(unit - units + 1);
    if (number > G_MAXUINT64 >> shift)
        return g_strdup(option);
    return g_strdup_printf("%.*s=%" G_GUINT64_FORMAT, (int)name, option, number << shift);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *dkr_tmpfs_normal(const char *options)
{
    g_autofree char *whole = dkr_tmpfs_with_mode(options);
    g_auto(GStrv) parts = g_strsplit(whole, ",", -1);
    for (char **part = parts; *part; part++) {
        char *plain = plain_option(g_strstrip(*part));
        g_free(*part);
        *part = plain;
    }
    qsort(parts, g_strv_length(parts), sizeof *parts, by_text);
    return g_strjoinv(",", parts);
}
