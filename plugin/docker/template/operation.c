#include "template/operation.h"

#include "base/text.h"
#include "template/canonical.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 512

static const char *const method_names[] = {
    [DKR_SET_WORKDIR] = "setWorkdir", [DKR_SET_ENVS] = "setEnvs",
    [DKR_RUN_CMD] = "runCmd",         [DKR_RUN_WITH_SECRETS] = "runWithSecrets",
    [DKR_APT_INSTALL] = "aptInstall", [DKR_PIP_INSTALL] = "pipInstall",
    [DKR_NPM_INSTALL] = "npmInstall", NULL,
};

const char *dkr_method_name(DkrMethod method)
{
    return method_names[method];
}

DkrPlace dkr_operation_place(const DkrOperation *operation, const char *argument, gssize item)
{
    return (DkrPlace){operation->index, dkr_method_name(operation->method), argument, item, NULL};
}

/* An argument that is null counts as left out, as JavaScript's undefined does. */
static json_t *argument(const json_t *args, gsize i)
{
    json_t *value = json_array_get(args, i);
    return json_is_null(value) ? NULL : value;
}

static bool check_count(const DkrOperation *op, const json_t *args, gsize most, GError **error)
{
    for (gsize i = most; i < json_array_size(args); i++) {
        if (!argument(args, i))
            continue;
        DkrPlace place = dkr_operation_place(op, "args", (gssize)i);
        return dkr_place_invalid(&place, "is one argument too many", argument(args, i), error);
    }
    return true;
}

/* A string, or a list of strings. */
static bool take_items(DkrOperation *op, const char *name, const json_t *value, GError **error)
{
    DkrPlace place = dkr_operation_place(op, name, -1);
    gsize n = json_is_string(value) ? 1 : json_array_size(value);
    if (!json_is_string(value) && !json_is_array(value))
        return dkr_place_invalid(&place, "must be a string or a list of strings", value, error);
    if (n == 0)
        return dkr_place_invalid_plain(&place, "must not be empty", error);
    if (n > MAX_ITEMS)
        return dkr_place_invalid_plain(&place, "cannot hold more than 512 items", error);
    op->items = g_new0(const char *, n);
    for (gsize i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        place.item = json_is_array(value) ? (gssize)i : -1;
        if (!dkr_place_check_string(&place, item, error))
            return false;
        op->items[op->n_items++] = json_string_value(item);
    }
    return true;
}

static bool take_workdir(DkrOperation *op, const json_t *args, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "path", -1);
    json_t *path = argument(args, 0);
    if (!dkr_place_check_string(&place, path, error) || !check_count(op, args, 1, error))
        return false;
    op->path = json_string_value(path);
    json_array_append(op->args, path);
    return true;
}

static bool take_run(DkrOperation *op, const json_t *args, GError **error)
{
    json_t *command = argument(args, 0);
    if (!take_items(op, "command", command, error) || !check_count(op, args, 1, error))
        return false;
    json_array_append(op->args, command);
    return true;
}

static int compare_envs(const void *a, const void *b)
{
    return dkr_utf16_compare(((const DkrTemplateEnv *)a)->name, ((const DkrTemplateEnv *)b)->name);
}

/* {"literal": true} behind the variables. */
static bool take_literal(DkrOperation *op, const json_t *options, GError **error)
{
    if (!options)
        return true;
    const json_t *literal = json_object_get(options, "literal");
    if (!json_is_boolean(literal) || json_object_size(options) != 1) {
        DkrPlace place = dkr_operation_place(op, "options", -1);
        return dkr_place_invalid(&place, "must be {\"literal\": true} or left out", options, error);
    }
    op->literal = json_is_true(literal);
    return true;
}

/* The reference looks at a value before it looks at its name. */
static bool check_env(const DkrOperation *op, const char *name, const json_t *value, GError **error)
{
    DkrPlace of_value = dkr_operation_place(op, "envs", -1);
    of_value.key = name;
    DkrPlace of_name = dkr_operation_place(op, "a name in envs", -1);
    if (!json_is_string(value))
        return dkr_place_invalid(&of_value, "must be a string", value, error);
    return dkr_place_check_text(&of_name, name, strlen(name), error) &&
           dkr_place_check_no_nul(&of_value, value, false, error);
}

