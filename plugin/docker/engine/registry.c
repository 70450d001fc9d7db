#include "engine/registry.h"

#include <jansson.h>
#include <string.h>

#define HUB "docker.io"
#define HUB_ADDRESS "https://index.docker.io/v1/" /* as engines call it */

/* The first part of a name is a registry's when it could be no user's. */
char *dkr_registry_of(const char *image)
{
    const char *slash = strchr(image, '/');
    g_autofree char *first = slash ? g_strndup(image, (gsize)(slash - image)) : g_strdup("");
    bool is_host = strpbrk(first, ".:") || strcmp(first, "localhost") == 0;
    bool is_hub = !is_host || strcmp(first, "index." HUB) == 0;
    return is_hub ? g_strdup(HUB) : g_steal_pointer(&first);
}

static json_t *text_of(const SprSecret *secret)
{
    return json_stringn(spr_secret_data(secret), spr_secret_size(secret));
}

static json_t *login_object(const char *registry, const SprSecret *user, const SprSecret *password)
{
    const char *address = strcmp(registry, HUB) == 0 ? HUB_ADDRESS : registry;
    if (!user)
        return json_pack("{s:o*, s:s}", "identitytoken", text_of(password), "serveraddress",
                         address);
    return json_pack("{s:o*, s:o*, s:s}", "username", text_of(user), "password", text_of(password),
                     "serveraddress", address);
}

/* Engines want base64 as URLs have it. */
static SprSecret *encode(char *json)
{
    gsize size = strlen(json);
    char *text = g_base64_encode((const guchar *)json, size);
    SprSecret *encoded =
        spr_secret_new(g_strdelimit(g_strdelimit(text, "+", '-'), "/", '_'), strlen(text));
    spr_wipe_free(text, strlen(text));
    return encoded;
}

SprSecret *dkr_registry_auth(const char *image, DkrLoginFn login, void *ctx)
{
    g_autofree char *registry = dkr_registry_of(image);
    g_autoptr(SprSecret) user = NULL;
    g_autoptr(SprSecret) password = NULL;
    if (!login || !login(ctx, registry, &user, &password) || !password)
        return NULL;
    json_auto_t *object = login_object(registry, user, password);
    char *json = object ? json_dumps(object, JSON_COMPACT) : NULL;
    SprSecret *auth = json ? encode(json) : NULL;
    if (json)
        explicit_bzero(json, strlen(json));
    free(json);
    return auth;
}
