#include "check/hooks.h"

#include <string.h>

#include "error.h"

/* The gate that opens when all these are there. */
static const struct {
    const char *gate;
    const char *hooks[2];
} needs[] = {
    {"@stop", {"stop"}},      {"@remove", {"remove"}}, {"@pause", {"pause", "resume"}},
    {"@kill", {"kill"}},      {"@proxy", {"proxy"}},   {"@git", {"git"}},
    {"@bad", {"badOptions"}}, {"@folder", {"folder"}}, {"@volume", {"removeVolume"}},
};

static const char *const names[] = {"stop",  "kill", "remove", "pause",       "resume",
                                    "proxy", "git",  "folder", "removeVolume"};

static bool is_command(json_t *value)
{
    size_t i;
    json_t *word;
    if (!json_is_array(value) || json_array_size(value) == 0)
        return false;
    json_array_foreach(value, i, word)
    {
        if (!json_is_string(word))
            return false;
    }
    return true;
}

static bool is_sound(json_t *root, const char *path, GError **error)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        bool is_known = strcmp(key, "badOptions") == 0;
        bool fits = is_known && json_is_object(value);
        for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
            if (strcmp(key, names[i]) == 0) {
                is_known = true;
                fits = is_command(value);
            }
        }
        if (!fits)
            return hs_fail(error, HS_USAGE, "--hooks %s: \"%s\": %s", path, key,
                           is_known ? "give a command as a list of words, badOptions as an object"
                                    : "hooks are stop, kill, remove, pause, resume, proxy, git, "
                                      "folder, removeVolume, badOptions");
    }
    return true;
}

bool check_hooks_load(const char *path, CheckHooks **ret_hooks, GError **error)
{
    json_error_t wrong;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &wrong);
    bool loaded = json_is_object(root) ? is_sound(root, path, error)
                                       : hs_fail(error, HS_USAGE, "--hooks %s: %s", path,
                                                 root ? "give a JSON object" : wrong.text);
    if (!loaded) {
        json_decref(root);
        return false;
    }
    CheckHooks *hooks = g_new0(CheckHooks, 1);
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    hooks->root = root;
    hooks->folder = g_path_get_dirname(absolute);
    *ret_hooks = hooks;
    return true;
}

void check_hooks_free(CheckHooks *hooks)
{
    if (!hooks)
        return;
    json_decref(hooks->root);
    g_free(hooks->folder);
    g_free(hooks);
}

bool check_hooks_open(const CheckHooks *hooks, const char *gate)
{
    for (gsize i = 0; hooks && i < G_N_ELEMENTS(needs); i++) {
        if (strcmp(needs[i].gate, gate) == 0)
            return json_object_get(hooks->root, needs[i].hooks[0]) &&
                   (!needs[i].hooks[1] || json_object_get(hooks->root, needs[i].hooks[1]));
    }
    return false;
}

char **check_hooks_command(const CheckHooks *hooks, const char *name, const char *word)
{
    size_t i;
    json_t *part;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    json_array_foreach(json_object_get(hooks->root, name), i, part)
    {
        g_autoptr(GString) text = g_string_new(json_string_value(part));
        g_string_replace(text, "{dir}", hooks->folder, 0);
        g_ptr_array_add(argv, g_strdup(text->str));
    }
    g_ptr_array_add(argv, g_strdup(word));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}
