#include "engine/choice.h"

#include "base/error.h"
#include "engine/client.h"
#include "engine/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAIN_PORT 2375
#define TLS_PORT 2376

typedef struct {
    const DkrWish *wish;
    char **environment;
    DkrEndpoint *endpoint;
    DkrContextEndpoint *context; /* where the endpoint came from one */
} Choice;

static void choice_clear(Choice *choice)
{
    dkr_endpoint_free(choice->endpoint);
    dkr_context_endpoint_free(choice->context);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Choice, choice_clear)

/* Empty is as good as not set. */
static const char *variable(const Choice *choice, const char *name)
{
    const char *value = g_environ_getenv(choice->environment, name);
    return value && *value && !choice->wish->ignores_environment ? value : NULL;
}

static bool fail_wish(const char *key, const char *why, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint", "config \"%s\": %s", key,
                    why);
}

/* ------------------------------------------------------------------------ contexts */

static char *docker_folder(const Choice *choice)
{
    const char *folder = variable(choice, "DOCKER_CONFIG");
    const char *home = g_environ_getenv(choice->environment, "HOME");
    return folder ? g_strdup(folder)
                  : g_build_filename(home && *home ? home : g_get_home_dir(), ".docker", NULL);
}

static bool is_default_context(const char *name)
{
    return strcmp(name, "default") == 0;
}

static bool take_context(Choice *choice, const char *name, const char *origin, GError **error)
{
    g_autofree char *folder = docker_folder(choice);
    g_autofree char *full = g_strdup_printf("%s \"%s\"", origin, name);
    return dkr_context_read(folder, name, &choice->context, error) &&
           dkr_endpoint_parse(choice->context->host, full, &choice->endpoint, error);
}

static bool take_current_context(Choice *choice, GError **error)
{
    g_autofree char *folder = docker_folder(choice);
    g_autofree char *name = NULL;
    if (!dkr_context_current(folder, &name, error))
        return false;
    return !name || is_default_context(name) || take_context(choice, name, "context", error);
}

/* ---------------------------------------------------------------- the configuration */

/* What goes with a bare host name alone, or completes an address. */
static bool complete(DkrEndpoint *endpoint, const DkrWish *wish, GError **error)
{
    if (endpoint->via == DKR_VIA_UNIX && (wish->port || wish->username))
        return fail_wish(wish->port ? "port" : "username", "a unix socket has none", error);
    if (wish->port && endpoint->port && wish->port != endpoint->port)
        return fail_wish("port", "\"host\" names another one", error);
    if (wish->username && endpoint->via != DKR_VIA_SSH)
        return fail_wish("username", "only ssh takes one", error);
    if (wish->username && endpoint->user && strcmp(wish->username, endpoint->user) != 0)
        return fail_wish("username", "\"host\" names another one", error);
    endpoint->port = wish->port ? wish->port : endpoint->port;
    if (wish->username && !endpoint->user)
        endpoint->user = g_strdup(wish->username);
    dkr_endpoint_name(endpoint);
    return true;
}

static bool is_scheme_of(const char *protocol, const char *host)
{
    gsize length = strlen(protocol);
    return g_ascii_strncasecmp(host, protocol, length) == 0 &&
           strncmp(host + length, "://", 3) == 0;
}

static bool take_host(Choice *choice, GError **error)
{
    const DkrWish *wish = choice->wish;
    const char *protocol = wish->protocol ? wish->protocol : "tcp";
    g_autofree char *address = g_strdup(wish->host);
    if (!strstr(wish->host, "://") && *wish->host != '/') {
        const char *colon = strchr(wish->host, ':');
        bool bare_ip6 = colon && strchr(colon + 1, ':') && *wish->host != '[';
        g_free(address);
        address = g_strdup_printf(bare_ip6 ? "%s://[%s]" : "%s://%s", protocol, wish->host);
    } else if (wish->protocol && !is_scheme_of(wish->protocol, wish->host) &&
               !is_scheme_of("tcp", wish->host)) {
        return fail_wish("protocol", "\"host\" names another one", error);
    }
    if (!dkr_endpoint_parse(address, "config \"host\"", &choice->endpoint, error))
        return false;
    if (wish->protocol && choice->endpoint->security == DKR_SECURITY_OPEN) {
        if (strcmp(wish->protocol, "ssh") == 0)
            return fail_wish("protocol", "\"host\" names another one", error);
        choice->endpoint->security =
            strcmp(wish->protocol, "https") == 0 ? DKR_SECURITY_TLS : DKR_SECURITY_NONE;
    }
    return complete(choice->endpoint, wish, error);
}

