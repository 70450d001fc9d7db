/* The extension sprov.templates/1. */
#include "glue/extensions.h"

#include "engine/images.h"
#include "glue/builder.h"
#include "glue/repository.h"
#include "options/json.h"
#include "sandbox/context.h"
#include "supervised/owner.h"
#include "template/buildengine.h"
#include "template/identity.h"
#include "template/recipe.h"

#include <jansson.h>
#include <string.h>

#define CONTROL_LIMIT_MS (30 * 1000)

/* A repository is described at the commit that it names. */
static bool describe(const char *definition, char **ret_json, GError **error)
{
    json_auto_t *repository = glue_repository_of(definition);
    g_autofree char *settled = NULL;
    if (repository && !glue_repository_describe(repository, &settled, error))
        return false;
    return dkr_template_describe(settled ? settled : definition, ret_json, error);
}

static sprov_status templates_describe(sprov_provider *provider, const char *definition,
                                       sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GError *failure = NULL;
    g_autofree char *json = NULL;
    if (!glue_check_result(error, sizeof *error, "error", &failure) ||
        !glue_check_pointer(provider, "provider", &failure) ||
        !glue_check_pointer(definition, "definition", &failure) ||
        !glue_check_pointer((const void *)emit, "emit", &failure) ||
        !describe(definition, &json, &failure))
        return glue_fail(error, failure);
    glue_emit(provider, emit, emit_ctx, json);
    return SPROV_OK;
}

static bool resolve(GlueCall *gc, const char *text, const sprov_callbacks *callbacks,
                    sprov_text_fn emit, void *emit_ctx)
{
    sprov_callbacks taken = {0};
    g_autofree char *definition = NULL;
    g_autoptr(SprSecret) token = NULL;
    if (!glue_check_pointer(text, "repository", &gc->failure) ||
        !glue_check_pointer((const void *)emit, "emit", &gc->failure) ||
        !glue_take_callbacks(&taken, callbacks, &gc->failure))
        return false;
    json_auto_t *repository = NULL;
    bool ok = dkr_json_parse_object(text, "repository", &repository, &gc->failure) &&
              glue_repository_resolve(gc, &taken, repository, &gc->wait, &definition, &token,
                                      &gc->failure);
    if (definition)
        glue_emit(gc->provider, emit, emit_ctx, definition);
    glue_done(gc->provider, taken.done, taken.ctx);
    return ok;
}

static sprov_status templates_resolve_repository(sprov_provider *provider, const char *repository,
                                                 const sprov_callbacks *callbacks,
                                                 const sprov_call *call, sprov_text_fn emit,
                                                 void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) &&
              resolve(&gc, repository, callbacks, emit, emit_ctx);
    return glue_end(&gc, ok);
}

/* Seconds since 1970. BuildKit gives an image the time of its newest layer, which may be that of
 * its base; the label has that of the build. */
static json_t *built_at(const json_t *image)
{
    const char *label =
        json_string_value(json_object_get(json_object_get(image, "Labels"), DKR_LABEL_CREATED));
    g_autoptr(GDateTime) then = label ? g_date_time_new_from_iso8601(label, NULL) : NULL;
    return then ? json_integer(g_date_time_to_unix(then))
                : json_incref(json_object_get(image, "Created"));
}

/* One object for each tag: an image can carry several. */
static void emit_image(GlueCall *gc, const json_t *image, sprov_text_fn emit, void *emit_ctx)
{
    json_t *tags = json_object_get(image, "RepoTags");
    size_t i;
    json_t *tag;
    json_array_foreach(tags, i, tag)
    {
        const char *id = json_string_value(tag);
        if (!id || !g_str_has_prefix(id, DKR_TEMPLATE_REPOSITORY ":"))
            continue;
        json_auto_t *out = json_pack("{s:s, s:O*, s:o*, s:O*}", "templateId", id, "image",
                                     json_object_get(image, "Id"), "created", built_at(image),
                                     "size", json_object_get(image, "Size"));
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
        !dkr_image_list(gc->provider->context->client, DKR_TEMPLATE_REPOSITORY, &gc->wait, &images,
                        &gc->failure))
        return false;
    json_array_foreach(images, i, image)
    {
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
                        "\"%s\" is no template's id: those begin with " DKR_TEMPLATE_REPOSITORY ":",
                        id);
    DkrClient *client = gc->provider->context->client;
    g_autoptr(GError) why = NULL;
    if (dkr_image_remove(client, id, &gc->wait, &why))
        return true;
    g_autofree char *users =
        spr_error_is(why, SPR_E_CONFLICT, NULL) ? dkr_template_users(client, id, &gc->wait) : NULL;
    if (users)
        return spr_fail(&gc->failure, SPR_E_CONFLICT, "template-in-use",
                        "template %s is used by %s: destroy them first", id, users);
    g_propagate_error(&gc->failure, g_steal_pointer(&why));
    return false;
}

static sprov_status templates_dispose(sprov_provider *provider, const char *id,
                                      const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) && dispose(&gc, id);
    return glue_end(&gc, ok);
}

const sprov_ext_templates glue_templates = {
    .struct_size = sizeof(sprov_ext_templates),
    .describe = templates_describe,
    .resolve_repository = templates_resolve_repository,
    .list = templates_list,
    .dispose = templates_dispose,
    .create_template = glue_builder_create,
    .keep_template = glue_builder_keep,
    .release_template = glue_builder_release,
    .from = glue_builder_from,
    .set_workdir = glue_builder_set_workdir,
    .set_envs = glue_builder_set_envs,
    .run_cmd = glue_builder_run_cmd,
    .run_with_secrets = glue_builder_run_with_secrets,
    .apt_install = glue_builder_apt_install,
    .pip_install = glue_builder_pip_install,
    .npm_install = glue_builder_npm_install,
    .definition = glue_builder_definition,
    .dockerfile = glue_builder_dockerfile,
    .template_id = glue_builder_template_id,
    .workdir = glue_builder_workdir,
    .secret_names = glue_builder_secret_names,
    .create_sandbox = glue_builder_create_sandbox,
};
