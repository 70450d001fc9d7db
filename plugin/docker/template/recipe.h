/*
 * What becomes of a definition before any engine is asked: its Dockerfile, the tag of its image,
 * where it ends up and which secrets it wants. Made once, read by describe, build and glue;
 * immutable, any thread.
 */
#pragma once

#include "template/definition.h"

typedef struct {
    int schema_version;
    char *template_id;
    char *base;
    char *dockerfile;
    json_t *build_args;     /* object of strings that the build is given, or NULL */
    char *workdir;          /* NULL when no operation sets one */
    char *platform;         /* "linux/arm64", or NULL for the engine's own */
    char *cache_scope;      /* a hash, or NULL */
    GStrv secret_names;     /* this and the next two may be empty, never NULL */
    GStrv cut_secret_names; /* those of which trailing line breaks are lost */
    GStrv credential_names; /* variables that look like credentials */
} DkrRecipe;

/* platform and cache_scope may be NULL. A platform is part of the identity, a scope is not. */
bool dkr_recipe_new_for(const DkrTemplate *tmpl, const char *platform, const char *cache_scope,
                        DkrRecipe **ret_recipe, GError **error);
bool dkr_recipe_new(const DkrTemplate *tmpl, DkrRecipe **ret_recipe, GError **error);
void dkr_recipe_free(DkrRecipe *recipe);

/* {"templateId", "dockerfile", "workdir", "secretNames", "schemaVersion"} */
bool dkr_template_describe(const char *definition_json, char **ret_json, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrRecipe, dkr_recipe_free)
