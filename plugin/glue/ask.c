#include "glue/ask.h"

#include <jansson.h>

/* The last answer counts. */
static void take(void *ctx, const char *text, size_t size)
{
    SprSecret **answer = ctx;
    spr_secret_free(*answer);
    *answer = spr_secret_new(text, size);
}

static SprSecret *settle(int32_t rc, SprSecret *answer)
{
    if (rc == 0)
        return answer;
    spr_secret_free(answer);
    return NULL;
}

SprSecret *glue_ask(const sprov_provider *provider, GlueQuestion question, void *ctx)
{
    SprSecret *answer = NULL;
    if (!question)
        return NULL;
    const sprov_provider *before = glue_enter_callback(provider);
    int32_t rc = question(ctx, take, &answer);
    glue_leave_callback(before);
    return settle(rc, answer);
}

SprSecret *glue_ask_for(const sprov_provider *provider, GlueQuestionOf question, void *ctx,
                        const char *what)
{
    SprSecret *answer = NULL;
    if (!question)
        return NULL;
    const sprov_provider *before = glue_enter_callback(provider);
    int32_t rc = question(ctx, what, take, &answer);
    glue_leave_callback(before);
    return settle(rc, answer);
}

static SprSecret *member_secret(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value)
               ? spr_secret_new(json_string_value(value), json_string_length(value))
               : NULL;
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
    SprSecret *token = member_secret(login, "identitytoken");
    SprSecret *password = token ? token : member_secret(login, "password");
    if (!password)
        return false;
    *ret_user = token ? NULL : member_secret(login, "username");
    *ret_password = password;
    return true;
}
