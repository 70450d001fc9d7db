/* The vectors made by running the reference, each with what it expects of us. */
#include "template/identity.h"
#include "template/recipe.h"

#include <criterion/criterion.h>
#include <string.h>

static json_t *load(const char *name)
{
    json_error_t where;
    g_autofree char *path = g_build_filename(GOLDEN_DIR, name, NULL);
    json_t *vectors = json_load_file(path, 0, &where);
    cr_assert(json_is_array(vectors), "%s: %s", path, where.text);
    return vectors;
}

static const char *text_of(const json_t *vector, const char *key)
{
    return json_string_value(json_object_get(vector, key));
}

/* Neither a line nor a form that needs a frontend from elsewhere, or a newer one than the engine's
 * own; and secrets as files alone, which older ones know. */
static void check_for_old_engines(const char *name, const char *dockerfile)
{
    cr_expect_not(strstr(dockerfile, "# syntax"), "%s", name);
    cr_expect_not(strstr(dockerfile, "RUN <<"), "%s", name);
    cr_expect_not(strstr(dockerfile, "COPY <<"), "%s", name);
    cr_expect_not(strstr(dockerfile, ",env="), "%s", name);
}

static void check_shared(const json_t *vector, const DkrTemplate *tmpl, const DkrRecipe *recipe)
{
    const char *name = text_of(vector, "name");
    g_autofree char *canonical = dkr_identity_canonical(tmpl, 1, NULL);
    check_for_old_engines(name, recipe->dockerfile);
    cr_expect_str_eq(canonical, text_of(vector, "canonical"), "%s", name);
    cr_expect_str_eq(recipe->dockerfile, text_of(vector, "dockerfile"), "%s", name);
    cr_expect_str_eq(recipe->template_id, text_of(vector, "templateId"), "%s", name);
    cr_expect_eq(g_strcmp0(recipe->workdir, text_of(vector, "workdir")), 0, "%s", name);
    cr_expect_eq(recipe->schema_version, 1, "%s", name);
    const json_t *secrets = json_object_get(vector, "secretNames");
    cr_expect_eq(g_strv_length(recipe->secret_names), json_array_size(secrets), "%s", name);
    for (gsize i = 0; i < json_array_size(secrets); i++)
        cr_expect_str_eq(recipe->secret_names[i], json_string_value(json_array_get(secrets, i)),
                         "%s", name);
}

/* The vector shows what the reference makes of it, which must not come out. */
static void check_own(const json_t *vector, const DkrTemplate *tmpl, const DkrRecipe *recipe)
{
    const char *name = text_of(vector, "name"), *theirs = text_of(vector, "canonical");
    check_for_old_engines(name, recipe->dockerfile);
    g_autofree char *canonical = dkr_identity_canonical(tmpl, 2, NULL);
    g_autofree char *wanted =
        g_strconcat("{\"schemaVersion\":2", theirs + strlen("{\"schemaVersion\":1"), NULL);
    cr_expect_eq(recipe->schema_version, 2, "%s", name);
    cr_expect_str_eq(canonical, wanted, "%s", name);
    cr_expect_str_neq(recipe->dockerfile, text_of(vector, "dockerfile"), "%s", name);
    cr_expect_str_neq(recipe->template_id, text_of(vector, "templateId"), "%s", name);
}

/* definition is rendered, or refused, as the vector says. */
static void check_vector(const json_t *vector, const json_t *definition)
{
    g_autoptr(DkrTemplate) tmpl = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    g_autoptr(GError) error = NULL;
    const char *name = text_of(vector, "name"), *expect = text_of(vector, "expect");
    char *text = json_dumps(definition, JSON_COMPACT);
    cr_assert(dkr_template_parse(text, &tmpl, &error), "%s: %s", name, error->message);
    free(text);
    bool made = dkr_recipe_new(tmpl, &recipe, &error);
    if (json_integer_value(json_object_get(vector, "expect")) == 2) {
        cr_assert(made, "%s: %s", name, error->message);
        check_own(vector, tmpl, recipe);
    } else if (g_strcmp0(expect, "refused") == 0) {
        cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "template-refused"), "%s", name);
    } else {
        cr_assert(made, "%s: %s", name, error->message);
        check_shared(vector, tmpl, recipe);
    }
}

