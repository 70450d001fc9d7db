/* A private key that the host answers for, and that stands in no configuration. No engine. */
#include "ep.h"

#include <criterion/criterion.h>
#include <ext/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    sprov_host host;
    sprov_host_secrets secrets;
    const char *answer; /* NULL: none */
    int asked;
    int logged;
} Host;

static char *folder;

static void make_folder(void)
{
    folder = ep_format("/tmp/sprov-key-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++)
        cr_assert_eq(system(ep_format("openssl req -x509 -newkey ec -pkeyopt "
                                      "ec_paramgen_curve:prime256v1 -nodes -subj /CN=far "
                                      "-keyout %s/key-%d -out %s/cert-%d 2>/dev/null",
                                      folder, i, folder, i)),
                     0);
}

static void remove_folder(void)
{
    cr_assert_eq(system(ep_format("rm -r %s", folder)), 0);
}

static const char *content(const char *name)
{
    EpBytes bytes = {0};
    sprov_sink sink = ep_sink(&bytes);
    char block[4096];
    FILE *file = fopen(ep_format("%s/%s", folder, name), "re");
    cr_assert_not_null(file);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
        sink.write(sink.ctx, block, n);
    fclose(file);
    return bytes.data;
}

static int32_t give(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    host->asked++;
    cr_expect_str_eq(name, "engine-key");
    if (!host->answer)
        return 1;
    emit(emit_ctx, host->answer, strlen(host->answer));
    return 0;
}

static const void *extension(void *ctx, const char *id)
{
    Host *host = ctx;
    return strcmp(id, SPROV_HOST_SECRETS) == 0 ? &host->secrets : NULL;
}

static void check_log(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    Host *host = ctx;
    host->logged++;
    cr_expect_null(strstr(message, "PRIVATE KEY"));
}

static Host host_with(const char *answer)
{
    Host host = {.host = SPROV_INIT(sprov_host),
                 .secrets = SPROV_INIT(sprov_host_secrets),
                 .answer = answer};
    host.host.abi_minor = SPROV_ABI_MINOR;
    host.host.log = check_log;
    host.host.get_extension = extension;
    host.secrets.secret = give;
    return host;
}

static sprov_status open_with(Host *host, const char *more, sprov_error *error)
{
    sprov_provider *provider = NULL;
    *error = (sprov_error)SPROV_INIT(sprov_error);
    host->host.ctx = host;
    char *config = ep_format("{\"host\":\"tcp://far:2376\",\"cert\":\"%s/cert-0\",\"keySecret\":"
                             "\"engine-key\",\"environment\":false%s}",
                             folder, more);
    sprov_status status = ep_api()->open(&host->host, config, &provider, error);
    if (status == SPROV_OK)
        cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    return status;
}

TestSuite(key, .init = make_folder, .fini = remove_folder);

Test(key, of_the_host_is_asked_for_once_by_its_name_when_a_provider_is_opened)
{
    Host host = host_with(content("key-0"));
    sprov_error error;
    cr_assert_eq(open_with(&host, "", &error), SPROV_OK, "%s", error.message);
    cr_assert_eq(host.asked, 1);
}

Test(key, that_cannot_be_had_or_used_is_refused_with_the_way_out_and_not_repeated)
{
    const struct {
        Host host;
        const char *more, *says;
    } cases[] = {
        {host_with(NULL), "", "the host has no secret \"engine-key\""},
        {host_with("junk"), "", "no private key in PEM form"},
        {host_with(content("key-1")), "", "belongs to another certificate"},
        {host_with(""), "", "no private key in PEM form"},
        {host_with(content("key-0")), ",\"key\":\"/some/key\"", "give one of them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Host host = cases[i].host;
        sprov_error error;
        cr_expect_eq(open_with(&host, cases[i].more, &error), SPROV_E_INVALID_ARGUMENT);
        cr_expect_str_eq(error.reason, "tls-credentials");
        cr_expect(strstr(error.message, "config \"keySecret\"") &&
                      strstr(error.message, cases[i].says) && !strchr(error.message, '\n'),
                  "%s", error.message);
        cr_expect_null(strstr(error.message, "BEGIN"));
    }
}

Test(key, of_a_host_that_answers_for_none_is_told_as_such)
{
    Host host = host_with(content("key-0"));
    sprov_error error;
    host.host.get_extension = NULL;
    cr_expect_eq(open_with(&host, "", &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect(strstr(error.message, SPROV_HOST_SECRETS), "%s", error.message);
    host = host_with(content("key-0"));
    host.secrets.secret = NULL;
    cr_expect_eq(open_with(&host, "", &error), SPROV_E_INVALID_ARGUMENT);
    host = host_with(content("key-0"));
    host.secrets.struct_size = 4;
    cr_expect_eq(open_with(&host, "", &error), SPROV_E_ABI, "%s", error.message);
}

/* In whatever form, and in either place. */
Test(key, that_stands_in_the_configuration_itself_is_refused)
{
    static const char *const places[] = {
        "\"key\":\"-----BEGIN PRIVATE KEY-----secretive\"",
        "\"key\":\"MIIEvQIBADANsecretive\"",
        "\"keySecret\":\"-----BEGIN PRIVATE KEY-----\\nsecretive\"",
        "\"keySecret\":\"MIIEvQIBADAN\\nsecretive\"",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        Host host = host_with(content("key-0"));
        sprov_error error = SPROV_INIT(sprov_error);
        sprov_provider *provider = NULL;
        host.host.ctx = &host;
        const char *config = ep_format("{\"host\":\"tcp://far:2376\",\"cert\":\"%s/cert-0\",%s,"
                                       "\"environment\":false}",
                                       folder, places[i]);
        cr_expect_eq(ep_api()->open(&host.host, config, &provider, &error),
                     SPROV_E_INVALID_ARGUMENT);
        cr_expect_null(strstr(error.message, "secretive"), "%s", error.message);
        cr_expect_eq(host.asked, 0);
    }
}
