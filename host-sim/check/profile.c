#include "check/profile.h"

#include <string.h>

#include "error.h"
#include "loader.h"

/* ---- profiles */

static CheckProfile *profile_new(const char *name)
{
    CheckProfile *profile = g_new0(CheckProfile, 1);
    profile->name = g_strdup(name);
    profile->gates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    profile->skips = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return profile;
}

void check_profile_free(CheckProfile *profile)
{
    if (!profile)
        return;
    g_free(profile->name);
    g_hash_table_unref(profile->gates);
    g_hash_table_unref(profile->skips);
    g_free(profile);
}

static bool take_gates(CheckProfile *profile, json_t *gates, const char *path, GError **error)
{
    size_t i;
    json_t *gate;
    json_array_foreach(gates, i, gate)
    {
        const char *name = json_string_value(gate);
        if (!name || !check_knows_gates(name))
            return hs_fail(error, HS_USAGE,
                           "%s: gates[%d] \"%s\" is no gate (host-sim check --list shows them)",
                           path, (int)i, name ? name : "");
        g_hash_table_add(profile->gates, g_strdup(name));
    }
    return true;
}

static bool take_skips(CheckProfile *profile, json_t *skips, const char *path, GError **error)
{
    const char *id;
    json_t *reason;
    json_object_foreach(skips, id, reason)
    {
        if (!check_find(id) || !json_is_string(reason))
            return hs_fail(error, HS_USAGE, "%s: skips.%s: %s", path, id,
                           check_find(id) ? "give the reason as a string"
                                          : "there is no such case (host-sim check --list)");
        g_hash_table_insert(profile->skips, g_strdup(id), g_strdup(json_string_value(reason)));
    }
    return true;
}

static bool take(CheckProfile *profile, json_t *root, const char *path, GError **error)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        bool fits = strcmp(key, "gates") == 0                               ? json_is_array(value)
                    : strcmp(key, "skips") == 0                             ? json_is_object(value)
                    : strcmp(key, "name") == 0 || strcmp(key, "about") == 0 ? json_is_string(value)
                                                                            : false;
        if (!fits)
            return hs_fail(error, HS_USAGE,
                           "%s: \"%s\": a profile has name, about (texts), gates (a list) and "
                           "skips (case: reason)",
                           path, key);
    }
    return take_gates(profile, json_object_get(root, "gates"), path, error) &&
           take_skips(profile, json_object_get(root, "skips"), path, error);
}

/* Of those that ship with host-sim: in its build tree, in a tree that was moved, as installed. */
static char **profile_folders(void)
{
    char **folders = g_new0(char *, 4);
    folders[0] = hs_beside_program("profiles");
    folders[1] = hs_beside_program("../share/sandbox-provider/profiles");
    folders[2] = g_strdup(HS_PROFILES_DIR);
    return folders;
}