static bool take_socket(Choice *choice, GError **error)
{
    const DkrWish *wish = choice->wish;
    g_autofree char *address = g_strconcat("unix://", wish->socket_path, NULL);
    if (wish->protocol && strcmp(wish->protocol, "http") != 0)
        return fail_wish("protocol", "a unix socket has no other than http", error);
    return dkr_endpoint_parse(address, "config \"socketPath\"", &choice->endpoint, error) &&
           complete(choice->endpoint, wish, error);
}

/* Nothing taken, and no error, when the configuration names no engine. */
static bool take_wish(Choice *choice, GError **error)
{
    const DkrWish *wish = choice->wish;
    if (!!wish->host + !!wish->socket_path + !!wish->context > 1)
        return fail_wish(wish->context ? "context" : "socketPath",
                         "give one of \"host\", \"socketPath\" and \"context\"", error);
    if (!wish->host && !wish->socket_path) {
        if (wish->port || wish->protocol || wish->username)
            return fail_wish(wish->port       ? "port"
                             : wish->protocol ? "protocol"
                                              : "username",
                             "\"host\" is missing", error);
        return !wish->context || is_default_context(wish->context) ||
               take_context(choice, wish->context, "config \"context\"", error);
    }
    return wish->host ? take_host(choice, error) : take_socket(choice, error);
}

/* --------------------------------------------------------- environment and default */

static bool take_environment(Choice *choice, GError **error)
{
    const char *host = variable(choice, "DOCKER_HOST");
    const char *context = variable(choice, "DOCKER_CONTEXT");
    const char *container_host = variable(choice, "CONTAINER_HOST");
    if (host) {
        bool bare = !strstr(host, "://") && *host != '/';
        g_autofree char *address = g_strconcat(bare ? "tcp://" : "", host, NULL);
        return dkr_endpoint_parse(address, "DOCKER_HOST", &choice->endpoint, error);
    }
    if (context)
        return is_default_context(context) ||
               take_context(choice, context, "DOCKER_CONTEXT", error);
    if (container_host)
        return dkr_endpoint_parse(container_host, "CONTAINER_HOST", &choice->endpoint, error);
    return take_current_context(choice, error);
}

/* The engine of the machine, or one of the user's own where that is not for them. */
static bool take_default(Choice *choice, GError **error)
{
    static const char *const own[] = {"docker.sock", "podman/podman.sock"};
    const char *runtime = variable(choice, "XDG_RUNTIME_DIR");
    g_autofree char *path = NULL;
    for (gsize i = 0;
         access(DKR_DEFAULT_SOCKET, R_OK | W_OK) != 0 && runtime && !path && i < G_N_ELEMENTS(own);
         i++)
        path = dkr_context_file(runtime, own[i]);
    g_autofree char *address = g_strconcat("unix://", path ? path : DKR_DEFAULT_SOCKET, NULL);
    return dkr_endpoint_parse(address, path ? "XDG_RUNTIME_DIR" : "default", &choice->endpoint,
                              error);
}

/* ----------------------------------------------------------------------------- TLS */

static bool load_tls(Choice *choice, const DkrTlsSource *source, GError **error)
{
    return dkr_tls_load(source, &choice->endpoint->tls, error);
}

static bool load_wished_tls(Choice *choice, GError **error)
{
    const DkrWish *wish = choice->wish;
    return load_tls(
        choice,
        &(DkrTlsSource){.ca = wish->ca,
                        .ca_name = "config \"ca\"",
                        .cert = wish->cert,
                        .cert_name = "config \"cert\"",
                        .key = wish->key,
                        .key_text = wish->key_text,
                        .key_name = wish->key_text ? "config \"keySecret\"" : "config \"key\""},
        error);
}

static bool load_context_tls(Choice *choice, GError **error)
{
    const DkrContextEndpoint *context = choice->context;
    return load_tls(choice,
                    &(DkrTlsSource){.ca = context->ca,
                                    .ca_name = "ca.pem of the context",
                                    .cert = context->cert,
                                    .cert_name = "cert.pem of the context",
                                    .key = context->key,
                                    .key_name = "key.pem of the context",
                                    .skip_verify = context->skip_verify},
                    error);
}

/* The files of DOCKER_CERT_PATH, which without the variable need not be there. */
static bool load_environment_tls(Choice *choice, bool skip_verify, GError **error)
{
    const char *named = variable(choice, "DOCKER_CERT_PATH");
    g_autofree char *folder = named ? g_strdup(named) : docker_folder(choice);
    g_autofree char *ca = g_build_filename(folder, "ca.pem", NULL);
    g_autofree char *cert = dkr_context_file(folder, "cert.pem");
    g_autofree char *key = dkr_context_file(folder, "key.pem");
    bool has_ca = named || access(ca, F_OK) == 0;
    return load_tls(choice,
                    &(DkrTlsSource){.ca = has_ca ? ca : NULL,
                                    .ca_name = "DOCKER_CERT_PATH",
                                    .cert = cert,
                                    .cert_name = "cert.pem of DOCKER_CERT_PATH",
                                    .key = key,
                                    .key_name = "key.pem of DOCKER_CERT_PATH",
                                    .skip_verify = skip_verify},
                    error);
}

