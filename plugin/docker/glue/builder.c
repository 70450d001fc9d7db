#include "glue/builder.h"

#include "options/json.h"
#include "template/recipe.h"

#include <string.h>

struct sprov_template {
    gatomicrefcount refs;
    sprov_provider *provider;
    DkrTemplate *tmpl;
};

/* ------------------------------------------------------------------------- handles */

/* Takes tmpl over. */
static sprov_template *wrap(sprov_provider *provider, DkrTemplate *tmpl)
{
    sprov_template *handle = g_new0(sprov_template, 1);
    g_atomic_ref_count_init(&handle->refs);
    handle->provider = provider;
    handle->tmpl = tmpl;
    g_atomic_int_inc(&provider->users);
    return handle;
}

void glue_builder_keep(sprov_template *tmpl)
{
    if (tmpl)
        g_atomic_ref_count_inc(&tmpl->refs);
}

void glue_builder_release(sprov_template *tmpl)
{
    if (!tmpl || !g_atomic_ref_count_dec(&tmpl->refs))
        return;
    dkr_template_unref(tmpl->tmpl);
    g_atomic_int_add(&tmpl->provider->users, -1);
    g_free(tmpl);
}

sprov_status glue_builder_create(sprov_provider *provider, const char *definition,
                                 sprov_template **tmpl, sprov_error *error)
{
    GError *failure = NULL;
    DkrTemplate *parsed = NULL;
    if (!glue_check_result(error, sizeof *error, "error", &failure) ||
        !glue_check_pointer(provider, "provider", &failure) ||
        !glue_check_pointer(tmpl, "tmpl", &failure) ||
        !dkr_template_parse(definition ? definition : "{}", &parsed, &failure))
        return glue_fail(error, failure);
    *tmpl = wrap(provider, parsed);
    return SPROV_OK;
}

static bool check(sprov_template *tmpl, const void *ret, const sprov_error *error, GError **failure)
{
    return glue_check_result(error, sizeof *error, "error", failure) &&
           glue_check_pointer(tmpl, "tmpl", failure) && glue_check_pointer(ret, "next", failure);
}

/* ---------------------------------------------------------------------- operations */

static bool no_text(const char *what, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template", "%s is no UTF-8", what);
}

/* NULL stays NULL, which the operation refuses where it has to be there. */
static bool text_json(const char *text, const char *what, json_t **ret, GError **error)
{
    *ret = text ? json_string(text) : json_null();
    return *ret || no_text(what, error);
}

static bool list_json(const char *const *list, const char *what, json_t **ret, GError **error)
{
    json_t *array = json_array();
    for (gsize i = 0; list[i]; i++) {
        json_t *text = json_string(list[i]);
        if (!text) {
            json_decref(array);
            return no_text(what, error);
        }
        json_array_append_new(array, text);
    }
    *ret = array;
    return true;
}

/* One item is the string, several are a list. */
static bool items_json(const char *const *list, const char *what, json_t **ret, GError **error)
{
    if (!list) {
        *ret = json_null();
        return true;
    }
    if (list[0] && !list[1])
        return text_json(list[0], what, ret, error);
    return list_json(list, what, ret, error);
}

static bool options_json(const char *options, json_t **ret, GError **error)
{
    if (options)
        return dkr_json_parse_object(options, "options", ret, error);
    *ret = json_null();
    return true;
}

/* Takes args over, NULL when they could not be made. */
static sprov_status add(sprov_template *tmpl, const char *method, json_t *args,
                        sprov_template **next, sprov_error *error, GError *failure)
{
    DkrTemplate *grown = NULL;
    if (args) {
        json_auto_t *operation = json_pack("{s:s, s:o}", "method", method, "args", args);
        dkr_template_with(tmpl->tmpl, operation, &grown, &failure);
    }
    if (!grown)
        return glue_fail(error, failure);
    *next = wrap(tmpl->provider, grown);
    return SPROV_OK;
}

