/* The extension sprov.templates/1. */
#include "glue/extensions.h"

#include "engine/images.h"
#include "template/identity.h"
#include "template/recipe.h"

#include <jansson.h>
#include <string.h>

#define CONTROL_LIMIT_MS (30 * 1000)

static sprov_status templates_describe(sprov_provider *provider, const char *definition,
                                       sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GError *failure = NULL;
    g_autofree char *json = NULL;
    if (!glue_check_result(error, sizeof *error, "error", &failure) ||
        !glue_check_pointer(provider, "provider", &failure) ||
        !glue_check_pointer(definition, "definition", &failure) ||
        !glue_check_pointer((const void *)emit, "emit", &failure) ||
        !dkr_template_describe(definition, &json, &failure))
        return glue_fail(error, failure);
    glue_emit(provider, emit, emit_ctx, json);
    return SPROV_OK;
}

static sprov_status templates_resolve_repository(sprov_provider *provider, const char *repository,
                                                 const sprov_callbacks *callbacks,
                                                 const sprov_call *call, sprov_text_fn emit,
                                                 void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    if (glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error))
        spr_fail(&gc.failure, SPR_E_UNSUPPORTED, "no-repositories",
                 "this version pins no repositories: clone in a runCmd step of the definition");
    return glue_end(&gc, false);
}

/* One object for each tag: an image can carry several. */
static void emit_image(GlueCall *gc, const json_t *image, sprov_text_fn emit, void *emit_ctx)
{
    json_t *tags = json_object_get(image, "RepoTags");
    size_t i;
    json_t *tag;
    json_array_foreach(tags, i, tag) {
        const char *id = json_string_value(tag);
        if (!id || !g_str_has_prefix(id, DKR_TEMPLATE_REPOSITORY ":"))
            continue;
        json_auto_t *out = json_pack("{s:s, s:O*, s:O*}", "templateId", id, "image",
                                     json_object_get(image, "Id"), "size",
                                     json_object_get(image, "Size"));
        char *text = out ? json_dumps(out, JSON_COMPACT) : NULL;
        if (text)
            glue_emit(gc->provider, emit, emit_ctx, text);
        free(text);
    }
}

static bool list_all(GlueCall *gc, sprov_text_fn emit, void *emit_ctx)
{
    json_auto_t *images = NULL;
    size_t i;
    json_t *image;
    if (!glue_check_pointer((const void *)emit, "emit", &gc->failure) ||
        !dkr_image_list(gc->provider->context.client, DKR_TEMPLATE_REPOSITORY, &gc->wait, &images,
                        &gc->failure))
        return false;
    json_array_foreach(images, i, image) {
        emit_image(gc, image, emit, emit_ctx);
    }
    return true;
}

static sprov_status templates_list(sprov_provider *provider, const sprov_call *call,
                                   sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) &&
              list_all(&gc, emit, emit_ctx);
    return glue_end(&gc, ok);
}

/* Nothing but a template's image may be removed by this way. */
static bool dispose(GlueCall *gc, const char *id)
{
    if (!glue_check_pointer(id, "id", &gc->failure))
        return false;
    if (!g_str_has_prefix(id, DKR_TEMPLATE_REPOSITORY ":"))
        return spr_fail(&gc->failure, SPR_E_INVALID_ARGUMENT, "no-template-id",
                        "\"%s\" is no template's id: those begin with " DKR_TEMPLATE_REPOSITORY
                        ":",
                        id);
    return dkr_image_remove(gc->provider->context.client, id, &gc->wait, &gc->failure);
}

static sprov_status templates_dispose(sprov_provider *provider, const char *id,
                                      const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) &&
              dispose(&gc, id);
    return glue_end(&gc, ok);
}

const sprov_ext_templates glue_templates = {
    .struct_size = sizeof(sprov_ext_templates),
    .describe = templates_describe,
    .resolve_repository = templates_resolve_repository,
    .list = templates_list,
    .dispose = templates_dispose,
};
