/* build_template() of the core vtable, and what a start does with the option "template". */
#include "glue/template.h"

#include "base/text.h"
#include "engine/images.h"
#include "options/json.h"
#include "sandbox/owner.h"
#include "template/buildengine.h"

#include <string.h>

/* --------------------------------------------------------------------------- building */

static json_t *labels(const DkrContext *context)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *created = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    return json_pack("{s:s, s:s, s:s}", "sprov.version", context->version, "sprov.created",
                     created, "sprov.owner", dkr_owner());
}

bool glue_build(GlueCall *gc, const char *definition, bool force, const SprWait *wait,
                char **ret_id, DkrTemplateImage **ret_image, GError **error)
{
    g_autoptr(DkrTemplate) parsed = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    if (!dkr_template_parse(definition, &parsed, error) ||
        !dkr_recipe_new(parsed, &recipe, error))
        return false;
    if (ret_id)
        *ret_id = g_strdup(recipe->template_id);
    json_auto_t *with = labels(&gc->provider->context);
    DkrBuildRequest request = {
        .force = force, .labels = with, .on_progress = glue_on_progress, .progress_ctx = gc};
    return dkr_template_build_on(gc->provider->context.client, recipe, &request, wait, ret_image,
                                 error);
}

/* There are none yet; what is not known is refused. */
static bool check_options(const char *options, GError **error)
{
    static const DkrJsonField fields[] = {{NULL}};
    json_auto_t *object = NULL;
    return dkr_json_parse_object(options, "build options", &object, error) &&
           dkr_json_read_object(object, NULL, fields, NULL, error);
}

typedef struct {
    sprov_template_request request;
    sprov_callbacks callbacks;
} Build;

static bool take_request(Build *build, const sprov_template_request *from, GError **error)
{
    sprov_template_request *r = &build->request;
    return glue_take_request(r, sizeof *r, from, "request", error) &&
           glue_check_pointer(r->definition, "request->definition", error) &&
           check_options(r->options, error) &&
           glue_take_callbacks(&build->callbacks, r->callbacks, error);
}

static void write_result(sprov_template_result *result, const char *id,
                         const DkrTemplateImage *image)
{
    if (!result || !id)
        return;
    result->flags = image && image->cached ? SPROV_TEMPLATE_CACHED : 0;
    spr_copy_text(result->id, sizeof result->id, id);
    spr_copy_text(result->image, sizeof result->image, image ? image->id : "");
}

static bool run(GlueCall *gc, Build *build, sprov_template_result *result)
{
    g_autofree char *id = NULL;
    g_autoptr(DkrTemplateImage) image = NULL;
    bool ok = glue_build(gc, build->request.definition, build->request.force != 0, &gc->wait, &id,
                         &image, &gc->failure);
    write_result(result, id, image);
    glue_done(gc->provider, build->callbacks.done, build->callbacks.ctx);
    return ok;
}

sprov_status glue_build_template(sprov_provider *provider, const sprov_template_request *request,
                                 const sprov_call *call, sprov_template_result *result,
                                 sprov_error *error)
{
    GlueCall gc;
    Build build = {0};
    bool ok = glue_begin_provider(&gc, provider, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              take_request(&build, request, &gc.failure) && run(&gc, &build, result);
    return glue_end(&gc, ok);
}

/* -------------------------------------------------------------------------- for a start */

static void take_text(void *ctx, const char *text, size_t size)
{
    char **into = ctx;
    g_free(*into);
    *into = g_strndup(text, size);
}

static bool ask_definition(const GlueCall *gc, char **ret_definition, GError **error)
{
    const sprov_sandbox *sandbox = gc->sandbox;
    char *definition = NULL;
    int32_t rc = 1;
    if (sandbox->callbacks.template_definition) {
        const sprov_provider *before = glue_enter_callback(gc->provider);
        rc = sandbox->callbacks.template_definition(sandbox->callbacks.ctx, take_text,
                                                    &definition);
        glue_leave_callback(before);
    }
    if (rc == 0 && definition) {
        *ret_definition = definition;
        return true;
    }
    g_free(definition);
    return spr_fail(error, SPR_E_REFUSED, "no-template",
                    "template: the host's callback gave no definition");
}

/* The id of one that was built before. */
static bool find_built(const GlueCall *gc, const char *id, const SprWait *wait, char **ret_workdir,
                       GError **error)
{
    json_auto_t *image = NULL;
    if (!dkr_image_inspect(gc->provider->context.client, id, wait, &image, error)) {
        g_prefix_error(error, "template \"%s\": build it first: ", id);
        return false;
    }
    *ret_workdir = g_strdup(json_string_value(
        json_object_get(json_object_get(image, "Config"), "WorkingDir")));
    return true;
}

static bool build_for_start(GlueCall *gc, const char *definition, const SprWait *wait,
                            char **ret_image, char **ret_workdir, GError **error)
{
    g_autofree char *id = NULL;
    g_autoptr(DkrTemplateImage) image = NULL;
    if (!glue_build(gc, definition, false, wait, &id, &image, error)) {
        if (id)
            g_prefix_error(error, "template %s: ", id);
        return false;
    }
    *ret_workdir = g_strdup(image->working_dir);
    *ret_image = g_steal_pointer(&id);
    return true;
}

bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error)
{
    GlueCall *gc = ctx;
    g_autofree char *definition = NULL;
    bool ok;
    if (options->template_id && strcmp(options->template_id, DKR_TEMPLATE_FROM_CALLBACK) != 0) {
        *ret_image = g_strdup(options->template_id);
        ok = find_built(gc, options->template_id, wait, ret_workdir, error);
    } else {
        ok = (options->template_json || ask_definition(gc, &definition, error)) &&
             build_for_start(gc, options->template_json ? options->template_json : definition,
                             wait, ret_image, ret_workdir, error);
    }
    if (*ret_workdir && **ret_workdir == '\0')
        g_clear_pointer(ret_workdir, g_free);
    return ok;
}