static bool take_envs(DkrOperation *op, const json_t *args, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "envs", -1);
    json_t *envs = argument(args, 0), *value;
    const char *name;
    if (!json_is_object(envs))
        return dkr_place_invalid(&place, "must be an object of strings", envs, error);
    if (json_object_size(envs) > MAX_ITEMS)
        return dkr_place_invalid_plain(&place, "cannot hold more than 512 items", error);
    op->envs = g_new0(DkrTemplateEnv, json_object_size(envs) + 1);
    json_object_foreach(envs, name, value)
    {
        if (!check_env(op, name, value, error))
            return false;
        op->envs[op->n_envs++] = (DkrTemplateEnv){name, NULL};
    }
    if (!take_literal(op, argument(args, 1), error) || !check_count(op, args, 2, error))
        return false;
    if (op->n_envs > 1)
        qsort(op->envs, op->n_envs, sizeof *op->envs, compare_envs);
    json_t *pairs = json_array();
    for (DkrTemplateEnv *env = op->envs; env < op->envs + op->n_envs; env++) {
        json_t *pair = json_pack("[s,O]", env->name, json_object_get(envs, env->name));
        env->name = json_string_value(json_array_get(pair, 0));
        env->value = json_string_value(json_array_get(pair, 1));
        json_array_append_new(pairs, pair);
    }
    json_array_append_new(op->args, pairs);
    if (op->literal)
        json_array_append_new(op->args, json_pack("{s:b}", "literal", 1));
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_env_name(const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name || !(g_ascii_isalpha(*name) || *name == '_'))
        return false;
    for (gsize i = 0; i < json_string_length(value); i++)
        if (!g_ascii_isalnum(name[i]) && name[i] != '_')
            return false;
    return true;
}

static bool take_secret_names(DkrOperation *op, const json_t *secrets, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "secrets", -1);
    gsize n = json_array_size(secrets);
    if (!json_is_array(secrets))
        return dkr_place_invalid(&place, "must be a list of strings", secrets, error);
    if (n > MAX_ITEMS)
        return dkr_place_invalid_plain(&place, "cannot hold more than 512 items", error);
    op->secrets = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++) {
        const json_t *name = json_array_get(secrets, i);
        place.item = (gssize)i;
        if (!is_env_name(name))
            return dkr_place_invalid(&place, "must be the name of an environment variable", name,
                                     error);
        op->secrets[op->n_secrets++] = json_string_value(name);
    }
    if (n > 1)
        qsort(op->secrets, n, sizeof *op->secrets, compare_names);
    return true;
}

static bool take_output(DkrOperation *op, const json_t *output, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "output", -1);
    if (!dkr_place_check_string(&place, output, error))
        return false;
    op->path = json_string_value(output);
    if (op->path[0] != '/')
        return dkr_place_invalid(&place, "must be an absolute path", output, error);
    return true;
}

static bool take_exact(DkrOperation *op, const json_t *exact, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "exact", -1);
    if (exact && !json_is_boolean(exact))
        return dkr_place_invalid(&place, "must be true or false", exact, error);
    op->exact = json_is_true(exact);
    return true;
}

/* Keys of the options that it does not know are no part of the identity and dropped, as the
 * reference does. */
static bool take_secret_step(DkrOperation *op, const json_t *args, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "options", -1);
    json_t *command = argument(args, 0), *options = argument(args, 1);
    json_t *output = json_object_get(options, "output");
    if (!json_is_object(options))
        return dkr_place_invalid(&place, "must be an object with \"secrets\" and \"output\"",
                                 options, error);
    if (!take_secret_names(op, json_object_get(options, "secrets"), error) ||
        !take_output(op, output, error) || !take_items(op, "command", command, error) ||
        !take_exact(op, json_object_get(options, "exact"), error) ||
        !check_count(op, args, 2, error))
        return false;
    json_t *names = json_array();
    for (gsize i = 0; i < op->n_secrets; i++) {
        json_array_append_new(names, json_string(op->secrets[i]));
        op->secrets[i] = json_string_value(json_array_get(names, i));
    }
    json_t *hashed = json_pack("{s:o,s:O}", "secrets", names, "output", output);
    if (op->exact)
        json_object_set_new(hashed, "exact", json_true());
    json_array_append(op->args, command);
    json_array_append_new(op->args, hashed);
    return true;
}