static void add_names(GPtrArray *names, const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *file;
    while (dir && (file = g_dir_read_name(dir))) {
        g_autofree char *name = g_strndup(file, strlen(file) - MIN(strlen(file), strlen(".json")));
        if (g_str_has_suffix(file, ".json") &&
            !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            g_ptr_array_add(names, g_steal_pointer(&name));
    }
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool fail_unknown(const char *name, char *const *folders, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (; *folders; folders++)
        add_names(names, *folders);
    g_ptr_array_sort(names, by_text);
    g_ptr_array_add(names, NULL);
    g_autofree char *known = g_strjoinv(", ", (char **)names->pdata);
    return hs_fail(error, HS_USAGE, "--profile %s: no such file or profile; the profiles are %s",
                   name, known);
}

static bool find_by_name(const char *name, char **ret_path, GError **error)
{
    g_autofree char *file = g_strdup_printf("%s.json", name);
    g_auto(GStrv) folders = profile_folders();
    for (char **folder = folders; *folder; folder++) {
        g_autofree char *path = g_build_filename(*folder, file, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            *ret_path = g_steal_pointer(&path);
            return true;
        }
    }
    return fail_unknown(name, folders, error);
}

bool check_profile_load(const char *name, CheckProfile **ret_profile, GError **error)
{
    bool is_name = !strchr(name, '/') && !g_file_test(name, G_FILE_TEST_EXISTS);
    g_autofree char *path = is_name ? NULL : g_strdup(name);
    json_error_t wrong;
    if (is_name && !find_by_name(name, &path, error))
        return false;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &wrong);
    if (!json_is_object(root)) {
        hs_fail(error, HS_USAGE, "--profile %s: %s: %s", name, path,
                root ? "a profile is a JSON object" : wrong.text);
        json_decref(root);
        return false;
    }
    const char *told = json_string_value(json_object_get(root, "name"));
    g_autoptr(CheckProfile) profile = profile_new(told ? told : name);
    bool taken = take(profile, root, path, error);
    json_decref(root);
    if (taken)
        *ret_profile = g_steal_pointer(&profile);
    return taken;
}

/* ---- what of a run is against it */

/* The first gate of a list that the profile leaves out, or NULL. */
static char *left_out(const CheckProfile *profile, const char *gates)
{
    g_auto(GStrv) names = g_strsplit(gates, " ", -1);
    for (char **name = names; *name; name++) {
        if (!g_hash_table_contains(profile->gates, *name))
            return g_strdup(*name);
    }
    return NULL;
}

static void change(CheckResult *result, JobVerdict verdict, char *message)
{
    result->verdict = verdict;
    g_free(result->message);
    result->message = message;
}

void check_expect(const CheckProfile *profile, GHashTable *known, CheckResult *result)
{
    g_autofree char *absent = profile ? left_out(profile, result->gate) : NULL;
    if (profile && result->verdict == JOB_SKIP && !absent &&
        !g_hash_table_contains(profile->skips, result->id))
        change(result, JOB_FAIL,
               g_strdup_printf("skipped, but the profile %s asks for it: %s", profile->name,
                               result->message));
    if (!known || !g_hash_table_contains(known, result->id))
        return;
    const char *reason = g_hash_table_lookup(known, result->id);
    if (result->verdict == JOB_PASS || result->verdict == JOB_WARN)
        change(result, JOB_UNEXPECTED_PASS,
               g_strdup_printf("passed, but it is a known failure: take it off the list (%s)",
                               reason));
    else if (result->verdict != JOB_SKIP && result->verdict != JOB_HARNESS)
        change(result, JOB_KNOWN,
               g_strdup_printf("known failure: %s (%s: %s)", reason,
                               job_verdict_name(result->verdict),
                               result->message ? result->message : ""));
}

char **check_profile_surprises(const CheckProfile *profile, const CheckRun *run)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    const char *name;
    json_t *closed;
    json_object_foreach(run->gates, name, closed)
    {
        bool is_hook = *name == '@'; /* given or not by each command line */
        if (json_is_null(closed) && !is_hook && !g_hash_table_contains(profile->gates, name))
            g_ptr_array_add(lines, g_strdup_printf("the gate %s is open, and the profile %s "
                                                   "leaves it out",
                                                   name, profile->name));
    }
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&lines), FALSE);
}

/* ---- a first profile */

static bool is_open(const CheckRun *run, const char *gates)
{
    g_auto(GStrv) names = g_strsplit(gates, " ", -1);
    for (char **name = names; *name; name++) {
        if (!json_is_null(json_object_get(run->gates, *name)))
            return false;
    }
    return true;
}

char *check_profile_of(const CheckRun *run)
{
    const char *name;
    json_t *closed;
    json_t *gates = json_array();
    json_t *skips = json_object();
    json_object_foreach(run->gates, name, closed)
    {
        if (json_is_null(closed))
            json_array_append_new(gates, json_string(name));
    }
    for (guint i = 0; i < run->results->len; i++) {
        const CheckResult *result = run->results->pdata[i];
        if (result->verdict == JOB_SKIP && is_open(run, result->gate))
            json_object_set_new(skips, result->id, json_string(result->message));
    }
    g_autofree char *about =
        g_strdup_printf("written from a run of level %s", check_run_fact(run, "level"));
    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "name", check_run_fact(run, "provider"),
                             "about", about, "gates", gates, "skips", skips);
    char *dumped = json_dumps(root, JSON_INDENT(4));
    char *page = g_strconcat(dumped, "\n", NULL);
    free(dumped);
    json_decref(root);
    return page;
}

/* ---- known failures */

bool check_known_load(const char *path, GHashTable **ret_known, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) inner = NULL;
    if (!g_file_get_contents(path, &text, NULL, &inner))
        return hs_fail(error, HS_USAGE, "--known-failures: %s", inner->message);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        char *line = g_strstrip(lines[i]);
        if (!*line || *line == '#')
            continue;
        g_auto(GStrv) words = g_strsplit_set(line, " \t", 2);
        if (!check_find(words[0]))
            return hs_fail(error, HS_USAGE,
                           "%s: line %u: there is no case \"%s\" (host-sim check --list)", path,
                           i + 1, words[0]);
        const char *reason = words[1] ? g_strstrip(words[1]) : "";
        if (!*reason)
            return hs_fail(error, HS_USAGE, "%s: line %u: %s needs a reason behind it", path, i + 1,
                           words[0]);
        g_hash_table_insert(known, g_strdup(words[0]), g_strdup(reason));
    }
    *ret_known = g_steal_pointer(&known);
    return true;
}
