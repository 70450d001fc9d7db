#include "sandbox/image.h"

#include "base/error.h"
#include "engine/images.h"
#include "engine/registry.h"
#include "sandbox/platform.h"

#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

/* *ret_image stays NULL when the engine has none. */
static bool look(const DkrContext *context, const char *image, const SprWait *wait,
                 json_t **ret_image, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (dkr_image_inspect(context->client, image, wait, ret_image, &why) ||
        spr_error_is(why, SPR_E_NOT_FOUND, NULL))
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool fail_missing(const DkrSandboxOptions *options, const char *image, GError **error)
{
    if (!options->image)
        return spr_fail(error, SPR_E_NOT_FOUND, "image-not-found",
                        "the template's image \"%s\" is not on the engine: build it again", image);
    return spr_fail(error, SPR_E_NOT_FOUND, "image-not-found",
                    "the image \"%s\"%s%s is not on the engine, and pullPolicy is \"never\": build "
                    "or load it",
                    image, options->platform ? " for " : "",
                    options->platform ? options->platform : "");
}

static bool fail_platform(const char *image, const char *platform, const json_t *found,
                          GError **error)
{
    return spr_fail(error, SPR_E_NOT_FOUND, "wrong-platform",
                    "platform: the image \"%s\" is for %s/%s, not for %s: take one that is for "
                    "both, or leave platform out",
                    image, text(found, "Os"), text(found, "Architecture"), platform);
}

bool dkr_image_ensure(const DkrContext *context, const DkrSandboxOptions *options,
                      const char *image, const DkrStartHooks *hooks, const SprWait *wait,
                      json_t **ret_image, GError **error)
{
    const char *policy = options->image ? options->pull_policy : "never";
    const char *platform = options->platform;
    json_auto_t *found = NULL;
    if (strcmp(policy, "always") != 0 && !look(context, image, wait, &found, error))
        return false;
    if (!found || !dkr_platform_fits(found, platform)) {
        if (strcmp(policy, "never") == 0)
            return fail_missing(options, image, error);
        spr_log(&context->log, SPR_LOG_INFO, "image", "pulling %s", image);
        g_clear_pointer(&found, json_decref);
        g_autoptr(SprSecret) auth = dkr_registry_auth(image, hooks->login, hooks->ctx);
        if (!dkr_image_pull(context->client, image, platform, auth, wait, hooks->progress,
                            hooks->ctx, error)) {
            if (platform)
                g_prefix_error(error, "platform \"%s\": ", platform);
            return false;
        }
        if (!dkr_image_inspect(context->client, image, wait, &found, error))
            return false;
    }
    if (!dkr_platform_fits(found, platform))
        return fail_platform(image, platform, found, error);
    *ret_image = json_incref(found);
    return true;
}
