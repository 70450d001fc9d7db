#include "template/definition.h"

#include "template/canonical.h"

#include <string.h>

#define MAX_OPERATIONS 256

struct DkrTemplate {
    json_t *base;
    GPtrArray *operations;
};

static void template_clear(void *data)
{
    DkrTemplate *tmpl = data;
    json_decref(tmpl->base);
    g_clear_pointer(&tmpl->operations, g_ptr_array_unref);
}

DkrTemplate *dkr_template_ref(DkrTemplate *tmpl)
{
    return g_atomic_rc_box_acquire(tmpl);
}

void dkr_template_unref(DkrTemplate *tmpl)
{
    if (tmpl)
        g_atomic_rc_box_release_full(tmpl, template_clear);
}

static bool invalid(GError **error, const char *what, const json_t *value)
{
    g_autofree char *shown = dkr_canonical_excerpt(value);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template", "%s, got %s", what, shown);
}

static bool check_members(const json_t *definition, GError **error)
{
    static const char *const known[] = {"baseImage", "operations", NULL};
    static const char *const near[] = {"baseImage", "operations", "repository", NULL};
    const char *key;
    json_t *value;
    if (!json_is_object(definition))
        return invalid(error, "a template definition must be an object", definition);
    json_object_foreach((json_t *)definition, key, value)
    {
        if (g_strv_contains(known, key))
            continue;
        g_autofree char *shown = dkr_canonical_excerpt_string(key, strlen(key));
        g_autofree char *guess = dkr_place_guess(key, near);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "a template definition can only hold \"baseImage\" and \"operations\", "
                        "got %s%s",
                        shown, guess);
    }
    return true;
}

static bool take_base(DkrTemplate *tmpl, json_t *base, GError **error)
{
    static const DkrPlace place = {.argument = "baseImage", .item = -1};
    if (base && !dkr_place_check_string(&place, base, error))
        return false;
    tmpl->base = base ? json_incref(base) : json_string(DKR_TEMPLATE_DEFAULT_BASE);
    return true;
}

/* Whether the operation itself is right is looked at before its number is. */
static bool add_operation(DkrTemplate *tmpl, const json_t *json, GError **error)
{
    DkrOperation *operation;
    guint index = tmpl->operations->len;
    if (!dkr_operation_parse(index, json, &operation, error))
        return false;
    g_ptr_array_add(tmpl->operations, operation);
    if (index < MAX_OPERATIONS)
        return true;
    DkrPlace place = dkr_operation_place(operation, "a template", -1);
    return dkr_place_invalid_plain(&place, "cannot hold more than 256 operations", error);
}

static bool take_operations(DkrTemplate *tmpl, const json_t *operations, GError **error)
{
    if (operations && !json_is_array(operations))
        return invalid(error, "operations must be a list", operations);
    for (guint i = 0; i < json_array_size(operations); i++) {
        if (!add_operation(tmpl, json_array_get(operations, i), error))
            return false;
    }
    return true;
}

static DkrTemplate *template_new(void)
{
    DkrTemplate *tmpl = g_atomic_rc_box_new0(DkrTemplate);
    tmpl->operations = g_ptr_array_new_with_free_func((GDestroyNotify)dkr_operation_unref);
    return tmpl;
}

bool dkr_template_parse(const char *definition_json, DkrTemplate **ret_template, GError **error)
{
    json_error_t where;
    /* Numbers are doubles and the last digit is lost as in JavaScript; a doubled key has no
     * meaning that two readers would agree on. */
    json_t *definition = json_loads(
        definition_json, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &where);
    if (!definition) {
        /* Jansson quotes the input in bytes, not in characters. */
        g_autofree char *why = g_utf8_make_valid(where.text, -1);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "the template definition is no JSON object: line %d, column %d: %s",
                        where.line, where.column, why);
    }
    g_autoptr(DkrTemplate) tmpl = template_new();
    bool ok = check_members(definition, error) &&
              take_base(tmpl, json_object_get(definition, "baseImage"), error) &&
              take_operations(tmpl, json_object_get(definition, "operations"), error);
    json_decref(definition);
    if (!ok)
        return false;
    *ret_template = g_steal_pointer(&tmpl);
    return true;
}

static DkrTemplate *branch(const DkrTemplate *tmpl)
{
    DkrTemplate *next = template_new();
    for (guint i = 0; i < tmpl->operations->len; i++)
        g_ptr_array_add(next->operations, dkr_operation_ref(tmpl->operations->pdata[i]));
    return next;
}

bool dkr_template_with(const DkrTemplate *tmpl, const json_t *operation, DkrTemplate **ret_template,
                       GError **error)
{
    g_autoptr(DkrTemplate) next = branch(tmpl);
    next->base = json_incref(tmpl->base);
    if (!add_operation(next, operation, error))
        return false;
    *ret_template = g_steal_pointer(&next);
    return true;
}

bool dkr_template_with_base(const DkrTemplate *tmpl, const char *image, DkrTemplate **ret_template,
                            GError **error)
{
    g_autoptr(DkrTemplate) next = branch(tmpl);
    json_auto_t *base = json_string(image);
    if (!base)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template", "baseImage is no UTF-8");
    if (!take_base(next, base, error))
        return false;
    *ret_template = g_steal_pointer(&next);
    return true;
}

