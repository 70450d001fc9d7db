#include "sandbox/spec_normal.h"

#include <string.h>

char *dkr_normal_capability(const char *text)
{
    char *upper = g_ascii_strup(text, -1);
    if (g_str_has_prefix(upper, "CAP_"))
        memmove(upper, upper + 4, strlen(upper + 4) + 1);
    return upper;
}

/* The first separator decides, and what has no value is true. */
char *dkr_normal_security_option(const char *text)
{
    if (!strpbrk(text, ":="))
        return g_strconcat(text, "=true", NULL);
    char *normal = g_strdup(text);
    *strpbrk(normal, ":=") = '=';
    return normal;
}

char *dkr_normal_bind(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    bool is_whole = g_strv_length(parts) == 3;
    g_auto(GStrv) options = g_strsplit(is_whole ? parts[2] : "", ",", -1);
    bool read_only = g_strv_contains((const char *const *)options, "ro");
    return g_strdup_printf("%s:%s%s", parts[0] ? parts[0] : "",
                           parts[0] && parts[1] ? parts[1] : "", read_only ? ":ro" : "");
}

/* As the reference grammar of images has it: a first part with a "." or ":" is a registry. */
char *dkr_normal_image(const char *text)
{
    const char *slash = strchr(text, '/');
    g_autofree char *first = g_strndup(text, slash ? (gsize)(slash - text) : 0);
    bool has_registry = strpbrk(first, ".:") || strcmp(first, "localhost") == 0;
    const char *prefix = has_registry ? "" : slash ? "docker.io/" : "docker.io/library/";
    const char *last = strrchr(text, '/') ?: text;
    bool has_tag = strpbrk(last, ":@") != NULL;
    return g_strconcat(prefix, text, has_tag ? "" : ":latest", NULL);
}

/* Each word behind a mark that no word begins with by chance: a suffix of the text that begins at
 * a mark is a suffix of the list. */
static void append_words(GString *out, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *word = json_string_value(json_array_get(array, i));
        g_string_append_printf(out, "\x1f%s", word ? word : "");
    }
}

char *dkr_normal_words(const json_t *first, const json_t *second)
{
    GString *out = g_string_new(NULL);
    append_words(out, first);
    append_words(out, second);
    return g_string_free(out, FALSE);
}

bool dkr_normal_covers(const json_t *array, const json_t *members, DkrNormalise normalise)
{
    g_autoptr(GHashTable) set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < json_array_size(array); i++)
        g_hash_table_add(set, normalise(json_string_value(json_array_get(array, i)) ?: ""));
    for (size_t i = 0; i < json_array_size(members); i++) {
        g_autofree char *normal = normalise(json_string_value(json_array_get(members, i)) ?: "");
        if (!g_hash_table_contains(set, normal))
            return false;
    }
    return true;
}

bool dkr_normal_contains(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (g_strcmp0(json_string_value(json_array_get(array, i)), text) == 0)
            return true;
    }
    return false;
}
