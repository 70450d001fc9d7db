#include "engine/context.h"

#include "base/error.h"
#include "base/file.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define FILE_MOST (4u << 20)
#define NAME_CHARACTERS G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.+-"

void dkr_context_endpoint_free(DkrContextEndpoint *endpoint)
{
    if (!endpoint)
        return;
    g_free(endpoint->host);
    g_free(endpoint->ca);
    g_free(endpoint->cert);
    g_free(endpoint->key);
    g_free(endpoint);
}

char *dkr_context_file(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return access(path, F_OK) == 0 ? g_steal_pointer(&path) : NULL;
}

/* config.json holds logins, too: nothing of it is repeated, and it is wiped. */
static bool read_json(const char *path, json_t **ret_json, GError **error)
{
    char *text;
    gsize size;
    if (!spr_file_read(path, FILE_MOST, &text, &size, error))
        return false;
    json_error_t why;
    json_t *json = json_loadb(text, size, 0, &why);
    spr_file_wipe_free(text, size);
    if (!json_is_object(json)) {
        json_decref(json);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-docker-config",
                        "%s is no JSON object", path);
    }
    *ret_json = json;
    return true;
}

bool dkr_context_current(const char *folder, char **ret_name, GError **error)
{
    g_autofree char *path = g_build_filename(folder, "config.json", NULL);
    g_autoptr(GError) why = NULL;
    json_auto_t *json = NULL;
    *ret_name = NULL;
    if (!read_json(path, &json, &why)) {
        if (why->code == SPR_E_NOT_FOUND || why->code == SPR_E_DENIED)
            return true;
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-docker-config",
                        "%s: mend it, or name another folder in DOCKER_CONFIG, or an engine in "
                        "DOCKER_HOST",
                        why->message);
    }
    const json_t *current = json_object_get(json, "currentContext");
    const char *name = json_string_value(current);
    if (!json_is_object(json) || (current && !name))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-context",
                        "%s: currentContext must be the name of a context: mend it, or set "
                        "DOCKER_CONTEXT",
                        path);
    *ret_name = name && *name ? g_strdup(name) : NULL;
    return true;
}

static bool fail_none(const char *name, const char *why, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-context", "context \"%s\": %s", name, why);
}

bool dkr_context_read(const char *folder, const char *name, DkrContextEndpoint **ret_endpoint,
                      GError **error)
{
    g_autoptr(GError) why = NULL;
    json_auto_t *json = NULL;
    if (*name == '\0' || strspn(name, NAME_CHARACTERS) != strlen(name))
        return fail_none(name, "there is no such name", error);
    g_autofree char *id = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
    g_autofree char *meta = g_build_filename(folder, "contexts", "meta", id, "meta.json", NULL);
    g_autofree char *tls = g_build_filename(folder, "contexts", "tls", id, "docker", NULL);
    if (!read_json(meta, &json, &why)) {
        bool missing = why->code == SPR_E_NOT_FOUND;
        g_autofree char *text =
            missing ? g_strdup_printf("%s has none of this name; \"docker context ls\" lists them",
                                      folder)
                    : g_strdup(why->message);
        return fail_none(name, text, error);
    }
    json_t *docker = json_object_get(json_object_get(json, "Endpoints"), "docker");
    const char *host = json_string_value(json_object_get(docker, "Host"));
    if (!host || !*host)
        return fail_none(name, "it names no docker endpoint", error);
    DkrContextEndpoint *endpoint = g_new0(DkrContextEndpoint, 1);
    endpoint->host = g_strdup(host);
    endpoint->skip_verify = json_is_true(json_object_get(docker, "SkipTLSVerify"));
    endpoint->ca = dkr_context_file(tls, "ca.pem");
    endpoint->cert = dkr_context_file(tls, "cert.pem");
    endpoint->key = dkr_context_file(tls, "key.pem");
    *ret_endpoint = endpoint;
    return true;
}
