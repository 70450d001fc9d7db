#include "engine/registry.h"

#include <jansson.h>
#include <string.h>

char *dkr_registry_of(const char *image)
{
    const char *slash = strchr(image, '/');
    g_autofree char *first = g_strndup(image, slash ? (gsize)(slash - image) : 0);
    bool is_registry = strpbrk(first, ".:") || strcmp(first, "localhost") == 0;
    return g_strdup(is_registry ? first : "docker.io");
}

static json_t *text_of(const SprSecret *secret)
{
    return secret ? json_stringn(spr_secret_data(secret), spr_secret_size(secret)) : NULL;
}

/* Jansson frees texts without overwriting them. */
static void wipe(json_t *object)
{
    const char *key;
    json_t *text;
    json_object_foreach(object, key, text)
    {
        explicit_bzero((char *)json_string_value(text), json_string_length(text));
    }
    json_decref(object);
}

/* Base64 for URLs, with its padding. */
static SprSecret *encode(const char *text)
{
    char *base64 = g_base64_encode((const guchar *)text, strlen(text));
    gsize size = strlen(base64);
    for (gsize i = 0; i < size; i++)
        base64[i] = base64[i] == '+' ? '-' : base64[i] == '/' ? '_' : base64[i];
    SprSecret *encoded = spr_secret_new(base64, size);
    spr_wipe_free(base64, size);
    return encoded;
}

SprSecret *dkr_registry_auth(const char *registry, const SprSecret *user, const SprSecret *password)
{
    json_t *object =
        json_pack("{s:s, s:o*, s:o*}", "serveraddress", registry, "username", text_of(user),
                  user ? "password" : "identitytoken", text_of(password));
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    SprSecret *encoded = text ? encode(text) : NULL;
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    if (object)
        wipe(object);
    return encoded;
}
