/* Which engine is meant: addresses, the order of what can choose one, contexts, certificates. */
#include <criterion/criterion.h>

#include "base/error.h"
#include "engine/choice.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------------------------------------- addresses */

static DkrEndpoint *parse(const char *address)
{
    DkrEndpoint *endpoint = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(dkr_endpoint_parse(address, "DOCKER_HOST", &endpoint, &error), "%s: %s", address,
              error->message);
    return endpoint;
}

Test(address, of_each_transport_is_taken_apart_and_named_again)
{
    static const struct {
        const char *address, *host, *user, *path, *base, *named;
        int port;
        DkrTransport via;
        DkrSecurity security;
    } good[] = {
        {"unix:///run/d.sock", NULL, NULL, "/run/d.sock", "", "unix:///run/d.sock", 0, DKR_VIA_UNIX,
         DKR_SECURITY_NONE},
        {"unix://", NULL, NULL, DKR_DEFAULT_SOCKET, "", "unix://" DKR_DEFAULT_SOCKET, 0,
         DKR_VIA_UNIX, DKR_SECURITY_NONE},
        {"tcp://far:2375", "far", NULL, NULL, "", "tcp://far:2375", 2375, DKR_VIA_TCP,
         DKR_SECURITY_OPEN},
        {"tcp://[fe80::1%eth0]:9/base/", "fe80::1%eth0", NULL, NULL, "/base",
         "tcp://[fe80::1%eth0]:9/base", 9, DKR_VIA_TCP, DKR_SECURITY_OPEN},
        {"HTTPS://10.0.0.1", "10.0.0.1", NULL, NULL, "", "https://10.0.0.1", 0, DKR_VIA_TCP,
         DKR_SECURITY_TLS},
        {"http://a.b:1/", "a.b", NULL, NULL, "", "tcp://a.b:1", 1, DKR_VIA_TCP, DKR_SECURITY_NONE},
        {"ssh://me@far:22/run/d.sock", "far", "me", "/run/d.sock", "", "ssh://me@far:22/run/d.sock",
         22, DKR_VIA_SSH, DKR_SECURITY_NONE},
        {"ssh://far", "far", NULL, NULL, "", "ssh://far", 0, DKR_VIA_SSH, DKR_SECURITY_NONE},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(DkrEndpoint) endpoint = parse(good[i].address);
        cr_expect_eq(endpoint->via, good[i].via);
        cr_expect_eq(endpoint->security, good[i].security);
        cr_expect_eq(endpoint->port, good[i].port);
        cr_expect_eq(g_strcmp0(endpoint->host, good[i].host), 0, "%s", endpoint->host);
        cr_expect_eq(g_strcmp0(endpoint->user, good[i].user), 0, "%s", endpoint->user);
        cr_expect_eq(g_strcmp0(endpoint->path, good[i].path), 0, "%s", endpoint->path);
        cr_expect_str_eq(endpoint->base, good[i].base);
        cr_expect_str_eq(endpoint->address, good[i].named);
    }
}

Test(address, that_is_wrong_is_told_with_what_it_was)
{
    static const char *const wrong[] = {"unix://relative.sock",
                                        "/no/scheme",
                                        "npipe:////./pipe/d",
                                        "fd://",
                                        "gopher://x",
                                        "tcp://",
                                        "tcp://:2375",
                                        "tcp://far:0",
                                        "tcp://far:65536",
                                        "tcp://far:12x",
                                        "tcp://far:",
                                        "tcp://fe80::1",
                                        "tcp://[::1",
                                        "tcp://[far]",
                                        "tcp://[%]",
                                        "tcp://a b",
                                        "tcp://me@far",
                                        "ssh://-oProxyCommand=x",
                                        "ssh://-x@far",
                                        "ssh://far/a;reboot",
                                        "ssh://far/$(x)",
                                        ""};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        DkrEndpoint *endpoint = NULL;
        g_autoptr(GError) error = NULL;
        const char *at = strrchr(wrong[i], '@');
        cr_assert_not(dkr_endpoint_parse(wrong[i], "DOCKER_HOST", &endpoint, &error), "%s",
                      wrong[i]);
        cr_expect_null(endpoint);
        cr_expect(strstr(error->message, at ? at : wrong[i]), "%s", error->message);
        cr_expect(g_str_has_prefix(error->message, "DOCKER_HOST \""), "%s", error->message);
    }
}

