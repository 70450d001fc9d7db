/* build_template() of the core vtable, and what a start does with the option "template". */
#include "glue/template.h"

#include "base/text.h"
#include "engine/images.h"
#include "glue/ask.h"
#include "glue/repository.h"
#include "supervised/owner.h"
#include "template/buildengine.h"
#include "template/repository.h"

#include <string.h>

/* --------------------------------------------------------------------------- building */

/* What a build may ask of the host, under one name for all who would answer the same. */
typedef struct {
    GlueCall *gc;
    const sprov_callbacks *callbacks;
    SprSecret *token; /* of a repository, or NULL */
    char *name;
} Host;

static void host_clear(Host *host)
{
    spr_secret_free(host->token);
    g_free(host->name);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Host, host_clear)

static bool give_secret(void *ctx, const char *name, SprSecret **ret_value)
{
    const Host *host = ctx;
    const sprov_callbacks *cb = host->callbacks;
    SprSecret *value;
    if (host->token && strcmp(name, DKR_REPOSITORY_SECRET) == 0)
        value = spr_secret_new(spr_secret_data(host->token), spr_secret_size(host->token));
    else
        value = glue_ask_for(host->gc->provider, cb->secret, cb->ctx, name);
    if (value)
        *ret_value = value;
    return value != NULL;
}

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    const Host *host = ctx;
    bool is_hub = strcmp(registry, "registry-1.docker.io") == 0;
    return glue_ask_login(host->gc->provider, host->callbacks, is_hub ? "docker.io" : registry,
                          ret_user, ret_password);
}

static DkrBuildHost host_of(Host *host)
{
    const sprov_callbacks *cb = host->callbacks;
    host->name =
        g_strdup_printf("%p %p %p", cb->ctx, (void *)cb->secret, (void *)cb->registry_login);
    return (DkrBuildHost){.name = host->name,
                          .ctx = host,
                          .secret = give_secret,
                          .login = cb->registry_login ? give_login : NULL};
}

/* The definition itself, or that of a repository's head; NULL when there is no template. */
static bool settle_definition(Host *host, const char *definition, const SprWait *wait,
                              char **ret_definition, GError **error)
{
    json_auto_t *repository = glue_repository_of(definition);
    if (repository)
        return glue_repository_resolve(host->gc, host->callbacks, repository, wait, ret_definition,
                                       &host->token, error);
    *ret_definition = g_strdup(definition);
    return true;
}

bool glue_build(GlueCall *gc, const sprov_callbacks *callbacks, const GlueBuild *build,
                const SprWait *wait, char **ret_id, DkrTemplateImage **ret_image, GError **error)
{
    g_auto(Host) host = {.gc = gc, .callbacks = callbacks};
    g_autofree char *definition = NULL;
    g_autoptr(DkrTemplate) parsed = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    const DkrBuildOptions none = {0}, *options = build->options ? build->options : &none;
    if (!settle_definition(&host, build->definition, wait, &definition, error))
        return false;
    if (!definition)
        return true;
    if (!dkr_template_parse(definition, &parsed, error) ||
        !dkr_recipe_new_for(parsed, options->platform, options->cache_scope, &recipe, error))
        return false;
    *ret_id = g_strdup(recipe->template_id);
    json_auto_t *with = dkr_owner_labels(glue_context(gc)->version);
    DkrBuildRequest request = {.force = build->force,
                               .pull = options->pull.value,
                               .network = options->network,
                               .host = host_of(&host),
                               .log = &glue_context(gc)->log,
                               .labels = with,
                               .on_progress = glue_on_progress,
                               .progress_ctx = gc};
    return dkr_template_build_on(glue_context(gc)->client, recipe, &request, wait, ret_image,
                                 error);
}

typedef struct {
    sprov_template_request request;
    sprov_callbacks callbacks;
    DkrBuildOptions *options;
} Build;

