#include "template/build.h"

#include "base/text.h"
#include "base/ustar.h"
#include "template/buildreport.h"
#include "template/canonical.h"
#include "template/identity.h"
#include "template/secrets.h"

#include <string.h>

typedef struct {
    const DkrRecipe *recipe;
    const DkrBuildRequest *request;
    const DkrBuildEngine *engine;
    const SprWait *wait;
    DkrBuildReport *report;
    DkrSecrets *secrets;
    char *session_id; /* NULL: the build does without one */
} Build;

void dkr_template_image_free(DkrTemplateImage *image)
{
    if (!image)
        return;
    g_free(image->id);
    g_free(image->working_dir);
    g_free(image);
}

DkrTemplateImage *dkr_template_image_copy(const DkrTemplateImage *image)
{
    DkrTemplateImage *copy = g_new0(DkrTemplateImage, 1);
    copy->id = g_strdup(image->id);
    copy->working_dir = g_strdup(image->working_dir);
    copy->cached = image->cached;
    return copy;
}

/* ------------------------------------------------------------------------- session */

static bool give_secret(void *ctx, const char *id, const SprSecret **ret_value)
{
    const Build *build = ctx;
    const SprSecret *value = dkr_secrets_find(build->secrets, id);
    if (value)
        *ret_value = value;
    return value != NULL;
}

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    const Build *build = ctx;
    const DkrBuildHost *host = &build->request->host;
    if (!host->login || !host->login(host->ctx, registry, ret_user, ret_password))
        return false;
    spr_redactor_add(build->report->redactor, spr_secret_data(*ret_password),
                     spr_secret_size(*ret_password));
    return true;
}

/* With one, BuildKit fetches the base itself, with the host's login. */
static bool fetches_base(const Build *build)
{
    return build->request->host.login || build->request->pull || build->recipe->platform;
}

static bool open_session(Build *build, GError **error)
{
    DkrServices services = {.ctx = build, .secret = give_secret, .login = give_login};
    bool has_secrets = build->recipe->secret_names[0] != NULL;
    g_autoptr(GError) why = NULL;
    if (!has_secrets && !fetches_base(build))
        return true;
    if (build->engine->open_session(build->engine->ctx, &services, build->wait, &build->session_id,
                                    &why))
        return true;
    if (!spr_error_is(why, SPR_E_UNSUPPORTED, NULL) || has_secrets) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why),
                                   "template %s: ", build->recipe->template_id);
        return false;
    }
    return true; /* an engine without BuildKit does without, too */
}

static bool ensure_base(const Build *build, GError **error)
{
    bool is_fetched = build->session_id && fetches_base(build);
    if (is_fetched || strcmp(build->recipe->base, "scratch") == 0)
        return true;
    return build->engine->ensure_base(build->engine->ctx, build->recipe->base, build->wait, error);
}

/* --------------------------------------------------------------------------- build */

static bool on_chunk(void *ctx, const void *data, gsize size, GError **error)
{
    Build *build = ctx;
    return dkr_build_stream_push(build->report->stream, data, size, error);
}

static void append_param(GString *path, const char *name, const char *value)
{
    g_autofree char *escaped = spr_url_escape(value ? value : "");
    if (value)
        g_string_append_printf(path, "&%s=%s", name, escaped);
}

static void append_json_param(GString *path, const char *name, const json_t *object)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (object)
        dkr_canonical_append(text, object);
    append_param(path, name, object ? text->str : NULL);
}

/* By its own label an image is known also when its name went to a newer one. */
static void append_labels(GString *path, const Build *build)
{
    json_auto_t *labels = json_object();
    json_object_update(labels, (json_t *)build->request->labels);
    json_object_set_new(labels, DKR_TEMPLATE_LABEL, json_string(build->recipe->template_id));
    append_json_param(path, "labels", labels);
}

/* forcerm is for engines without BuildKit, which leave the container of a step that failed. */
static char *build_path(const Build *build)
{
    const DkrBuildRequest *request = build->request;
    GString *path = g_string_new("/build?version=2");
    append_param(path, "session", build->session_id);
    append_param(path, "t", build->recipe->template_id);
    append_param(path, "nocache", request->force ? "true" : "false");
    append_param(path, "dockerfile", "Dockerfile");
    append_param(path, "forcerm", "true");
    append_param(path, "pull", request->pull ? "true" : NULL);
    append_param(path, "networkmode", request->network);
    append_param(path, "platform", build->recipe->platform);
    append_json_param(path, "buildargs", build->recipe->build_args);
    append_labels(path, build);
    return g_string_free(path, FALSE);
}

