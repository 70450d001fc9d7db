#include "template/recipe.h"

#include "template/canonical.h"
#include "template/dockerfile.h"
#include "template/identity.h"
#include "template/schema.h"

bool dkr_recipe_new_for(const DkrTemplate *tmpl, const char *platform, const char *cache_scope,
                        DkrRecipe **ret_recipe, GError **error)
{
    int schema = DKR_SCHEMA_SHARED;
    g_autofree char *tag = NULL;
    g_autofree char *scope = NULL;
    if (!dkr_schema_of(tmpl, &schema, error))
        return false;
    if (platform)
        schema = DKR_SCHEMA_OWN;
    if (!dkr_identity_tag(tmpl, schema, platform, &tag, error) ||
        (cache_scope && !dkr_identity_hash(cache_scope, DKR_IDENTITY_HASH_BYTES, &scope, error)))
        return false;
    DkrRecipe *recipe = g_new0(DkrRecipe, 1);
    recipe->schema_version = schema;
    recipe->template_id = g_steal_pointer(&tag);
    recipe->base = g_strdup(dkr_template_base(tmpl));
    recipe->platform = g_strdup(platform);
    recipe->cache_scope = g_strdup(scope);
    dkr_dockerfile_render(tmpl, scope, &recipe->dockerfile, &recipe->build_args);
    recipe->workdir = dkr_template_workdir(tmpl);
    recipe->secret_names = dkr_template_secret_names(tmpl);
    recipe->cut_secret_names = dkr_template_cut_secret_names(tmpl);
    recipe->credential_names = dkr_template_credential_names(tmpl);
    *ret_recipe = recipe;
    return true;
}

bool dkr_recipe_new(const DkrTemplate *tmpl, DkrRecipe **ret_recipe, GError **error)
{
    return dkr_recipe_new_for(tmpl, NULL, NULL, ret_recipe, error);
}

void dkr_recipe_free(DkrRecipe *recipe)
{
    if (!recipe)
        return;
    g_free(recipe->template_id);
    g_free(recipe->base);
    g_free(recipe->dockerfile);
    json_decref(recipe->build_args);
    g_free(recipe->workdir);
    g_strfreev(recipe->secret_names);
    g_strfreev(recipe->cut_secret_names);
    g_strfreev(recipe->credential_names);
    g_free(recipe->platform);
    g_free(recipe->cache_scope);
    g_free(recipe);
}

bool dkr_template_describe(const char *definition_json, char **ret_json, GError **error)
{
    g_autoptr(DkrTemplate) tmpl = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    if (!dkr_template_parse(definition_json, &tmpl, error) || !dkr_recipe_new(tmpl, &recipe, error))
        return false;
    json_t *secrets = json_array();
    for (char **name = recipe->secret_names; *name; name++)
        json_array_append_new(secrets, json_string(*name));
    json_t *object = json_pack("{s:s, s:s, s:s?, s:o, s:i}", "templateId", recipe->template_id,
                               "dockerfile", recipe->dockerfile, "workdir", recipe->workdir,
                               "secretNames", secrets, "schemaVersion", recipe->schema_version);
    GString *text = g_string_new(NULL);
    dkr_canonical_append(text, object);
    json_decref(object);
    *ret_json = g_string_free(text, FALSE);
    return true;
}
