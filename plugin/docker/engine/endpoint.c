#include "engine/endpoint.h"

#include "base/error.h"

#include <string.h>
#include <sys/un.h>

/* An sshd begins to refuse when 10 are about to log in (its MaxStartups). */
#define LOGINS_MOST 5
#define URGENT_LOGINS_MOST 4
#define LOGIN_PATIENCE_MS 5000
#define UNIX_SCHEME "unix://"
#define PATH_MOST (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)
#define HOST_MOST 253
#define SAFE G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "._-"

/* An address that is being read, for messages. */
typedef struct {
    const char *origin;
    char *shown;
} Source;

/* An address may carry a password: what stands before '@' or in a query is not repeated. */
static char *printable(const char *host)
{
    g_autofree char *text = g_utf8_make_valid(host, -1);
    char *query = strchr(text, '?');
    if (query && g_ascii_strncasecmp(text, UNIX_SCHEME, strlen(UNIX_SCHEME)) != 0)
        query[1] = '\0';
    const char *at = strrchr(text, '@');
    const char *scheme = strstr(text, "://");
    if (!at)
        return g_steal_pointer(&text);
    return g_strdup_printf("%.*s***%s", scheme && scheme < at ? (int)(scheme + 3 - text) : 0, text,
                           at);
}

static bool fail(const Source *source, const char *why, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint", "%s \"%s\": %s",
                    source->origin, source->shown, why);
}

void dkr_endpoint_name(DkrEndpoint *endpoint)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *path = endpoint->path ? endpoint->path : "";
    bool brackets = endpoint->host && strchr(endpoint->host, ':');
    g_free(endpoint->address);
    if (endpoint->via == DKR_VIA_UNIX) {
        endpoint->address = g_strdup_printf(UNIX_SCHEME "%s", path);
        return;
    }
    bool secure = endpoint->tls || endpoint->security == DKR_SECURITY_TLS;
    g_string_append(text, endpoint->via == DKR_VIA_SSH ? "ssh://" : secure ? "https://" : "tcp://");
    if (endpoint->user)
        g_string_append_printf(text, "%s@", endpoint->user);
    g_string_append_printf(text, brackets ? "[%s]" : "%s", endpoint->host);
    if (endpoint->port)
        g_string_append_printf(text, ":%d", endpoint->port);
    g_string_append_printf(text, "%s%s", path, endpoint->base);
    endpoint->address = g_string_free(g_steal_pointer(&text), FALSE);
}

char *dkr_endpoint_authority(const DkrEndpoint *endpoint)
{
    if (endpoint->via != DKR_VIA_TCP)
        return g_strdup("docker");
    return g_strdup_printf(strchr(endpoint->host, ':') ? "[%s]:%d" : "%s:%d", endpoint->host,
                           endpoint->port);
}

static bool parse_unix(DkrEndpoint *endpoint, const char *path, const Source *source,
                       GError **error)
{
    if (*path == '\0')
        path = DKR_DEFAULT_SOCKET;
    if (*path != '/')
        return fail(source, "the socket's path must be absolute, as in unix:///run/docker.sock",
                    error);
    if (strlen(path) > PATH_MOST) {
        g_autofree char *why =
            g_strdup_printf("a socket's path has at most %zu bytes; use a shorter one", PATH_MOST);
        return fail(source, why, error);
    }
    endpoint->path = g_strdup(path);
    return true;
}

static bool parse_port(DkrEndpoint *endpoint, const char *text, const Source *source,
                       GError **error)
{
    if (strspn(text, G_CSET_DIGITS) == strlen(text) && strlen(text) <= 5)
        endpoint->port = (int)g_ascii_strtoll(text, NULL, 10);
    if (endpoint->port < 1 || endpoint->port > 65535)
        return fail(source, "the port must be a number from 1 to 65535", error);
    return true;
}

/* "name:port", "[address]:port"; text is cut up. */
static bool parse_host_port(DkrEndpoint *endpoint, char *text, const Source *source, GError **error)
{
    char *end = *text == '[' ? strchr(text, ']') : NULL;
    char *port = end ? end + 1 : strchr(text, ':');
    const char *allowed = end ? G_CSET_DIGITS "abcdefABCDEF:.%" SAFE : SAFE;
    if (port && *port == ':')
        *port++ = '\0';
    else if (port && *port)
        return fail(source, "write an IPv6 address in brackets, as in tcp://[::1]:2375", error);
    else
        port = NULL;
    if (end) {
        *end = '\0';
        text++;
    }
    if (*text == '\0')
        return fail(source, "the host is missing, as in tcp://10.0.0.2:2375 or ssh://me@far",
                    error);
    if (*text == '-' || strlen(text) > HOST_MOST || strspn(text, allowed) != strlen(text) ||
        (end && !strchr(text, ':')))
        return fail(source, "there is no such host name", error);
    endpoint->host = g_strdup(text);
    return !port || parse_port(endpoint, port, source, error);
}

