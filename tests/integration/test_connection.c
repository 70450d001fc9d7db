/* dockerOptions of a sandbox: an engine of its own, or the provider's by another name. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ELSEWHERE "\"host\":\"unix:///nonexistent/docker.sock\""

static sprov_provider *open_as(const char *config)
{
    sprov_provider *provider = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_api()->open(NULL, config, &provider, &error), SPROV_OK, "%s", error.message);
    return provider;
}

/* The members of a Mastra user's dockerOptions. */
static char *the_engine(void)
{
    const char *host = getenv("DOCKER_HOST");
    const char *path = strstr(host, "unix://") == host ? host + 7 : NULL;
    return path ? ep_format("\"socketPath\":\"%s\"", path) : ep_format("\"host\":\"%s\"", host);
}

static void take_text(void *ctx, const char *text, size_t size)
{
    char **all = ctx;
    *all = ep_format("%s%.*s\n", *all ? *all : "", (int)size, text);
}

static const char *listed(sprov_provider *provider)
{
    char *all = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->list(provider, NULL, take_text, &all, &error), SPROV_OK, "%s",
                 error.message);
    return all ? all : "";
}

/* Everything that one does in a sandbox, once. */
static void check_whole_life(sprov_provider *provider, const char *docker_options)
{
    sprov_error error = SPROV_INIT(sprov_error);
    EpBox box = {.provider = provider, .id = ep_new_id()};
    EpBytes bytes = {0};
    char *info = NULL;
    box.sandbox = ep_create(provider, box.id, ep_format("\"dockerOptions\":{%s}", docker_options));
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CREATED, "%s", docker_options);
    cr_expect_eq(ep_count(box.id), 1, "%s", docker_options);
    cr_expect_str_eq(ep_ask(box.sandbox, "echo hi"), "hi");
    cr_expect_eq(ep_write(box.sandbox, "/tmp/f", "bytes", 5, 0, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_eq(ep_read(box.sandbox, "/tmp/f", &bytes, NULL, &error), SPROV_OK);
    cr_expect_str_eq(bytes.data, "bytes");
    cr_expect_eq(ep_lifecycle()->info(box.sandbox, NULL, take_text, &info, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_eq(ep_lifecycle()->stop(box.sandbox, NULL, &error), SPROV_OK, "%s", error.message);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /tmp/f"), "bytes");
    cr_expect_eq(ep_api()->destroy(box.sandbox, NULL, &error), SPROV_OK, "%s", error.message);
    cr_expect_eq(ep_count(box.id), 0);
    ep_api()->release(box.sandbox);
}

Test(connection, of_a_sandbox_counts_where_the_provider_was_opened_for_no_engine)
{
    static const char *const more[] = {"", ",\"version\":\"1.41\"", ",\"timeout\":20000"};
    sprov_provider *provider = open_as("{\"environment\":false}");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        check_whole_life(provider, ep_format("%s%s", the_engine(), more[i]));
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

Test(connection, of_a_sandbox_may_say_again_or_only_how_what_the_provider_was_opened_for)
{
    const char *options[] = {"", the_engine(), "\"version\":\"v1.41\",\"timeout\":20000"};
    sprov_provider *provider = ep_open();
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        check_whole_life(provider, options[i]);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

static void check_refused(sprov_provider *provider, const char *docker_options, const char *reason,
                          const char *says)
{
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_neq(ep_api()->create(provider, ep_format("{\"dockerOptions\":{%s}}", docker_options),
                                   NULL, &sandbox, &error),
                  SPROV_OK);
    cr_expect_null(sandbox);
    cr_expect_str_eq(error.reason, reason, "%s", error.message);
    cr_expect(strstr(error.message, "dockerOptions") && strstr(error.message, says), "%s",
              error.message);
    cr_expect_null(strchr(error.message, '\n'));
}

Test(connection, of_a_sandbox_that_contradicts_the_provider_s_or_makes_no_sense_is_refused)
{
    sprov_provider *provider = ep_open();
    check_refused(provider, ELSEWHERE, "other-engine", "/nonexistent/docker.sock");
    check_refused(provider, "\"socketPath\":\"/a\",\"host\":\"/b\"", "invalid-endpoint", "");
    check_refused(provider, "\"host\":\"tcp://10.0.0.1\",\"ca\":\"/nonexistent/ca.pem\"",
                  "tls-credentials", "/nonexistent/ca.pem");
    check_refused(provider, "\"sshAuthAgent\":\"x\"", "invalid-option", "sshConfig");
    check_refused(provider, "\"sshOptions\":{}", "invalid-option", "sshConfig");
    check_refused(provider, "\"agent\":{}", "invalid-option", "agent: not supported");
    check_refused(provider, "\"checkServerIdentity\":{}", "invalid-option", "JavaScript");
    check_refused(provider, "\"connectionTimeout\":1", "invalid-option", "\"timeout\"");
    check_refused(provider, "\"passphrase\":\"x\"", "invalid-option", "\"keySecret\"");
    check_refused(provider, "\"nonesuch\":1", "unknown-option", "sshConfig, version");
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* open() reads the environment, create() reads it no more. */
Test(connection, of_a_sandbox_is_told_by_the_environment_that_open_saw)
{
    sprov_provider *provider = open_as("{}");
    setenv("DOCKER_CERT_PATH", "/nonexistent", 1);
    setenv("DOCKER_API_VERSION", "9", 1);
    sprov_sandbox *sandbox =
        ep_create(provider, ep_new_id(), "\"dockerOptions\":{\"host\":\"tcp://10.0.0.1\"}");
    ep_api()->release(sandbox);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* The provider's engine is what a provider lists. */
Test(connection, of_a_sandbox_is_the_sandbox_s_alone)
{
    sprov_provider *provider = open_as("{" ELSEWHERE "}");
    sprov_provider *open = open_as("{\"environment\":false}");
    EpBox box = {.provider = open, .id = ep_new_id()};
    check_refused(provider, the_engine(), "other-engine", "/nonexistent/docker.sock");
    box.sandbox = ep_create(open, box.id, ep_format("\"dockerOptions\":{%s}", the_engine()));
    ep_start(box.sandbox);
    sprov_provider *of_the_engine = ep_open();
    cr_expect(strstr(listed(of_the_engine), box.id));
    cr_expect_neq(ep_api()->close(open, NULL), SPROV_OK, "closed under a handle");
    ep_api()->close(of_the_engine, NULL);
    ep_api()->close(provider, NULL);
    ep_destroy(&box);
}

Test(connection, of_a_sandbox_is_that_of_its_template_s_build)
{
    sprov_provider *provider = open_as("{\"environment\":false}");
    EpBox box = {.provider = provider, .id = ep_new_id()};
    sprov_error error = SPROV_INIT(sprov_error);
    char *info = NULL;
    const char *options =
        ep_format("{\"id\":\"%s\",\"dockerOptions\":{%s},\"template\":{\"baseImage\":"
                  "\"busybox:latest\",\"operations\":[{\"method\":\"runCmd\",\"args\":"
                  "[\"echo %s >/built\"]}]}}",
                  box.id, the_engine(), box.id);
    cr_assert_eq(ep_api()->create(provider, options, NULL, &box.sandbox, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /built"), box.id);
    cr_assert_eq(ep_lifecycle()->info(box.sandbox, NULL, take_text, &info, &error), SPROV_OK);
    char *image = ep_format("%s", strstr(info, "\"mastra-template:") + 1);
    *strchr(image, '"') = '\0';
    ep_destroy(&box);
    cr_expect_eq(ep_engine("DELETE", ep_format("/images/%s", image), NULL, NULL), 200, "%s", image);
}