Test(address, that_is_wrong_says_what_is_missing_or_too_much)
{
    static const struct {
        const char *address, *says;
    } wrong[] = {
        {"tcp://", "the host is missing, as in tcp://"},
        {"tcp://:2375", "the host is missing"},
        {"ssh://", "the host is missing"},
        {"ssh://me@", "the host is missing"},
        {"https://[]:2376", "the host is missing"},
        {"tcp://far:2375?x=1", "no query"},
        {"tcp://far?x=1", "no query"},
        {"https://far/base?token=s3cr3t", "no query"},
        {"ssh://far/run/d.sock#x", "no fragment"},
        {"tcp://far:0", "the port must be a number from 1 to 65535"},
        {"tcp://far:x", "the port must be a number from 1 to 65535"},
        {"tcp://-far", "no such host name"},
        {"unix://run/d.sock", "must be absolute, as in unix:///run/docker.sock"},
        {"/run/d.sock", "unix:///path/to/docker.sock"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        DkrEndpoint *endpoint = NULL;
        g_autoptr(GError) error = NULL;
        cr_assert_not(dkr_endpoint_parse(wrong[i].address, "DOCKER_HOST", &endpoint, &error));
        cr_expect(strstr(error->message, wrong[i].says), "%s: %s", wrong[i].address,
                  error->message);
        cr_expect_null(strstr(error->message, "s3cr3t"), "%s", error->message);
    }
}

Test(address, with_a_password_is_refused_and_not_repeated)
{
    static const char *const wrong[] = {"ssh://me:s3cr3t@far", "s3cr3t@x://far", "tcp://s3cr3t@far",
                                        "s3cr3t@far"};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        DkrEndpoint *endpoint = NULL;
        g_autoptr(GError) error = NULL;
        cr_assert_not(dkr_endpoint_parse(wrong[i], "DOCKER_HOST", &endpoint, &error));
        cr_expect_null(strstr(error->message, "s3cr3t"), "%s", error->message);
        cr_expect_not_null(strstr(error->message, "far"), "%s", error->message);
    }
}

Test(address, that_is_no_text_is_told_as_text)
{
    DkrEndpoint *endpoint = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(dkr_endpoint_parse("unix:///\xff", "DOCKER_HOST", &endpoint, &error));
    cr_expect(g_utf8_validate(error->message, -1, NULL));
}