/* What ssh is given goes through a shell on the other side, and must look like no option. */
static bool parse_user(DkrEndpoint *endpoint, const char *user, const Source *source,
                       GError **error)
{
    if (strchr(user, ':'))
        return fail(source, "a password does not belong in an address; use a key", error);
    if (endpoint->via != DKR_VIA_SSH)
        return fail(source, "only ssh:// takes a user", error);
    if (*user == '\0' || *user == '-' || strspn(user, SAFE "+@\\") != strlen(user))
        return fail(source, "there is no such user name", error);
    endpoint->user = g_strdup(user);
    return true;
}

static bool take_path(DkrEndpoint *endpoint, const char *path, const Source *source, GError **error)
{
    if (strspn(path, SAFE "/+@%~") != strlen(path))
        return fail(source, "its path may hold letters, digits and ._-/+@%~", error);
    if (endpoint->via == DKR_VIA_SSH) {
        endpoint->path = path[1] ? g_strdup(path) : NULL;
        return true;
    }
    gsize length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    endpoint->base = g_strndup(path, length);
    return true;
}

/* [user@]host[:port][/path] */
static bool parse_net(DkrEndpoint *endpoint, const char *rest, const Source *source, GError **error)
{
    const char *slash = strchr(rest, '/');
    if (strpbrk(rest, "?#"))
        return fail(source,
                    "an address has no query and no fragment: leave out what begins with "
                    "'?' or '#'",
                    error);
    g_autofree char *authority = slash ? g_strndup(rest, (gsize)(slash - rest)) : g_strdup(rest);
    char *at = strrchr(authority, '@');
    if (at) {
        *at = '\0';
        if (!parse_user(endpoint, authority, source, error))
            return false;
    }
    return parse_host_port(endpoint, at ? at + 1 : authority, source, error) &&
           (!slash || take_path(endpoint, slash, source, error));
}

typedef struct {
    const char *scheme;
    bool (*parse)(DkrEndpoint *, const char *, const Source *, GError **);
    DkrTransport via;
    DkrSecurity security;
} Scheme;

static const Scheme schemes[] = {
    {UNIX_SCHEME, parse_unix, DKR_VIA_UNIX, DKR_SECURITY_NONE},
    {"tcp://", parse_net, DKR_VIA_TCP, DKR_SECURITY_OPEN},
    {"http://", parse_net, DKR_VIA_TCP, DKR_SECURITY_NONE},
    {"https://", parse_net, DKR_VIA_TCP, DKR_SECURITY_TLS},
    {"ssh://", parse_net, DKR_VIA_SSH, DKR_SECURITY_NONE},
};

static const Scheme *find_scheme(const char *host)
{
    for (gsize i = 0; i < G_N_ELEMENTS(schemes); i++) {
        if (g_ascii_strncasecmp(host, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
            return &schemes[i];
    }
    return NULL;
}

/* A kill is not kept waiting by a crowd of calls, only by other kills. */
static void make_gates(DkrEndpoint *endpoint)
{
    endpoint->logins[false] = spr_gate_new(LOGINS_MOST, LOGIN_PATIENCE_MS);
    endpoint->logins[true] = spr_gate_new(URGENT_LOGINS_MOST, LOGIN_PATIENCE_MS);
}

bool dkr_endpoint_parse(const char *host, const char *origin, DkrEndpoint **ret_endpoint,
                        GError **error)
{
    g_autofree char *shown = printable(host);
    Source source = {origin, shown};
    if (!g_utf8_validate(host, -1, NULL))
        return fail(&source, "it is not UTF-8", error);
    const Scheme *scheme = find_scheme(host);
    if (!scheme)
        return spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-endpoint",
                        "%s \"%s\": an engine is reached by unix:///path/to/docker.sock, "
                        "tcp://host:port, https://host:port or ssh://user@host",
                        origin, shown);
    g_autoptr(DkrEndpoint) endpoint = g_new0(DkrEndpoint, 1);
    endpoint->via = scheme->via;
    endpoint->security = scheme->security;
    endpoint->origin = g_strdup(origin);
    if (!scheme->parse(endpoint, host + strlen(scheme->scheme), &source, error))
        return false;
    if (!endpoint->base)
        endpoint->base = g_strdup("");
    if (endpoint->via == DKR_VIA_SSH)
        make_gates(endpoint);
    dkr_endpoint_name(endpoint);
    *ret_endpoint = g_steal_pointer(&endpoint);
    return true;
}

void dkr_endpoint_free(DkrEndpoint *endpoint)
{
    if (!endpoint)
        return;
    g_free(endpoint->path);
    g_free(endpoint->user);
    g_free(endpoint->host);
    g_free(endpoint->base);
    g_free(endpoint->address);
    g_free(endpoint->origin);
    dkr_tls_free(endpoint->tls);
    g_strfreev(endpoint->environment);
    g_free(endpoint->ssh_config);
    g_strfreev(endpoint->headers);
    for (gsize i = 0; i < G_N_ELEMENTS(endpoint->logins); i++)
        spr_gate_free(endpoint->logins[i]);
    g_free(endpoint);
}