sprov_status glue_builder_from(sprov_template *tmpl, const char *image, sprov_template **next,
                               sprov_error *error)
{
    GError *failure = NULL;
    DkrTemplate *changed = NULL;
    if (!check(tmpl, next, error, &failure) || !glue_check_pointer(image, "image", &failure) ||
        !dkr_template_with_base(tmpl->tmpl, image, &changed, &failure))
        return glue_fail(error, failure);
    *next = wrap(tmpl->provider, changed);
    return SPROV_OK;
}

sprov_status glue_builder_set_workdir(sprov_template *tmpl, const char *path, sprov_template **next,
                                      sprov_error *error)
{
    GError *failure = NULL;
    json_t *text = NULL;
    if (!check(tmpl, next, error, &failure) || !text_json(path, "path", &text, &failure))
        return glue_fail(error, failure);
    return add(tmpl, "setWorkdir", json_pack("[o]", text), next, error, NULL);
}

/* "NAME=value"; the last of a name counts. */
static bool envs_json(const char *const *env, json_t **ret, GError **error)
{
    json_auto_t *object = json_object();
    for (gsize i = 0; env && env[i]; i++) {
        const char *equals = strchr(env[i], '=');
        if (!equals)
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                            "setEnvs: entry %zu has no \"=\" behind its name", i);
        g_autofree char *name = g_strndup(env[i], (gsize)(equals - env[i]));
        if (json_object_set_new(object, name, json_string(equals + 1)) != 0)
            return no_text("setEnvs: a variable", error);
    }
    *ret = json_incref(object);
    return true;
}

sprov_status glue_builder_set_envs(sprov_template *tmpl, const char *const *env,
                                   const char *options, sprov_template **next, sprov_error *error)
{
    GError *failure = NULL;
    json_t *envs = NULL, *more = NULL, *args = NULL;
    if (!check(tmpl, next, error, &failure) || !glue_check_pointer(env, "env", &failure))
        return glue_fail(error, failure);
    if (envs_json(env, &envs, &failure) && options_json(options, &more, &failure))
        args = json_pack("[O, O]", envs, more);
    json_decref(envs);
    json_decref(more);
    return add(tmpl, "setEnvs", args, next, error, failure);
}

sprov_status glue_builder_run_cmd(sprov_template *tmpl, const char *const *commands,
                                  sprov_template **next, sprov_error *error)
{
    GError *failure = NULL;
    json_t *items = NULL;
    if (!check(tmpl, next, error, &failure) || !items_json(commands, "a command", &items, &failure))
        return glue_fail(error, failure);
    return add(tmpl, "runCmd", json_pack("[o]", items), next, error, NULL);
}

sprov_status glue_builder_run_with_secrets(sprov_template *tmpl, const char *const *commands,
                                           const char *const *secrets, const char *output,
                                           uint32_t flags, sprov_template **next,
                                           sprov_error *error)
{
    static const char *const none[] = {NULL};
    GError *failure = NULL;
    json_t *items = NULL, *names = NULL, *path = NULL, *args = NULL;
    if (!check(tmpl, next, error, &failure))
        return glue_fail(error, failure);
    if (flags & ~(uint32_t)SPROV_SECRETS_EXACT)
        spr_fail(&failure, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                 "flags 0x%x has bits that are not known", flags);
    else if (items_json(commands, "a command", &items, &failure) &&
             list_json(secrets ? secrets : none, "a secret's name", &names, &failure) &&
             text_json(output, "output", &path, &failure))
        args = json_pack("[O, {s:O, s:O}]", items, "secrets", names, "output", path);
    if (args && flags)
        json_object_set_new(json_array_get(args, 1), "exact", json_true());
    json_decref(items);
    json_decref(names);
    json_decref(path);
    return add(tmpl, "runWithSecrets", args, next, error, failure);
}

static sprov_status install(sprov_template *tmpl, const char *method, const char *const *packages,
                            const char *options, sprov_template **next, sprov_error *error)
{
    GError *failure = NULL;
    json_t *items = NULL, *more = NULL, *args = NULL;
    if (!check(tmpl, next, error, &failure))
        return glue_fail(error, failure);
    if (items_json(packages, "a package", &items, &failure) &&
        options_json(options, &more, &failure))
        args = json_pack("[O, O]", items, more);
    json_decref(items);
    json_decref(more);
    return add(tmpl, method, args, next, error, failure);
}

