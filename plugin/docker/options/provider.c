#include "options/provider.h"

#include "base/error.h"
#include "options/json.h"

#include <string.h>
#include <sys/un.h>

#define UNIX_SCHEME "unix://"
#define MAX_SOCKET_PATH (sizeof((struct sockaddr_un){0}.sun_path) - 1)

void dkr_provider_config_free(DkrProviderConfig *config)
{
    if (!config)
        return;
    g_free(config->socket_path);
    g_free(config);
}

/* An address may carry a password: what stands before '@' is not repeated. */
static char *printable_host(const char *host, const char *scheme_end)
{
    const char *at = strrchr(host, '@');
    if (!at)
        return dkr_json_quote(host);
    g_autofree char *text = g_strdup_printf("%.*s://***%s", (int)(scheme_end - host), host, at);
    return dkr_json_quote(text);
}

bool dkr_provider_host_parse(const char *host, const char *origin, char **ret_socket_path,
                             GError **error)
{
    const char *scheme_end = strstr(host, "://");
    if (!scheme_end)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                        "%s: expected an address like \"unix:///var/run/docker.sock\"", origin);
    g_autofree char *quoted = printable_host(host, scheme_end);
    if (!g_str_has_prefix(host, UNIX_SCHEME))
        return spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-host",
                        "%s: %s is not supported; this version reaches engines through unix "
                        "sockets (\"unix:///path\")",
                        origin, quoted);
    const char *path = host + strlen(UNIX_SCHEME);
    if (path[0] != '/')
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                        "%s: %s must name an absolute path, as in \"unix:///var/run/docker.sock\"",
                        origin, quoted);
    if (strlen(path) > MAX_SOCKET_PATH)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                        "%s: the socket's path is %zu bytes long, a unix socket has room for %zu",
                        origin, strlen(path), MAX_SOCKET_PATH);
    *ret_socket_path = g_strdup(path);
    return true;
}

static bool read_host(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    DkrProviderConfig *config = target;
    if (!json_is_string(value))
        return dkr_json_fail_type(path, value, "a string", error);
    return dkr_provider_host_parse(json_string_value(value), field->key, &config->socket_path,
                                   error);
}

static const DkrJsonField config_fields[] = {
    {"host", read_host},
    {NULL},
};

bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "provider config", &object, error))
        return false;
    g_autoptr(DkrProviderConfig) config = g_new0(DkrProviderConfig, 1);
    if (!dkr_json_read_object(object, NULL, config_fields, config, error))
        return false;
    *ret_config = g_steal_pointer(&config);
    return true;
}
