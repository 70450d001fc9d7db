#include "sandbox/blame_own.h"

#include "options/json.h"

#include <string.h>

static bool is_of_name(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("_.-/", c));
}

bool dkr_blame_has(const char *low, const char *value)
{
    g_autofree char *needle = g_ascii_strdown(value, -1);
    bool is_bounded = *needle == '/' || !is_of_name(*needle);
    for (const char *at = low; *needle && (at = strstr(at, needle)); at++) {
        bool begins = at == low || is_bounded || !is_of_name(at[-1]);
        if (begins && !is_of_name(at[strlen(needle)]))
            return true;
    }
    return false;
}

bool dkr_blame_has_quoted(const char *low, const char *value)
{
    g_autofree char *name = g_ascii_strdown(value, -1);
    g_autofree char *quoted = g_strdup_printf("\"%s\"", name);
    return strstr(low, quoted) != NULL;
}

char *dkr_blame_named(const char *path, const char *value)
{
    g_autofree char *quoted = dkr_json_quote(value);
    return g_strdup_printf("%s %s", path, quoted);
}

char *dkr_blame_named_text(const char *path, const char *value)
{
    return value ? dkr_blame_named(path, value) : NULL;
}

char *dkr_blame_named_number(const char *path, DkrOptInt option)
{
    return option.is_set ? g_strdup_printf("%s %" G_GINT64_FORMAT, path, option.value) : NULL;
}

char *dkr_blame_named_at(const char *list, size_t i, const char *member, const char *value)
{
    g_autofree char *path = g_strdup_printf("%s[%zu]%s", list, i, member);
    return dkr_blame_named(path, value);
}

char *dkr_blame_named_key(const char *object, const DkrPair *pair)
{
    g_autofree char *quoted = dkr_json_quote(pair->name);
    g_autofree char *path = g_strdup_printf("%s[%s]", object, quoted);
    return dkr_blame_named(path, pair->value);
}