/* The reference always stores two slots. */
static bool take_install(DkrOperation *op, const json_t *args, GError **error)
{
    json_t *packages = argument(args, 0), *options = argument(args, 1);
    bool may_be_left_out = op->method != DKR_APT_INSTALL;
    if ((packages || !may_be_left_out) && !take_items(op, "packages", packages, error))
        return false;
    if (options && !json_is_object(options)) {
        DkrPlace place = dkr_operation_place(op, "options", -1);
        return dkr_place_invalid(&place, "must be an object", options, error);
    }
    if (!check_count(op, args, 2, error))
        return false;
    op->options = options;
    json_array_append(op->args, packages ? packages : json_null());
    json_array_append(op->args, options ? options : json_null());
    return true;
}

static bool take_args(DkrOperation *op, const json_t *args, GError **error)
{
    switch (op->method) {
    case DKR_SET_WORKDIR:
        return take_workdir(op, args, error);
    case DKR_SET_ENVS:
        return take_envs(op, args, error);
    case DKR_RUN_CMD:
        return take_run(op, args, error);
    case DKR_RUN_WITH_SECRETS:
        return take_secret_step(op, args, error);
    case DKR_APT_INSTALL:
    case DKR_PIP_INSTALL:
    case DKR_NPM_INSTALL:
        return take_install(op, args, error);
    }
    return false;
}

static bool find_method(guint index, const json_t *json, DkrMethod *ret_method, GError **error)
{
    const json_t *value = json_object_get(json, "method");
    g_autofree char *shown = dkr_canonical_excerpt(value);
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    for (guint i = 0; method_names[i]; i++) {
        if (strcmp(name, method_names[i]) == 0) {
            *ret_method = (DkrMethod)i;
            return true;
        }
    }
    if (strcmp(name, "from") == 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "operations[%u]: \"from\" is no operation, set \"baseImage\" instead",
                        index);
    g_autofree char *guess = dkr_place_guess(name, method_names);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                    "operations[%u]: there is no method %s%s", index, shown, guess);
}

static bool check_shape(guint index, const json_t *json, GError **error)
{
    static const char *const known[] = {"method", "args", NULL};
    const char *key;
    json_t *value;
    if (!json_is_object(json)) {
        g_autofree char *shown = dkr_canonical_excerpt(json);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "operations[%u] must be an object with \"method\" and \"args\", got %s",
                        index, shown);
    }
    json_object_foreach((json_t *)json, key, value)
    {
        if (g_strv_contains(known, key))
            continue;
        g_autofree char *shown = dkr_canonical_excerpt_string(key, strlen(key));
        g_autofree char *guess = dkr_place_guess(key, known);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "operations[%u] can only hold \"method\" and \"args\", got %s%s", index,
                        shown, guess);
    }
    return true;
}

bool dkr_operation_parse(guint index, const json_t *json, DkrOperation **ret_operation,
                         GError **error)
{
    DkrMethod method = DKR_SET_WORKDIR;
    if (!check_shape(index, json, error) || !find_method(index, json, &method, error))
        return false;
    g_autoptr(DkrOperation) op = g_atomic_rc_box_new0(DkrOperation);
    op->method = method;
    op->index = index;
    op->args = json_array();
    const json_t *args = json_object_get(json, "args");
    if (args && !json_is_array(args)) {
        DkrPlace place = dkr_operation_place(op, "args", -1);
        return dkr_place_invalid(&place, "must be a list", args, error);
    }
    if (!take_args(op, args, error))
        return false;
    *ret_operation = g_steal_pointer(&op);
    return true;
}

/* The identity hashes an environment as a list of pairs. */
static json_t *envs_json(const DkrOperation *op)
{
    json_t *envs = json_object();
    for (gsize i = 0; i < op->n_envs; i++)
        json_object_set_new(envs, op->envs[i].name, json_string(op->envs[i].value));
    json_t *args = json_pack("[o]", envs);
    if (json_array_size(op->args) > 1)
        json_array_append(args, json_array_get(op->args, 1));
    return args;
}

json_t *dkr_operation_json(const DkrOperation *op)
{
    json_t *args = op->method == DKR_SET_ENVS ? envs_json(op) : json_incref(op->args);
    return json_pack("{s:s, s:o}", "method", dkr_method_name(op->method), "args", args);
}

DkrOperation *dkr_operation_ref(DkrOperation *operation)
{
    return g_atomic_rc_box_acquire(operation);
}

static void operation_clear(void *data)
{
    DkrOperation *op = data;
    json_decref(op->args);
    g_free(op->items);
    g_free(op->envs);
    g_free(op->secrets);
}

void dkr_operation_unref(DkrOperation *operation)
{
    if (operation)
        g_atomic_rc_box_release_full(operation, operation_clear);
}
