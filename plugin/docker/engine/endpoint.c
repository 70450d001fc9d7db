#include "engine/endpoint.h"

#include "base/error.h"

#include <string.h>
#include <sys/un.h>

#define UNIX_SCHEME "unix://"
#define PATH_MOST (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)

/* An address may carry a password: what stands before '@' is not repeated. */
static char *printable(const char *host)
{
    const char *at = strrchr(host, '@');
    const char *scheme = strstr(host, "://");
    if (!at)
        return g_strdup(host);
    return g_strdup_printf("%.*s***%s", scheme ? (int)(scheme + 3 - host) : 0, host, at);
}

static bool parse(const char *host, const char *origin, DkrEndpoint **ret, GError **error)
{
    g_autofree char *shown = printable(host);
    if (!g_str_has_prefix(host, UNIX_SCHEME))
        return spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-endpoint",
                        "%s \"%s\": this version reaches engines by unix sockets alone; write "
                        "unix:///path/to/docker.sock",
                        origin, shown);
    const char *path = host + strlen(UNIX_SCHEME);
    if (*path == '\0')
        path = DKR_DEFAULT_SOCKET;
    if (*path != '/')
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint",
                        "%s \"%s\": the socket's path must be absolute, as in unix:///%s", origin,
                        shown, path);
    if (strlen(path) > PATH_MOST)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-endpoint",
                        "%s \"%s\": a socket's path has at most %zu bytes; use a shorter one",
                        origin, shown, PATH_MOST);
    *ret = g_new0(DkrEndpoint, 1);
    (*ret)->unix_path = g_strdup(path);
    (*ret)->address = g_strdup_printf(UNIX_SCHEME "%s", path);
    (*ret)->origin = g_strdup(origin);
    return true;
}

bool dkr_endpoint_resolve(const char *config_host, const char *docker_host,
                          DkrEndpoint **ret_endpoint, GError **error)
{
    if (config_host && *config_host)
        return parse(config_host, "config \"host\"", ret_endpoint, error);
    if (docker_host && *docker_host)
        return parse(docker_host, "DOCKER_HOST", ret_endpoint, error);
    return parse(UNIX_SCHEME DKR_DEFAULT_SOCKET, "default", ret_endpoint, error);
}

DkrEndpoint *dkr_endpoint_copy(const DkrEndpoint *endpoint)
{
    DkrEndpoint *copy = g_new0(DkrEndpoint, 1);
    copy->unix_path = g_strdup(endpoint->unix_path);
    copy->address = g_strdup(endpoint->address);
    copy->origin = g_strdup(endpoint->origin);
    return copy;
}

void dkr_endpoint_free(DkrEndpoint *endpoint)
{
    if (!endpoint)
        return;
    g_free(endpoint->unix_path);
    g_free(endpoint->address);
    g_free(endpoint->origin);
    g_free(endpoint);
}
