#include "template/repository.h"
#include "template/definition.h"
#include "template/git.h"
#include "template/recipe.h"

#include <criterion/criterion.h>
#include <string.h>

static json_t *load(const char *name)
{
    g_autofree char *path = g_build_filename(GOLDEN_DIR, name, NULL);
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(json, "%s", path);
    return json;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The options of a vector without what the lookup and the access tell. */
static DkrRepository *options_of(const json_t *inputs)
{
    g_autoptr(GError) error = NULL;
    DkrRepository *repository = NULL;
    json_auto_t *options = json_copy((json_t *)inputs);
    json_object_del(options, "token");
    cr_assert(dkr_repository_parse(options, &repository, &error), "%s", error->message);
    return repository;
}

/* Vectors of private repositories differ from ours on purpose. */
Test(repository, comes_to_the_definitions_of_the_reference)
{
    json_auto_t *vectors = load("repo-template-goldens.json");
    json_t *vector;
    gsize i;
    json_array_foreach(vectors, i, vector)
    {
        const json_t *inputs = json_object_get(vector, "inputs");
        bool is_private = json_object_get(inputs, "token") != NULL;
        g_autoptr(DkrRepository) r = options_of(inputs);
        g_autofree char *text = dkr_repository_definition(
            r, text_of(inputs, "cloneUrl"), text_of(inputs, "sha"), r->build_env, is_private);
        json_auto_t *ours = json_loads(text, 0, NULL);
        bool equal = json_equal(ours, json_object_get(vector, "definition"));
        cr_expect_eq(equal, !is_private, "%s: %s", text_of(vector, "name"), text);
        g_autoptr(DkrTemplate) tmpl = NULL;
        g_autoptr(DkrRecipe) recipe = NULL;
        cr_assert(dkr_template_parse(text, &tmpl, NULL) && dkr_recipe_new(tmpl, &recipe, NULL));
        int schema = is_private ? 1 : (int)json_integer_value(json_object_get(vector, "expect"));
        cr_expect_eq(recipe->schema_version, schema, "%s", text_of(vector, "name"));
    }
    cr_assert_eq(json_array_size(vectors), 19);
}

static void check_options(const json_t *vector)
{
    g_autoptr(DkrRepository) r = NULL;
    g_autoptr(GError) error = NULL;
    json_auto_t *options = json_copy(json_object_get(vector, "inputs"));
    json_object_del(options, "getRepositoryAccess");
    bool ok = dkr_repository_parse(options, &r, &error);
    bool wanted = json_object_get(vector, "error") == NULL;
    if (strcmp(text_of(vector, "name"), "opt-no-access-bad-ref-ignored") == 0)
        wanted = false; /* without access we check too */
    cr_expect_eq(ok, wanted, "%s", text_of(vector, "name"));
    const char *named =
        json_object_get(options, "ref") ? "repository: ref " : "repository: workingDirectory ";
    cr_expect(ok || g_str_has_prefix(error->message, named), "%s", error->message);
}

static void check_url(const json_t *vector)
{
    g_autofree char *url = NULL;
    g_autoptr(GError) error = NULL;
    bool ok = dkr_repository_check_url(text_of(vector, "inputs"), &url, &error);
    cr_expect_eq(ok, json_object_get(vector, "error") == NULL, "%s", text_of(vector, "name"));
    cr_expect(ok ? g_str_has_prefix(url, "https://")
                 : spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-clone-url"));
}

Test(repository, takes_and_refuses_what_the_reference_does)
{
    json_auto_t *vectors = load("repo-template-validation.json");
    json_t *vector;
    gsize i;
    json_array_foreach(vectors, i, vector)
    {
        if (strcmp(text_of(vector, "kind"), "options") == 0)
            check_options(vector);
        else
            check_url(vector);
    }
    cr_assert_eq(json_array_size(vectors), 55);
}

static void becomes(const char *given, const char *wanted)
{
    g_autofree char *url = NULL;
    cr_assert(dkr_repository_check_url(given, &url, NULL), "%s", given);
    cr_expect_str_eq(url, wanted);
}

Test(repository, hands_git_a_url_that_it_reads_alike)
{
    becomes("https://EXAMPLE.com/a/b.git", "https://EXAMPLE.com/a/b.git");
    becomes("https:example.com/a/b", "https://example.com/a/b");
    becomes("HTTPS:///example.com:8443/a/../b", "https://example.com:8443/b");
}

static void rejects(const char *json, const char *words)
{
    g_autoptr(DkrRepository) r = NULL;
    g_autoptr(GError) error = NULL;
    json_auto_t *options = json_loads(json, JSON_DECODE_ANY, NULL);
    cr_expect_not(dkr_repository_parse(options, &r, &error), "%s", json);
    cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-template"));
    cr_expect(strstr(error->message, words), "%s", error->message);
}

Test(repository, rejects_wrong_options_by_name)
{
    rejects("[]", "repository must be an object");
    rejects("{\"reff\":\"x\"}", "did you mean \"ref\"?");
    rejects("{\"clone\":\"half\"}", "clone must be");
    rejects("{\"submodules\":1}", "submodules must be");
    rejects("{\"lfs\":\"yes\"}", "lfs must be");
    rejects("{\"owner\":\"a b\"}", "owner must be");
    rejects("{\"sha\":\"abc\"}", "sha must be");
    rejects("{\"setupCommand\":[1]}", "setupCommand must be");
    rejects("{\"buildEnv\":{\"A\":1}}", "buildEnv must be");
    rejects("{\"baseImage\":\"\"}", "baseImage must not be empty");
}

Test(repository, options_of_our_own_change_the_checkout)
{
    g_autoptr(DkrRepository) r = NULL;
    json_auto_t *options = json_loads("{\"clone\":\"shallow\",\"submodules\":true,\"lfs\":true,"
                                      "\"owner\":\"node:node\"}",
                                      0, NULL);
    cr_assert(dkr_repository_parse(options, &r, NULL));
    g_autofree char *text = dkr_repository_definition(
        r, "https://h/o/app", "0123456789012345678901234567890123456789", NULL, false);
    cr_expect(strstr(text, "fetch --quiet --depth 1 origin '0123456789"), "%s", text);
    cr_expect(strstr(text, "submodule update --init --recursive --depth 1"));
    cr_expect(strstr(text, "\"git-lfs\"") && strstr(text, "lfs pull"));
    cr_expect(strstr(text, "chown -R 'node:node' '/workspace/app'"));
}

Test(repository, a_token_is_in_the_secret_and_nowhere_else)
{
    g_autoptr(DkrRepository) r = NULL;
    json_auto_t *options = json_object();
    cr_assert(dkr_repository_parse(options, &r, NULL));
    g_autofree char *text = dkr_repository_definition(
        r, "https://h/o/app", "0123456789012345678901234567890123456789", NULL, true);
    cr_expect(strstr(text, "GIT_CONFIG_KEY_0='http.https://h/o/app.extraheader'"), "%s", text);
    cr_expect(strstr(text, "\"secrets\":[\"GH_TOKEN\"]"));
    cr_expect_null(strstr(text, "git -c"), "nothing of it is an argument");
}

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC"
#define D "dddddddddddddddddddddddddddddddddddddddd"

static void chooses(const char *listing, const char *ref, const char *wanted)
{
    g_autofree char *sha = dkr_git_choose(listing, ref);
    cr_expect_str_eq(sha ? sha : "none", wanted, "%s", ref ? ref : "HEAD");
}

Test(git, chooses_exactly_the_ref_that_was_named)
{
    static const char listing[] =
        A "\trefs/heads/alpha/main\n" B "\trefs/heads/main\n" C "\tHEAD\n" D "\trefs/tags/v1\n" A
          "\trefs/tags/v1^{}\n" D "\trefs/tags/light\n" C "\trefs/pull/3/head\n" D
          "\trefs/heads/v1/x\n";
    g_autofree char *lower = g_ascii_strdown(C, -1);
    chooses(listing, NULL, lower);
    chooses(listing, "HEAD", lower);
    chooses(listing, "main", B);
    chooses(listing, "alpha/main", A);
    chooses(listing, "v1", A);
    chooses(listing, "refs/tags/v1", A);
    chooses(listing, "light", D);
    chooses(listing, "refs/pull/3/head", lower);
    chooses(listing, "pull/3/head", "none");
    chooses(listing, "x", "none");
    chooses(A "\trefs/heads/alpha/main\n", "main", "none");
    chooses("<html>\nnot a listing", "main", "none");
    chooses("", NULL, "none");
}

Test(git, an_abbreviated_commit_has_to_be_the_only_one)
{
    static const char listing[] = "aaaaaaa111111111111111111111111111111111\trefs/heads/a\n"
                                  "aaaaaaa222222222222222222222222222222222\trefs/heads/b\n"
                                  "aaaaaaa222222222222222222222222222222222\trefs/tags/c\n";
    g_autofree char *one = dkr_git_choose_abbreviated(listing, "AAAAAAA2");
    g_autofree char *two = dkr_git_choose_abbreviated(listing, "aaaaaaa");
    g_autofree char *none = dkr_git_choose_abbreviated(listing, "bbbbbbb");
    cr_expect_str_eq(one, "aaaaaaa222222222222222222222222222222222");
    cr_expect_null(two);
    cr_expect_null(none);
}
