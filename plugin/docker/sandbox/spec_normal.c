#include "sandbox/spec_normal.h"

#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
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

static char *path_or_name(const char *text)
{
    return *text == '/' ? spr_clean_path(text) : g_strdup(text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those that change what is mounted, in one order; engines write their defaults or leave them out,
 * and "z" is of the files' labels. */
static char *bind_options(const char *text)
{
    static const char *const usual[] = {"",      "rw",    "z",      "Z",      "rprivate",
                                        "rbind", "nodev", "nosuid", "nocopy", NULL};
    g_auto(GStrv) options = g_strsplit(text, ",", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (char **option = options; *option; option++) {
        if (!g_strv_contains(usual, *option))
            g_ptr_array_add(kept, *option);
    }
    if (kept->len > 1)
        qsort(kept->pdata, kept->len, sizeof *kept->pdata, by_text);
    g_ptr_array_add(kept, NULL);
    return g_strjoinv(",", (char **)kept->pdata);
}

char *dkr_normal_bind(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    bool has_target = parts[0] && parts[1];
    g_autofree char *source = path_or_name(parts[0] ? parts[0] : "");
    g_autofree char *target = path_or_name(has_target ? parts[1] : "");
    g_autofree char *options = bind_options(has_target && parts[2] ? parts[2] : "");
    return g_strdup_printf("%s:%s%s%s", source, target, *options ? ":" : "", options);
}

/* Root and its group, by name, by number or left out. */
char *dkr_normal_user(const char *text)
{
    static const char *const roots[] = {"",       "0",         "root",   "0:0",
                                        "root:0", "root:root", "0:root", NULL};
    return g_strdup(g_strv_contains(roots, text) ? "0" : text);
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
