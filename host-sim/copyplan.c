#include "copyplan.h"

#include <string.h>

#include "error.h"

void hs_place_clear(HsPlace *place)
{
    g_free(place->id);
    g_free(place->path);
}

bool hs_place_parse(const char *word, const char *id, HsPlace *ret_place, GError **error)
{
    const char *colon = strstr(word, ":/");
    if (!colon)
        colon = strchr(word, ':');
    *ret_place = (HsPlace){NULL, NULL};
    if (*word == '\0')
        return hs_fail(error, HS_USAGE, "a path is empty");
    if (*word == '/' || *word == '.' || !colon) {
        ret_place->path = g_strdup(word);
        return true;
    }
    if (colon == word && !id)
        return hs_fail(error, HS_USAGE, "\"%s\" names no sandbox: give ID:PATH, or --id ID", word);
    ret_place->id = colon == word ? g_strdup(id) : g_strndup(word, (gsize)(colon - word));
    ret_place->path = g_strdup(colon[1] ? colon + 1 : ".");
    return true;
}

bool hs_place_is_stream(const HsPlace *place)
{
    return !place->id && strcmp(place->path, "-") == 0;
}

char *hs_path_trim(const char *path)
{
    gsize size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return g_strndup(path, size);
}

bool hs_path_is_contents(const char *path)
{
    g_autofree char *trimmed = hs_path_trim(path);
    return strcmp(trimmed, ".") == 0 || g_str_has_suffix(trimmed, "/.");
}

char *hs_path_parent(const char *path)
{
    g_autofree char *trimmed = hs_path_trim(path);
    return g_path_get_dirname(trimmed);
}

static char *inside(const char *directory, const char *name)
{
    return g_strdup_printf("%s%s%s", directory, g_str_has_suffix(directory, "/") ? "" : "/", name);
}

static bool plan_new(const HsCopy *copy, char **ret_path, GError **error)
{
    if (copy->parent_kind != HS_KIND_DIRECTORY) {
        g_autofree char *parent = hs_path_parent(copy->target);
        return hs_fail(error, SPROV_E_NOT_FOUND,
                       copy->parent_kind == HS_KIND_NOTHING ? "there is no directory %s"
                                                            : "%s is no directory",
                       parent);
    }
    if (copy->source == HS_KIND_FILE && g_str_has_suffix(copy->target, "/"))
        return hs_fail(error, SPROV_E_NOT_FOUND, "there is no directory %s", copy->target);
    *ret_path = hs_path_trim(copy->target);
    return true;
}

bool hs_copy_plan(const HsCopy *copy, char **ret_path, GError **error)
{
    switch (copy->target_kind) {
    case HS_KIND_NOTHING:
        return plan_new(copy, ret_path, error);
    case HS_KIND_DIRECTORY:
        *ret_path = copy->source == HS_KIND_DIRECTORY && copy->contents
                        ? g_strdup(copy->target)
                        : inside(copy->target, copy->name);
        return true;
    case HS_KIND_FILE:
        if (copy->source == HS_KIND_DIRECTORY)
            return hs_fail(error, SPROV_E_INVALID_ARGUMENT,
                           "a directory can't be copied onto the file %s", copy->target);
        if (g_str_has_suffix(copy->target, "/"))
            return hs_fail(error, SPROV_E_INVALID_ARGUMENT, "%s is no directory", copy->target);
        *ret_path = g_strdup(copy->target);
        return true;
    default:
        return hs_fail(error, SPROV_E_INVALID_ARGUMENT, "%s is neither a file nor a directory",
                       copy->target);
    }
}