static bool incomplete(const Build *build, const char *what, GError **error)
{
    spr_fail(error, SPR_E_IO, "build-incomplete", "template %s: %s; the engine's log may say why",
             build->recipe->template_id, what);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

/* Sends the build and reads its answer to the end. */
static bool run_build(Build *build, GError **error)
{
    const DkrRecipe *recipe = build->recipe;
    const DkrBuildEngine *engine = build->engine;
    g_autofree char *path = build_path(build);
    g_autoptr(GBytes) tar =
        spr_ustar_of_file("Dockerfile", recipe->dockerfile, strlen(recipe->dockerfile));
    g_autoptr(GError) broken = NULL;
    DkrBuildStream *stream = build->report->stream;
    bool ended =
        engine->post_build(engine->ctx, path, tar, build->wait, on_chunk, build, &broken) &&
        dkr_build_stream_finish(stream, &broken);
    bool given_up =
        spr_error_is(broken, SPR_E_CANCELLED, NULL) || spr_error_is(broken, SPR_E_TIMEOUT, NULL);
    if (dkr_build_stream_error(stream) && !given_up)
        return dkr_build_report_fail(build->report, error);
    if (!ended) {
        g_propagate_prefixed_error(error, g_steal_pointer(&broken),
                                   "template %s: ", recipe->template_id);
        return false;
    }
    dkr_progress_finish(build->report->progress);
    if (!dkr_build_stream_image_id(stream))
        return incomplete(build, "the build ended without an image", error);
    return true;
}

static void warn_of_credentials(const Build *build)
{
    for (char **name = build->recipe->credential_names; *name; name++)
        spr_log(build->request->log, SPR_LOG_WARNING, "template",
                "template %s: setEnvs puts %s into the image for everybody to see; if it is a "
                "secret, use runWithSecrets, or env or secret_env of the sandbox",
                build->recipe->template_id, *name);
}

static bool build_and_inspect(Build *build, DkrTemplateImage **ret_image, GError **error)
{
    const DkrBuildEngine *engine = build->engine;
    g_autoptr(DkrTemplateImage) image = NULL;
    if (!open_session(build, error) || !ensure_base(build, error) || !run_build(build, error) ||
        !engine->inspect(engine->ctx, build->recipe->template_id, build->wait, &image, error))
        return false;
    if (!image)
        return incomplete(build, "the image is gone right after its build", error);
    *ret_image = g_steal_pointer(&image);
    return true;
}

bool dkr_template_find(const DkrRecipe *recipe, const DkrBuildEngine *engine, const SprWait *wait,
                       DkrTemplateImage **ret_image, GError **error)
{
    if (!engine->inspect(engine->ctx, recipe->template_id, wait, ret_image, error))
        return false;
    if (*ret_image)
        (*ret_image)->cached = true;
    return true;
}

bool dkr_template_build(const DkrRecipe *recipe, const DkrBuildRequest *request,
                        const DkrBuildEngine *engine, const SprWait *wait,
                        DkrTemplateImage **ret_image, GError **error)
{
    const DkrBuildHost *host = &request->host;
    Build build = {.recipe = recipe, .request = request, .engine = engine, .wait = wait};
    g_autoptr(DkrSecrets) secrets = NULL;
    g_autoptr(DkrBuildReport) report = NULL;
    if (!request->force && !dkr_template_find(recipe, engine, wait, ret_image, error))
        return false;
    if (!request->force && *ret_image)
        return true;
    if (!dkr_secrets_gather(recipe, host->secret, host->ctx, &secrets, error))
        return false;
    report = dkr_build_report_new(recipe->template_id, request->on_progress, request->progress_ctx);
    dkr_secrets_hide(secrets, report->redactor);
    build.secrets = secrets;
    build.report = report;
    warn_of_credentials(&build);
    bool ok = build_and_inspect(&build, ret_image, error);
    if (build.session_id)
        engine->close_session(engine->ctx);
    g_free(build.session_id);
    if (ok)
        engine->sweep(engine->ctx, recipe->template_id);
    return ok;
}