Test(address, has_a_path_as_long_as_a_socket_takes_and_no_longer)
{
    g_autofree char *name = g_strnfill(106, 's');
    g_autofree char *fits = g_strconcat("unix:///", name, NULL);
    g_autofree char *too_long = g_strconcat(fits, "s", NULL);
    g_autoptr(DkrEndpoint) endpoint = parse(fits);
    cr_assert(endpoint);
    DkrEndpoint *untouched = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(dkr_endpoint_parse(too_long, "DOCKER_HOST", &untouched, &error));
    cr_assert(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint"));
    cr_assert_null(untouched);
}

/* ---------------------------------------------------------------------------- choices */

static char *environment[8]; /* "NAME=value", NULL */

static void set(size_t at, const char *name, const char *value)
{
    environment[at] = g_strdup_printf("%s=%s", name, value);
}

static bool choose_by(const DkrWish *wish, DkrEndpoint **endpoint, GError **error)
{
    return dkr_endpoint_choose(wish, (const char *const *)environment, endpoint, error);
}

static DkrEndpoint *choose(DkrWish wish)
{
    DkrEndpoint *endpoint = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(choose_by(&wish, &endpoint, &error), "%s", error ? error->message : "");
    return endpoint;
}

static void chooses(DkrWish wish, const char *address, const char *origin)
{
    g_autoptr(DkrEndpoint) endpoint = choose(wish);
    cr_expect_str_eq(endpoint->address, address);
    cr_expect_str_eq(endpoint->origin, origin);
}

static void refuses(DkrWish wish, const char *in_message)
{
    DkrEndpoint *endpoint = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(choose_by(&wish, &endpoint, &error), "no \"%s\"", in_message);
    cr_expect_null(endpoint);
    cr_expect_eq(error->code, SPR_E_INVALID_ARGUMENT);
    cr_expect(strstr(error->message, in_message), "%s", error->message);
}

static char *folder; /* a configuration folder of docker's */

static char *put(const char *name, const char *text)
{
    char *path = g_build_filename(folder, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    cr_assert_eq(g_mkdir_with_parents(parent, 0700), 0);
    cr_assert(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void put_context(const char *name, const char *meta)
{
    g_autofree char *id = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
    g_autofree char *path = g_strdup_printf("contexts/meta/%s/meta.json", id);
    g_free(put(path, meta));
}

static void setup(void)
{
    memset(environment, 0, sizeof environment);
    folder = g_dir_make_tmp("sprov-endpoint-XXXXXX", NULL);
    set(0, "DOCKER_CONFIG", folder);
}

static void teardown(void)
{
    const char *argv[] = {"rm", "-rf", folder, NULL};
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(folder);
}

TestSuite(choice, .init = setup, .fini = teardown);

Test(choice, is_configuration_then_environment_then_context_then_default)
{
    put_context("far", "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://far:1\"}}}");
    g_free(put("config.json", "{\"auths\":{},\"currentContext\":\"far\"}"));
    set(1, "DOCKER_HOST", "unix:///b.sock");
    set(2, "DOCKER_CONTEXT", "far");
    set(3, "CONTAINER_HOST", "unix:///c.sock");
    chooses((DkrWish){.host = "unix:///a.sock"}, "unix:///a.sock", "config \"host\"");
    chooses((DkrWish){.socket_path = "/a.sock"}, "unix:///a.sock", "config \"socketPath\"");
    chooses((DkrWish){.context = "far"}, "tcp://far:1", "config \"context\" \"far\"");
    chooses((DkrWish){0}, "unix:///b.sock", "DOCKER_HOST");
    set(1, "DOCKER_HOST", "");
    chooses((DkrWish){0}, "tcp://far:1", "DOCKER_CONTEXT \"far\"");
    set(2, "DOCKER_CONTEXT", "");
    chooses((DkrWish){0}, "unix:///c.sock", "CONTAINER_HOST");
    set(3, "CONTAINER_HOST", "");
    chooses((DkrWish){0}, "tcp://far:1", "context \"far\"");
    set(2, "DOCKER_CONTEXT", "default");
    g_autoptr(DkrEndpoint) endpoint = choose((DkrWish){0});
    cr_expect_str_eq(endpoint->origin, "default");
}

Test(choice, of_a_default_is_the_users_own_socket_where_the_machines_is_not_for_them)
{
    if (access(DKR_DEFAULT_SOCKET, R_OK | W_OK) == 0)
        cr_skip_test("this machine has an engine at " DKR_DEFAULT_SOCKET);
    set(1, "XDG_RUNTIME_DIR", folder);
    chooses((DkrWish){0}, "unix://" DKR_DEFAULT_SOCKET, "default");
    g_autofree char *podman = put("podman/podman.sock", "");
    g_autofree char *expected = g_strconcat("unix://", podman, NULL);
    chooses((DkrWish){0}, expected, "XDG_RUNTIME_DIR");
    g_autofree char *docker = put("docker.sock", "");
    g_autofree char *first = g_strconcat("unix://", docker, NULL);
    chooses((DkrWish){0}, first, "XDG_RUNTIME_DIR");
}

Test(choice, takes_dockerodes_options_together)
{
    chooses((DkrWish){.host = "10.0.0.1", .port = 2375}, "tcp://10.0.0.1:2375", "config \"host\"");
    chooses((DkrWish){.host = "http://10.0.0.1", .port = 4}, "tcp://10.0.0.1:4", "config \"host\"");
    chooses((DkrWish){.host = "::1", .port = 4}, "tcp://[::1]:4", "config \"host\"");
    chooses((DkrWish){.host = "far", .protocol = "ssh", .username = "me", .port = 22},
            "ssh://me@far:22", "config \"host\"");
    chooses((DkrWish){.host = "far"}, "tcp://far:2375", "config \"host\"");
    g_autoptr(DkrEndpoint) tls = choose((DkrWish){.host = "far", .protocol = "https"});
    cr_expect_str_eq(tls->address, "https://far:2376");
    cr_assert_not_null(tls->tls);
    cr_expect(dkr_tls_verifies(tls->tls));
    g_autoptr(DkrEndpoint) by_port = choose((DkrWish){.host = "far", .port = 2376});
    cr_expect_not_null(by_port->tls);
}

Test(choice, that_contradicts_itself_is_refused_by_name)
{
    refuses((DkrWish){.host = "tcp://a:1", .port = 2}, "config \"port\"");
    refuses((DkrWish){.host = "http://a", .protocol = "ssh"}, "config \"protocol\"");
    refuses((DkrWish){.host = "tcp://a", .protocol = "ssh"}, "config \"protocol\"");
    refuses((DkrWish){.host = "a", .socket_path = "/s"}, "config \"socketPath\"");
    refuses((DkrWish){.host = "a", .context = "b"}, "config \"context\"");
    refuses((DkrWish){.port = 2375}, "config \"port\": \"host\" is missing");
    refuses((DkrWish){.socket_path = "/s", .port = 1}, "config \"port\"");
    refuses((DkrWish){.host = "a", .username = "me"}, "config \"username\"");
    refuses((DkrWish){.host = "a", .ssh_config = "/c"}, "config \"sshConfig\"");
    refuses((DkrWish){.socket_path = "/s", .ca = "/ca.pem"}, "asks for TLS");
    refuses((DkrWish){.host = "http://a", .ca = "/ca.pem"}, "asks for TLS");
}

Test(choice, that_is_broken_is_an_error_and_no_fallback)
{
    set(1, "DOCKER_CONTEXT", "none");
    refuses((DkrWish){0}, "context \"none\"");
    set(2, "DOCKER_HOST", "gopher://x");
    DkrEndpoint *endpoint = NULL;
    cr_expect_not(choose_by(&(DkrWish){0}, &endpoint, NULL));
    refuses((DkrWish){.context = "none"}, "context \"none\"");
    refuses((DkrWish){.context = "../x"}, "no such name");
    set(1, "DOCKER_CONTEXT", "");
    set(2, "DOCKER_HOST", "");
    g_free(put("config.json", "{\"currentContext\":"));
    refuses((DkrWish){0}, "config.json is no JSON object: mend it, or name another folder in "
                          "DOCKER_CONFIG");
    g_free(put("config.json", "{\"currentContext\":7}"));
    refuses((DkrWish){0}, "config.json: currentContext");
    g_free(put("config.json", "[\"x\"]"));
    refuses((DkrWish){0}, "config.json");
    g_free(put("config.json", "{\"currentContext\":\"gone\"}"));
    refuses((DkrWish){0}, "context \"gone\"");
    put_context("empty", "{\"Endpoints\":{}}");
    refuses((DkrWish){.context = "empty"}, "no docker endpoint");
}

Test(choice, of_a_version_is_one_that_is_spoken)
{
    set(1, "DOCKER_API_VERSION", "1.41");
    g_autoptr(DkrEndpoint) environments = choose((DkrWish){0});
    cr_expect_eq(environments->api_minor, 41);
    g_autoptr(DkrEndpoint) wished = choose((DkrWish){.version = "v1.43"});
    cr_expect_eq(wished->api_minor, 43);
    refuses((DkrWish){.version = "1.99"}, "config \"version\" \"1.99\"");
    refuses((DkrWish){.version = "2.41"}, "config \"version\"");
    refuses((DkrWish){.version = "1.41x"}, "config \"version\"");
    set(1, "DOCKER_API_VERSION", "1.12");
    refuses((DkrWish){0}, "DOCKER_API_VERSION \"1.12\"");
}

/* -------------------------------------------------------------------------------- TLS */

/* A certificate for "far" that signs itself, and its key. */
static void make_certificate(const char *name)
{
    g_autofree char *cert = g_strdup_printf("%s/%s-cert.pem", folder, name);
    g_autofree char *key = g_strdup_printf("%s/%s-key.pem", folder, name);
    const char *argv[] = {
        "openssl", "req",   "-x509",   "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes",  "-subj", "/CN=far", "-keyout", key,  "-out",     cert,
        NULL};
    int status = -1;
    g_spawn_sync(NULL, (char **)argv, NULL,
                 G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL | G_SPAWN_STDOUT_TO_DEV_NULL,
                 NULL, NULL, NULL, NULL, &status, NULL);
    cr_assert_eq(status, 0);
}

static char *in_folder(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static void refuses_file(DkrWish wish, const char *name, const char *path)
{
    g_autofree char *says = g_strdup_printf("%s (%s): ", name, path);
    refuses(wish, says);
}

Test(choice, reads_certificates_from_files_and_names_what_it_cannot_use)
{
    make_certificate("a");
    make_certificate("b");
    char *cert = in_folder("a-cert.pem"), *key = in_folder("a-key.pem");
    char *other = in_folder("b-key.pem"), *junk = put("junk.pem", "junk");
    g_autoptr(DkrEndpoint) good =
        choose((DkrWish){.host = "far", .ca = cert, .cert = cert, .key = key});
    cr_expect_str_eq(good->address, "https://far:2376");
    refuses((DkrWish){.host = "far", .ca = "/none.pem"}, "config \"ca\": /none.pem");
    refuses_file((DkrWish){.host = "far", .ca = junk}, "config \"ca\"", junk);
    refuses_file((DkrWish){.host = "far", .cert = cert}, "config \"cert\"", cert);
    refuses_file((DkrWish){.host = "far", .key = key}, "config \"key\"", key);
    refuses_file((DkrWish){.host = "far", .cert = junk, .key = key}, "config \"cert\"", junk);
    refuses_file((DkrWish){.host = "far", .cert = cert, .key = junk}, "config \"key\"", junk);
    refuses_file((DkrWish){.host = "far", .cert = cert, .key = other}, "config \"key\"", other);
    refuses((DkrWish){.host = "far", .cert = cert, .key = other}, "belongs to another");
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents(key, &text, NULL, NULL));
    refuses((DkrWish){.host = "far", .cert = cert, .key = text}, "does not belong here");
    g_autofree char *pem = NULL;
    cr_assert(g_file_get_contents(cert, &pem, NULL, NULL));
    g_autoptr(DkrEndpoint) by_text = choose((DkrWish){.host = "far", .ca = pem});
    cr_expect_not_null(by_text->tls);
}

Test(choice, of_tls_in_the_environment_holds_for_a_host_of_the_configuration_too)
{
    make_certificate("a");
    char *from = in_folder("a-cert.pem"), *to = in_folder("ca.pem");
    cr_assert_eq(g_rename(from, to), 0);
    set(1, "DOCKER_TLS_VERIFY", "0"); /* any value is yes */
    set(2, "DOCKER_CERT_PATH", folder);
    g_autoptr(DkrEndpoint) open = choose((DkrWish){.host = "tcp://far"});
    cr_assert_not_null(open->tls);
    cr_expect(dkr_tls_verifies(open->tls));
    g_autoptr(DkrEndpoint) clear = choose((DkrWish){.host = "http://far"});
    cr_expect_null(clear->tls, "it says so itself");
    set(3, "DOCKER_HOST", "http://far");
    refuses((DkrWish){0}, "asks for TLS");
    set(3, "DOCKER_HOST", "unix:///b.sock");
    g_autoptr(DkrEndpoint) local = choose((DkrWish){0});
    cr_expect_null(local->tls);
    set(3, "DOCKER_HOST", "tcp://far");
    cr_assert_eq(g_unlink(to), 0);
    refuses((DkrWish){0}, "DOCKER_CERT_PATH");
}

Test(choice, of_tls_without_verification_is_dockers_own_variable)
{
    set(1, "DOCKER_TLS", "1");
    set(2, "DOCKER_HOST", "tcp://far");
    g_autoptr(DkrEndpoint) endpoint = choose((DkrWish){0});
    cr_assert_not_null(endpoint->tls);
    cr_expect_not(dkr_tls_verifies(endpoint->tls));
}

Test(choice, of_a_context_has_its_own_certificates)
{
    make_certificate("a");
    put_context("far", "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://far\"}}}");
    g_autoptr(DkrEndpoint) clear = choose((DkrWish){.context = "far"});
    cr_expect_null(clear->tls);
    g_autofree char *id = g_compute_checksum_for_string(G_CHECKSUM_SHA256, "far", -1);
    g_autofree char *ca = g_strdup_printf("contexts/tls/%s/docker/ca.pem", id);
    g_autofree char *pem = NULL;
    cr_assert(g_file_get_contents(in_folder("a-cert.pem"), &pem, NULL, NULL));
    g_free(put(ca, pem));
    g_autoptr(DkrEndpoint) tls = choose((DkrWish){.context = "far"});
    cr_assert_not_null(tls->tls);
    cr_expect_str_eq(tls->address, "https://far:2376");
    g_autofree char *broken = put(ca, "junk");
    refuses_file((DkrWish){.context = "far"}, "ca.pem of the context", broken);
}

/* --------------------------------------------------------------------------- failures */

Test(tls, failures_have_a_name_each_and_may_be_repeated_only_where_that_helps)
{
    static const struct {
        long verify;
        const char *text, *reason, *says;
        bool retryable;
    } cases[] = {
        {X509_V_ERR_CERT_HAS_EXPIRED, "", "tls-expired", "renew it", false},
        {X509_V_ERR_CERT_NOT_YET_VALID, "", "tls-not-yet-valid", "clock", false},
        {X509_V_ERR_HOSTNAME_MISMATCH, "", "tls-wrong-name", "use one that it has", false},
        {X509_V_ERR_IP_ADDRESS_MISMATCH, "", "tls-wrong-name", "that it has", false},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "", "tls-untrusted", "\"ca\"", false},
        {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "", "tls-untrusted", "DOCKER_CERT_PATH", false},
        {X509_V_OK, "error:0A00010B:SSL routines::wrong version number", "not-tls",
         "look at the port", false},
        {X509_V_OK, "error:0A000412:SSL routines::sslv3 alert bad certificate",
         "tls-client-refused", "\"cert\"", false},
        {X509_V_OK, "error:0A00045C:SSL routines::tlsv13 alert certificate required",
         "tls-client-refused", "DOCKER_CERT_PATH", false},
        {X509_V_OK, "error:0A00042E:SSL routines::tlsv1 alert protocol version", "tls-version",
         "bring its Docker up to date", false},
        {X509_V_OK, NULL, "tls-failed", "it ended the handshake", true},
        {X509_V_OK, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to far:2376",
         "tls-failed", "it ended the handshake", true},
    };
    g_autoptr(DkrEndpoint) with = choose((DkrWish){.host = "https://far"});
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        cr_assert_not(
            dkr_tls_fail(with->tls, "https://far:2376", cases[i].verify, cases[i].text, &error));
        cr_expect(spr_error_is(error, SPR_E_UNAVAILABLE, cases[i].reason), "%s", error->message);
        cr_expect_eq(!!(spr_error_extra(error)->flags & SPR_ERROR_RETRYABLE), cases[i].retryable);
        cr_expect(strstr(error->message, "https://far:2376"), "%s", error->message);
        cr_expect(strstr(error->message, cases[i].says), "no way out: %s", error->message);
    }
}

/* A certificate that is refused is named by its files, one that is missing by where it would be. */
Test(choice, of_a_client_certificate_is_told_when_the_engine_wants_another)
{
    static const char *const alerts[] = {
        "error:0A00045C:SSL routines::tlsv13 alert certificate required",
        "error:0A000412:SSL routines::sslv3 alert bad certificate",
        "error:0A000418:SSL routines::tlsv1 alert unknown ca",
    };
    make_certificate("a");
    char *cert = in_folder("a-cert.pem"), *key = in_folder("a-key.pem");
    g_autofree char *pem = NULL;
    cr_assert(g_file_get_contents(cert, &pem, NULL, NULL));
    g_autoptr(DkrEndpoint) with = choose((DkrWish){.host = "far", .cert = cert, .key = key});
    g_autoptr(DkrEndpoint) by_text = choose((DkrWish){.host = "far", .cert = pem, .key = key});
    g_autoptr(DkrEndpoint) without = choose((DkrWish){.host = "https://far"});
    for (size_t i = 0; i < G_N_ELEMENTS(alerts); i++) {
        g_autoptr(GError) refused = NULL, missing = NULL, text = NULL;
        dkr_tls_fail(with->tls, with->address, X509_V_OK, alerts[i], &refused);
        dkr_tls_fail(by_text->tls, with->address, X509_V_OK, alerts[i], &text);
        dkr_tls_fail(without->tls, without->address, X509_V_OK, alerts[i], &missing);
        cr_expect(strstr(refused->message, cert) && strstr(refused->message, key), "%s",
                  refused->message);
        cr_expect(strstr(text->message, "config \"cert\" with") && !strstr(text->message, "BEGIN"),
                  "%s", text->message);
        cr_expect(strstr(missing->message, "it wants a client certificate") &&
                      strstr(missing->message, "DOCKER_CERT_PATH"),
                  "%s", missing->message);
    }
}