static bool take_request(Build *build, const sprov_template_request *from, GError **error)
{
    sprov_template_request *r = &build->request;
    return glue_take_request(r, sizeof *r, from, "request", error) &&
           glue_check_pointer(r->definition, "request->definition", error) &&
           dkr_build_options_parse(r->options, &build->options, error) &&
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
    const GlueBuild what = {.definition = build->request.definition,
                            .options = build->options,
                            .force = build->request.force != 0};
    bool ok = glue_build(gc, &build->callbacks, &what, &gc->wait, &id, &image, &gc->failure);
    if (ok && !image)
        ok = spr_fail(&gc->failure, SPR_E_NOT_FOUND, "no-repository-access",
                      "there is no template: the host has no repository_access, and the "
                      "repository no cloneUrl");
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
    dkr_build_options_free(build.options);
    return glue_end(&gc, ok);
}

/* -------------------------------------------------------------------------- for a sandbox */

static bool check_definition(const char *definition, char **ret_id, GError **error)
{
    g_autoptr(DkrTemplate) parsed = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    json_auto_t *repository = glue_repository_of(definition);
    if (repository)
        return glue_repository_check(repository, error);
    if (!dkr_template_parse(definition, &parsed, error) || !dkr_recipe_new(parsed, &recipe, error))
        return false;
    *ret_id = g_strdup(recipe->template_id);
    return true;
}

bool glue_template_check(DkrSandboxOptions *options, GError **error)
{
    if (!options->template_json ||
        check_definition(options->template_json, &options->template_made, error))
        return true;
    g_prefix_error(error, "template: ");
    return false;
}

static bool ask_definition(const GlueCall *gc, SprSecret **ret_definition, GError **error)
{
    const sprov_callbacks *cb = &gc->sandbox->callbacks;
    *ret_definition = glue_ask(gc->provider, cb->template_definition, cb->ctx);
    return *ret_definition || spr_fail(error, SPR_E_REFUSED, "no-template",
                                       "template: the host's callback gave no definition");
}

/* The id of one that was built before. */
static bool find_built(const GlueCall *gc, const char *id, const SprWait *wait, char **ret_workdir,
                       GError **error)
{
    json_auto_t *image = NULL;
    if (!dkr_image_inspect(glue_context(gc)->client, id, wait, &image, error)) {
        g_prefix_error(error, "template \"%s\": build it first: ", id);
        return false;
    }
    *ret_workdir = g_strdup(
        json_string_value(json_object_get(json_object_get(image, "Config"), "WorkingDir")));
    return true;
}

/* A start that fails tells which template it was. */
static bool fail_with_id(const char *id, GError **error)
{
    if (!id || !error || !*error)
        return false;
    if (!strstr((*error)->message, id))
        g_prefix_error(error, "template %s: ", id);
    if (!spr_error_extra(*error)->detail)
        spr_error_take_detail(error, g_strdup_printf("{\"templateId\":\"%s\"}", id));
    return false;
}

static bool build_for_start(GlueCall *gc, const char *definition, const SprWait *wait,
                            char **ret_image, char **ret_workdir, GError **error)
{
    g_autofree char *id = NULL;
    g_autoptr(DkrTemplateImage) image = NULL;
    const GlueBuild what = {.definition = definition};
    if (!glue_build(gc, &gc->sandbox->callbacks, &what, wait, &id, &image, error))
        return fail_with_id(id, error);
    *ret_workdir = image ? g_strdup(image->working_dir) : NULL;
    *ret_image = id ? g_steal_pointer(&id) : g_strdup(DKR_DEFAULT_IMAGE);
    return true;
}

bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error)
{
    GlueCall *gc = ctx;
    g_autoptr(SprSecret) asked = NULL;
    bool ok;
    if (options->template_id && strcmp(options->template_id, DKR_TEMPLATE_FROM_CALLBACK) != 0) {
        *ret_image = g_strdup(options->template_id);
        ok = find_built(gc, options->template_id, wait, ret_workdir, error);
    } else {
        ok = options->template_json || ask_definition(gc, &asked, error);
        const char *definition = asked ? spr_secret_data(asked) : options->template_json;
        ok = ok && build_for_start(gc, definition, wait, ret_image, ret_workdir, error);
    }
    if (*ret_workdir && **ret_workdir == '\0')
        g_clear_pointer(ret_workdir, g_free);
    return ok;
}
