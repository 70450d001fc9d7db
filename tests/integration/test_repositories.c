/* Repositories as templates: what the provider asks of its host, in which order, and what it makes
 * of the answers. The commit is given, so that neither a server nor an engine is needed. */
#include "ep.h"

#include <ext/templates.h>

#include <criterion/criterion.h>
#include <string.h>

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define URL "https://git.example.com/acme/app.git"

typedef struct {
    const char *access, *env; /* NULL: no answer */
    char asked[32];           /* 'a' and 'e' as they came */
} Host;

static int32_t answer(Host *host, const char *mark, const char *text, sprov_text_fn emit,
                      void *emit_ctx)
{
    strncat(host->asked, mark, sizeof host->asked - strlen(host->asked) - 1);
    if (!text)
        return 1;
    emit(emit_ctx, text, strlen(text));
    return 0;
}

static int32_t give_access(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    return answer(host, "a", host->access, emit, emit_ctx);
}

static int32_t give_env(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    return answer(host, "e", host->env, emit, emit_ctx);
}

static void append(void *ctx, const char *text, size_t size)
{
    char *into = ctx;
    cr_assert_lt(strlen(into) + size, 4096);
    strncat(into, text, size);
}

typedef struct {
    sprov_status status;
    sprov_error error;
    char definition[4096];
} Outcome;

static Outcome resolve(Host *host, const char *repository)
{
    const sprov_ext_templates *t = ep_extension(SPROV_EXT_TEMPLATES);
    sprov_provider *provider = ep_open_at("unix:///nonexistent");
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    Outcome outcome = {.error = SPROV_INIT(sprov_error)};
    callbacks.ctx = host;
    callbacks.repository_access = give_access;
    callbacks.repository_env = give_env;
    outcome.status = t->resolve_repository(provider, repository, &callbacks, NULL, append,
                                           outcome.definition, &outcome.error);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    return outcome;
}

#define PUBLIC "{\"cloneUrl\":\"" URL "\"}"

Test(repositories, ask_for_the_access_and_then_for_the_environment)
{
    Host host = {.access = PUBLIC, .env = "{\"CI\":\"1\"}"};
    Outcome with = resolve(&host, "{\"sha\":\"" SHA "\"}");
    cr_expect_eq(with.status, SPROV_OK, "%s", with.error.message);
    cr_expect_str_eq(host.asked, "ae");
    cr_expect(strstr(with.definition, "{\"method\":\"setEnvs\",\"args\":[{\"CI\":\"1\"}]}"), "%s",
              with.definition);
    cr_expect(strstr(with.definition, SHA));

    Host without = {.access = PUBLIC, .env = "{}"};
    Outcome none = resolve(&without, "{\"sha\":\"" SHA "\"}");
    cr_expect_eq(none.status, SPROV_OK);
    cr_expect_null(strstr(none.definition, "setEnvs"), "%s", none.definition);

    Host ignored = {.access = PUBLIC, .env = "{\"CI\":\"1\"}"};
    Outcome given = resolve(&ignored, "{\"sha\":\"" SHA "\",\"buildEnv\":{\"OWN\":\"2\"}}");
    cr_expect_eq(given.status, SPROV_OK);
    cr_expect_str_eq(ignored.asked, "a", "the options say it");
    cr_expect(strstr(given.definition, "[{\"OWN\":\"2\"}]"), "%s", given.definition);
}

Test(repositories, the_hosts_access_goes_before_the_url_of_the_options)
{
    Host host = {.access = "{\"cloneUrl\":\"https://other.example.com/acme/app.git\"}",
                 .env = "{}"};
    Outcome outcome = resolve(&host, "{\"sha\":\"" SHA "\",\"cloneUrl\":\"" URL "\"}");
    cr_expect_eq(outcome.status, SPROV_OK, "%s", outcome.error.message);
    cr_expect(strstr(outcome.definition, "https://other.example.com/"));
    cr_expect_null(strstr(outcome.definition, "git.example.com"));
}

Test(repositories, a_token_is_a_secret_of_the_definition_and_not_in_it)
{
    Host host = {.access = "{\"cloneUrl\":\"" URL "\",\"authorization\":{\"scheme\":\"bearer\","
                           "\"token\":\"tok-of-mine\"}}",
                 .env = "{}"};
    Outcome outcome = resolve(&host, "{\"sha\":\"" SHA "\"}");
    cr_expect_eq(outcome.status, SPROV_OK, "%s", outcome.error.message);
    cr_expect(strstr(outcome.definition, "\"secrets\":[\"GH_TOKEN\"]"));
    cr_expect_null(strstr(outcome.definition, "tok-of-mine"));
    host.access =
        "{\"cloneUrl\":\"" URL "\",\"authorization\":{\"scheme\":\"bearer\",\"token\":\"\"}}";
    cr_expect(strstr(resolve(&host, "{\"sha\":\"" SHA "\"}").definition, "\"secrets\":[]"),
              "an empty one is none");
}

Test(repositories, wrong_answers_end_it_by_name_before_git_runs)
{
    static const struct {
        const char *access, *env, *reason, *says;
    } wrong[] = {
        {NULL, NULL, "bad-repository-access", "no answer"},
        {"", NULL, "bad-repository-access", "no JSON object"},
        {"[]", NULL, "bad-repository-access", "no JSON object"},
        {"{}", NULL, "bad-repository-access", "no cloneUrl"},
        {"{\"cloneUrl\":\"\"}", NULL, "bad-repository-access", "no cloneUrl"},
        {"{\"cloneUrl\":\"http://git.example.com/a/b\"}", NULL, "invalid-clone-url", "https"},
        {"{\"cloneUrl\":\"" URL "\",\"authorization\":{\"scheme\":\"basic\",\"token\":\"tok-x\"}}",
         NULL, "bad-repository-access", "bearer"},
        {"{\"cloneUrl\":\"" URL "\",\"authorization\":{\"scheme\":\"bearer\"}}", NULL,
         "bad-repository-access", "without a token"},
        {"{\"cloneUrl\":\"" URL
         "\",\"authorization\":{\"scheme\":\"bearer\",\"token\":\"tok-\\n\"}}",
         NULL, "bad-repository-access", "control characters"},
        {PUBLIC, NULL, "bad-repository-env", "no answer"},
        {PUBLIC, "[]", "bad-repository-env", "object of strings"},
        {PUBLIC, "{\"A\":5}", "bad-repository-env", "object of strings"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Host host = {.access = wrong[i].access, .env = wrong[i].env};
        Outcome outcome = resolve(&host, "{\"ref\":\"main\"}");
        cr_expect_eq(outcome.status, SPROV_E_INVALID_ARGUMENT, "%zu: %s", i, outcome.error.message);
        cr_expect_str_eq(outcome.error.reason, wrong[i].reason);
        cr_expect(strstr(outcome.error.message, wrong[i].says), "%s", outcome.error.message);
        cr_expect_null(strstr(outcome.error.message, "tok-"), "%s", outcome.error.message);
        cr_expect_str_empty(outcome.definition);
    }
}
