#include "glue/registry.h"

#include "engine/registry.h"
#include "glue/ask.h"

#include <jansson.h>
#include <string.h>

/* Takes the text out of the object, in which none of it stays. */
static SprSecret *take_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return NULL;
    SprSecret *secret = spr_secret_new(json_string_value(value), json_string_length(value));
    explicit_bzero((char *)json_string_value(value), json_string_length(value));
    return secret;
}

/* {"username", "password"} or {"identitytoken"}. */
bool glue_ask_login(const sprov_provider *provider, const sprov_callbacks *callbacks,
                    const char *registry, SprSecret **ret_user, SprSecret **ret_password)
{
    g_autoptr(SprSecret) answer =
        glue_ask_for(provider, callbacks->registry_login, callbacks->ctx, registry);
    if (!answer)
        return false;
    json_auto_t *login = json_loadb(spr_secret_data(answer), spr_secret_size(answer), 0, NULL);
    g_autoptr(SprSecret) user = take_member(login, "username");
    g_autoptr(SprSecret) password = take_member(login, "password");
    SprSecret *token = take_member(login, "identitytoken");
    if (!token && !password)
        return false;
    *ret_user = token ? NULL : g_steal_pointer(&user);
    *ret_password = token ? token : g_steal_pointer(&password);
    return true;
}

SprSecret *glue_registry_auth(void *ctx, const char *image)
{
    const GlueCall *gc = ctx;
    g_autofree char *registry = dkr_registry_of(image);
    g_autoptr(SprSecret) user = NULL;
    g_autoptr(SprSecret) password = NULL;
    if (!glue_ask_login(gc->provider, &gc->sandbox->callbacks, registry, &user, &password))
        return NULL;
    return dkr_registry_auth(registry, user, password);
}