sprov_status glue_builder_apt_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error)
{
    return install(tmpl, "aptInstall", packages, options, next, error);
}

sprov_status glue_builder_pip_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error)
{
    return install(tmpl, "pipInstall", packages, options, next, error);
}

sprov_status glue_builder_npm_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error)
{
    return install(tmpl, "npmInstall", packages, options, next, error);
}

/* ------------------------------------------------------------------------- readers */

static bool check_reader(sprov_template *tmpl, sprov_text_fn emit, const sprov_error *error,
                         GError **failure)
{
    return glue_check_result(error, sizeof *error, "error", failure) &&
           glue_check_pointer(tmpl, "tmpl", failure) &&
           glue_check_pointer((const void *)emit, "emit", failure);
}

sprov_status glue_builder_definition(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                     sprov_error *error)
{
    GError *failure = NULL;
    if (!check_reader(tmpl, emit, error, &failure))
        return glue_fail(error, failure);
    g_autofree char *text = dkr_template_definition(tmpl->tmpl);
    glue_emit(tmpl->provider, emit, emit_ctx, text);
    return SPROV_OK;
}

static bool read_recipe(sprov_template *tmpl, sprov_text_fn emit, const sprov_error *error,
                        DkrRecipe **ret_recipe, GError **failure)
{
    return check_reader(tmpl, emit, error, failure) &&
           dkr_recipe_new(tmpl->tmpl, ret_recipe, failure);
}

sprov_status glue_builder_dockerfile(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                     sprov_error *error)
{
    GError *failure = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    if (!read_recipe(tmpl, emit, error, &recipe, &failure))
        return glue_fail(error, failure);
    glue_emit(tmpl->provider, emit, emit_ctx, recipe->dockerfile);
    return SPROV_OK;
}

sprov_status glue_builder_template_id(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                      sprov_error *error)
{
    GError *failure = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    if (!read_recipe(tmpl, emit, error, &recipe, &failure))
        return glue_fail(error, failure);
    glue_emit(tmpl->provider, emit, emit_ctx, recipe->template_id);
    return SPROV_OK;
}

sprov_status glue_builder_workdir(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                  sprov_error *error)
{
    GError *failure = NULL;
    if (!check_reader(tmpl, emit, error, &failure))
        return glue_fail(error, failure);
    g_autofree char *workdir = dkr_template_workdir(tmpl->tmpl);
    if (workdir)
        glue_emit(tmpl->provider, emit, emit_ctx, workdir);
    return SPROV_OK;
}

sprov_status glue_builder_secret_names(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                       sprov_error *error)
{
    GError *failure = NULL;
    if (!check_reader(tmpl, emit, error, &failure))
        return glue_fail(error, failure);
    g_auto(GStrv) names = dkr_template_secret_names(tmpl->tmpl);
    for (char **name = names; *name; name++)
        glue_emit(tmpl->provider, emit, emit_ctx, *name);
    return SPROV_OK;
}

/* ------------------------------------------------------------------------- sandbox */

/* The options with this template in them. */
static bool sandbox_options(sprov_template *tmpl, const char *options, char **ret_text,
                            GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(options, "sandbox options", &object, error))
        return false;
    if (json_object_get(object, "image") || json_object_get(object, "template"))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                        "a sandbox of a template takes neither image nor template in its options");
    g_autofree char *definition = dkr_template_definition(tmpl->tmpl);
    json_object_set_new(object, "template", json_loads(definition, 0, NULL));
    *ret_text = dkr_json_to_text(object);
    return *ret_text || spr_fail(error, SPR_E_EXHAUSTED, "memory", "no memory for the options");
}

sprov_status glue_builder_create_sandbox(sprov_template *tmpl, const char *options,
                                         const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                                         sprov_error *error)
{
    GError *failure = NULL;
    g_autofree char *whole = NULL;
    if (!check(tmpl, sandbox, error, &failure) || !sandbox_options(tmpl, options, &whole, &failure))
        return glue_fail(error, failure);
    return glue_api.create(tmpl->provider, whole, callbacks, sandbox, error);
}