/* What the reference's builder would have been called with: "from" sets the base. */
static json_t *definition_of_calls(const json_t *calls)
{
    json_t *definition = json_pack("{s:[]}", "operations"), *call;
    json_t *base = json_object_get(calls, "baseImage");
    gsize i;
    json_array_foreach(json_object_get(calls, "calls"), i, call)
    {
        if (g_strcmp0(text_of(call, "method"), "from") == 0)
            base = json_array_get(json_object_get(call, "args"), 0);
        else
            json_array_append(json_object_get(definition, "operations"), call);
    }
    if (base)
        json_object_set(definition, "baseImage", base);
    return definition;
}

Test(template_vectors, come_out_as_each_expects)
{
    json_t *vectors = load("template-goldens.json"), *vector;
    gsize i, checked = 0;
    json_array_foreach(vectors, i, vector)
    {
        if (!json_object_get(vector, "expect"))
            continue;
        check_vector(vector, json_object_get(vector, "definition"));
        checked++;
    }
    cr_assert_eq(checked, 88);
    json_decref(vectors);
}

Test(template_vectors, give_the_same_from_the_builder_calls_behind_them)
{
    json_t *vectors = load("template-goldens.json"), *vector;
    gsize i;
    json_array_foreach(vectors, i, vector)
    {
        if (!json_object_get(vector, "expect"))
            continue;
        json_t *definition = definition_of_calls(json_object_get(vector, "calls"));
        check_vector(vector, definition);
        json_decref(definition);
    }
    json_decref(vectors);
}

Test(template_vectors, of_repositories_come_out_as_each_expects)
{
    json_t *vectors = load("repo-template-goldens.json"), *vector;
    gsize i;
    json_array_foreach(vectors, i, vector)
        check_vector(vector, json_object_get(vector, "definition"));
    cr_assert_eq(json_array_size(vectors), 19);
    json_decref(vectors);
}

/* "command[1] must not be empty" is about command[1]; our message names the same place. */
static const char *place_in_reference(const json_t *vector)
{
    const char *error = text_of(vector, "error");
    static const char *const ours[][2] = {
        {"Cannot read properties", "options"},
        {"Docker template cannot", "cannot hold more than 256 operations"},
        {"image ", "baseImage"},
        {"envs.A ", "envs[\"A\"]"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ours); i++)
        if (g_str_has_prefix(error, ours[i][0]))
            return ours[i][1];
    return error;
}

Test(template_vectors, that_the_reference_rejects_are_rejected_by_name)
{
    json_t *vectors = load("template-goldens.json"), *vector;
    gsize i, checked = 0;
    json_array_foreach(vectors, i, vector)
    {
        if (json_object_get(vector, "expect"))
            continue;
        g_autoptr(DkrTemplate) tmpl = NULL;
        g_autoptr(GError) error = NULL;
        const char *name = text_of(vector, "name"), *place = place_in_reference(vector);
        json_t *definition = definition_of_calls(json_object_get(vector, "definition"));
        char *text = json_dumps(definition, JSON_COMPACT);
        cr_assert_not(dkr_template_parse(text, &tmpl, &error), "%s", name);
        cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-template"), "%s", name);
        g_autofree char *word = g_strndup(place, strcspn(place, " "));
        cr_expect(strstr(error->message, word) != NULL, "%s: %s", name, error->message);
        bool of_base = g_str_has_prefix(word, "baseImage");
        cr_expect(of_base || g_str_has_prefix(error->message, "operations["), "%s: %s", name,
                  error->message);
        free(text);
        json_decref(definition);
        checked++;
    }
    cr_assert_eq(checked, 34);
    json_decref(vectors);
}

Test(template_vectors, describe_needs_no_engine)
{
    g_autofree char *json = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(dkr_template_describe("{}", &json, &error));
    cr_assert_str_eq(json, "{\"templateId\":\"mastra-template:f5fef8f3a72872e4a66e2c74\","
                           "\"dockerfile\":\"FROM node:22-slim AS mastra-main-0\\n\","
                           "\"workdir\":null,\"secretNames\":[],\"schemaVersion\":1}");
}