static bool fail_contradiction(const DkrEndpoint *endpoint, const char *what, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint",
                    "%s asks for TLS, which %s (%s) has not: use https:// or tcp://", what,
                    endpoint->address, endpoint->origin);
}

/* A context has its own, and the environment no part in it. */
static bool secure_context(Choice *choice, bool may, GError **error)
{
    const DkrContextEndpoint *context = choice->context;
    bool asks = context->ca || context->cert || context->key || context->skip_verify;
    if (asks && !may)
        return fail_contradiction(choice->endpoint, "the context", error);
    if (!asks && choice->endpoint->security != DKR_SECURITY_TLS)
        return true;
    return load_context_tls(choice, error);
}

/* For a host of configuration and environment alike, so that a wish for TLS is never met in clear
 * text, unless the configuration itself says http://. */
static bool secure(Choice *choice, GError **error)
{
    DkrEndpoint *endpoint = choice->endpoint;
    const DkrWish *wish = choice->wish;
    bool verify = variable(choice, "DOCKER_TLS_VERIFY");
    bool skip = !verify && variable(choice, "DOCKER_TLS");
    bool asked = verify || skip || variable(choice, "DOCKER_CERT_PATH");
    bool may = endpoint->via == DKR_VIA_TCP && endpoint->security != DKR_SECURITY_NONE;
    if (wish->ca || wish->cert || wish->key || wish->key_text)
        return may ? load_wished_tls(choice, error)
                   : fail_contradiction(endpoint, "a certificate or key of the config", error);
    if (endpoint->via != DKR_VIA_TCP)
        return true;
    if (choice->context)
        return secure_context(choice, may, error);
    if (!may)
        return !asked || wish->host ||
               fail_contradiction(endpoint, "DOCKER_TLS_VERIFY, DOCKER_TLS or DOCKER_CERT_PATH",
                                  error);
    if (asked)
        return load_environment_tls(choice, skip, error);
    if (endpoint->security == DKR_SECURITY_TLS || endpoint->port == TLS_PORT)
        return load_wished_tls(choice, error); /* the system's authorities, no certificate */
    return true;
}

/* ---------------------------------------------------------------------- all the rest */

static bool take_version(Choice *choice, GError **error)
{
    const char *wished = choice->wish->version;
    const char *version = wished ? wished : variable(choice, "DOCKER_API_VERSION");
    int minor = 0, end = 0;
    if (!version)
        return true;
    const char *digits = version + (*version == 'v');
    if (sscanf(digits, "1.%2d%n", &minor, &end) != 1 || digits[end] != '\0' ||
        minor < DKR_API_OLDEST || minor > DKR_API_NEWEST)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint",
                        "%s \"%.20s\": this provider speaks 1.%d to 1.%d",
                        wished ? "config \"version\"" : "DOCKER_API_VERSION", version,
                        DKR_API_OLDEST, DKR_API_NEWEST);
    choice->endpoint->api_minor = minor;
    return true;
}

static bool finish(Choice *choice, GError **error)
{
    DkrEndpoint *endpoint = choice->endpoint;
    const DkrWish *wish = choice->wish;
    if (wish->ssh_config && endpoint->via != DKR_VIA_SSH)
        return fail_wish("sshConfig", "the engine is not reached by ssh", error);
    if (endpoint->via == DKR_VIA_TCP && endpoint->port == 0)
        endpoint->port = endpoint->tls ? TLS_PORT : PLAIN_PORT;
    dkr_endpoint_name(endpoint);
    if (endpoint->via == DKR_VIA_SSH)
        endpoint->environment = g_strdupv(choice->environment);
    endpoint->ssh_config = g_strdup(wish->ssh_config);
    endpoint->headers = g_strdupv((char **)wish->headers);
    endpoint->limit_ms = wish->timeout_ms;
    return take_version(choice, error);
}

bool dkr_endpoint_choose(const DkrWish *wish, const char *const *environment,
                         DkrEndpoint **ret_endpoint, GError **error)
{
    g_auto(Choice) choice = {.wish = wish, .environment = (char **)environment};
    if (!take_wish(&choice, error))
        return false;
    if (!choice.endpoint && !wish->context && !take_environment(&choice, error))
        return false;
    if (!choice.endpoint && !take_default(&choice, error))
        return false;
    if (!secure(&choice, error) || !finish(&choice, error))
        return false;
    *ret_endpoint = g_steal_pointer(&choice.endpoint);
    return true;
}