char *dkr_template_definition(const DkrTemplate *tmpl)
{
    json_t *operations = json_array();
    for (guint i = 0; i < tmpl->operations->len; i++)
        json_array_append_new(operations, dkr_operation_json(tmpl->operations->pdata[i]));
    json_auto_t *definition =
        json_pack("{s:O, s:o}", "baseImage", tmpl->base, "operations", operations);
    GString *text = g_string_new(NULL);
    dkr_canonical_append(text, definition);
    return g_string_free(text, FALSE);
}

const char *dkr_template_base(const DkrTemplate *tmpl)
{
    return json_string_value(tmpl->base);
}

guint dkr_template_n_operations(const DkrTemplate *tmpl)
{
    return tmpl->operations->len;
}

const DkrOperation *dkr_template_operation(const DkrTemplate *tmpl, guint index)
{
    return g_ptr_array_index(tmpl->operations, index);
}

/* POSIX join and normalise as Node's path module does: "." and ".." resolved, one slash for many,
 * a trailing slash kept. */
static char *join_path(const char *current, const char *next)
{
    g_autofree char *joined = g_strconcat(current, "/", next, NULL);
    bool absolute = joined[0] == '/', slash_behind = g_str_has_suffix(joined, "/");
    g_auto(GStrv) parts = g_strsplit(joined, "/", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (char **part = parts; *part; part++) {
        const char *last = kept->len > 0 ? g_ptr_array_index(kept, kept->len - 1) : NULL;
        if (**part == '\0' || strcmp(*part, ".") == 0)
            continue;
        if (strcmp(*part, "..") != 0)
            g_ptr_array_add(kept, *part);
        else if (last && strcmp(last, "..") != 0)
            g_ptr_array_remove_index(kept, kept->len - 1);
        else if (!absolute)
            g_ptr_array_add(kept, *part);
    }
    if (kept->len == 0)
        return g_strdup(absolute ? "/" : slash_behind ? "./" : ".");
    g_ptr_array_add(kept, NULL);
    g_autofree char *path = g_strjoinv("/", (char **)kept->pdata);
    return g_strconcat(absolute ? "/" : "", path, slash_behind ? "/" : "", NULL);
}

char *dkr_template_workdir(const DkrTemplate *tmpl)
{
    char *workdir = NULL;
    for (guint i = 0; i < tmpl->operations->len; i++) {
        const DkrOperation *op = g_ptr_array_index(tmpl->operations, i);
        if (op->method != DKR_SET_WORKDIR)
            continue;
        bool replaces = !workdir || op->path[0] == '/';
        char *next = replaces ? g_strdup(op->path) : join_path(workdir, op->path);
        g_free(workdir);
        workdir = next;
    }
    return workdir;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What a variable's name says of its value. */
static bool looks_like_a_credential(const char *name)
{
    static const char *const words[] = {"TOKEN",      "SECRET",      "PASSWORD",   "PASSWD",
                                        "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY", "API_KEY",
                                        "APIKEY",     NULL};
    g_autofree char *upper = g_ascii_strup(name, -1);
    for (const char *const *word = words; *word; word++)
        if (strstr(upper, *word))
            return true;
    return false;
}

/* A sorted list in which each name is once. */
typedef struct {
    GHashTable *seen;
    GPtrArray *names;
} Names;

static void add_name(Names *names, const char *name)
{
    if (g_hash_table_add(names->seen, (char *)name))
        g_ptr_array_add(names->names, g_strdup(name));
}

static GStrv end_names(Names *names)
{
    g_hash_table_unref(names->seen);
    g_ptr_array_sort(names->names, compare_names);
    g_ptr_array_add(names->names, NULL);
    return (GStrv)g_ptr_array_free(names->names, FALSE);
}

static GStrv collect_secrets(const DkrTemplate *tmpl, bool exact_too)
{
    Names names = {g_hash_table_new(g_str_hash, g_str_equal), g_ptr_array_new()};
    for (guint i = 0; i < tmpl->operations->len; i++) {
        const DkrOperation *op = g_ptr_array_index(tmpl->operations, i);
        for (gsize j = 0; j < op->n_secrets && (exact_too || !op->exact); j++)
            add_name(&names, op->secrets[j]);
    }
    return end_names(&names);
}

GStrv dkr_template_secret_names(const DkrTemplate *tmpl)
{
    return collect_secrets(tmpl, true);
}

GStrv dkr_template_cut_secret_names(const DkrTemplate *tmpl)
{
    return collect_secrets(tmpl, false);
}

GStrv dkr_template_credential_names(const DkrTemplate *tmpl)
{
    Names names = {g_hash_table_new(g_str_hash, g_str_equal), g_ptr_array_new()};
    for (guint i = 0; i < tmpl->operations->len; i++) {
        const DkrOperation *op = g_ptr_array_index(tmpl->operations, i);
        for (gsize j = 0; j < op->n_envs; j++)
            if (*op->envs[j].value && looks_like_a_credential(op->envs[j].name))
                add_name(&names, op->envs[j].name);
    }
    return end_names(&names);
}
