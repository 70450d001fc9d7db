#include "template/build.h"

#include "base/text.h"
#include "base/ustar.h"
#include "buildkit/progress.h"
#include "template/buildstream.h"
#include "template/canonical.h"

#include <string.h>

#define EXCERPT_BYTES 200

typedef struct {
    const DkrBuildRequest *request;
    DkrBuildStream *stream;
    DkrProgress *progress;
} Build;

void dkr_template_image_free(DkrTemplateImage *image)
{
    if (!image)
        return;
    g_free(image->id);
    g_free(image->working_dir);
    g_free(image);
}

/* ------------------------------------------------------------------------ progress */

static char *take_text(json_t *object)
{
    GString *text = g_string_new(NULL);
    dkr_canonical_append(text, object);
    json_decref(object);
    return g_string_free(text, FALSE);
}

static void emit(const Build *build, json_t *object)
{
    g_autofree char *text = take_text(object);
    if (build->request->on_progress)
        build->request->on_progress(build->request->progress_ctx, text);
}

static void on_step(void *ctx, guint step, const char *name, DkrStepStatus status)
{
    static const char *const words[] = {
        [DKR_STEP_STARTED] = "started",
        [DKR_STEP_CACHED] = "cached",
        [DKR_STEP_DONE] = "done",
        [DKR_STEP_FAILED] = "failed",
    };
    emit(ctx, json_pack("{s:s, s:i, s:s, s:s}", "type", "build-step", "step", (int)step, "name",
                        name, "status", words[status]));
}

static void on_log(void *ctx, guint step, int stream, const char *text)
{
    emit(ctx, json_pack("{s:s, s:i, s:s, s:s}", "type", "build-log", "step", (int)step, "stream",
                        stream == 2 ? "stderr" : "stdout", "text", text));
}

/* A record that cannot be read costs a line of progress, never the build. */
static void on_trace(void *ctx, const void *record, gsize size)
{
    Build *build = ctx;
    dkr_progress_feed(build->progress, record, size, NULL);
}

static bool on_chunk(void *ctx, const void *data, gsize size, GError **error)
{
    Build *build = ctx;
    return dkr_build_stream_push(build->stream, data, size, error);
}

/* ------------------------------------------------------------------------- failure */

/* What stands in the shell's place of an exec form, when the engine left its JSON whole. */
static char *shell_text_of(const char *command)
{
    json_auto_t *words = json_loads(command, 0, NULL);
    const char *shell = json_string_value(json_array_get(words, 0));
    const char *text = json_string_value(json_array_get(words, 2));
    if (json_array_size(words) != 3 || g_strcmp0(shell, "/bin/sh") != 0)
        return NULL;
    return g_strdup(text);
}

/* "[stage 2/3] RUN false" is the command "false" for whoever wrote it. */
static char *command_of(const char *name)
{
    const char *bracket = name[0] == '[' ? strstr(name, "] ") : NULL;
    const char *command = bracket ? bracket + 2 : name;
    if (!g_str_has_prefix(command, "RUN "))
        return g_strdup(command);
    char *text = shell_text_of(command + 4);
    return text ? text : g_strdup(command + 4);
}

/* Short, and without what would move a terminal's cursor. */
static char *excerpt(const char *text)
{
    char buffer[EXCERPT_BYTES];
    bool whole = spr_copy_text(buffer, sizeof buffer, text);
    for (char *p = buffer; *p; p++)
        if (g_ascii_iscntrl(*p))
            *p = ' ';
    return g_strconcat(buffer, whole ? "" : "...", NULL);
}

static char *last_line(const char *text)
{
    g_autofree char *copy = g_strchomp(g_strdup(text));
    const char *line = strrchr(copy, '\n');
    return excerpt(line ? line + 1 : copy);
}

static char *explain(const DkrStepFailure *failure, const char *whole_command)
{
    g_autofree char *command = excerpt(whole_command);
    g_autofree char *said = last_line(failure->exit_code >= 0 ? failure->output : failure->message);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "step \"%s\" failed", command);
    if (failure->exit_code >= 0)
        g_string_append_printf(text, " with exit code %d", failure->exit_code);
    if (*said)
        g_string_append_printf(text, ": %s", said);
    return g_string_free(text, FALSE);
}

static bool fail_build(const Build *build, const DkrRecipe *recipe, GError **error)
{
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(build->progress);
    g_autofree char *command = failure ? command_of(failure->name) : NULL;
    g_autofree char *why =
        failure ? explain(failure, command) : g_strdup(dkr_build_stream_error(build->stream));
    const char *output = failure ? failure->output : "";
    json_t *object = json_pack("{s:s}", "type", "failure");
    json_t *detail =
        json_pack("{s:n, s:n, s:n, s:s}", "step", "command", "exitCode", "output", output);
    if (failure) {
        json_t *step = json_integer(failure->step);
        json_object_set(object, "step", step);
        json_object_set_new(detail, "step", step);
        json_object_set_new(detail, "command", json_string(command));
    }
    if (failure && failure->exit_code >= 0) {
        json_object_set_new(object, "exitCode", json_integer(failure->exit_code));
        json_object_set_new(detail, "exitCode", json_integer(failure->exit_code));
    }
    json_object_set_new(object, "output", json_string(output));
    emit(build, object);
    spr_fail(error, SPR_E_BUILD, failure ? "step-failed" : "build-failed", "template %s: %s",
             recipe->template_id, why);
    spr_error_take_detail(error, take_text(detail));
    return false;
}

/* --------------------------------------------------------------------------- build */

static void append_json_param(GString *path, const char *name, const json_t *object)
{
    if (!object)
        return;
    g_autoptr(GString) text = g_string_new(NULL);
    dkr_canonical_append(text, object);
    g_autofree char *escaped = spr_url_escape(text->str);
    g_string_append_printf(path, "&%s=%s", name, escaped);
}

static char *build_path(const DkrRecipe *recipe, const DkrBuildRequest *request)
{
    g_autofree char *tag = spr_url_escape(recipe->template_id);
    GString *path = g_string_new(NULL);
    g_string_append_printf(path, "/build?version=2&t=%s&nocache=%s&dockerfile=Dockerfile", tag,
                           request->force ? "true" : "false");
    append_json_param(path, "buildargs", recipe->build_args);
    append_json_param(path, "labels", request->labels);
    return g_string_free(path, FALSE);
}

static bool incomplete(const DkrRecipe *recipe, const char *what, GError **error)
{
    spr_fail(error, SPR_E_IO, "build-incomplete", "template %s: %s; the engine's log may say why",
             recipe->template_id, what);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

/* Sends the build and reads its answer to the end. */
static bool run_build(Build *build, const DkrRecipe *recipe, const DkrBuildEngine *engine,
                      const SprWait *wait, GError **error)
{
    g_autofree char *path = build_path(recipe, build->request);
    g_autoptr(GBytes) tar =
        spr_ustar_of_file("Dockerfile", recipe->dockerfile, strlen(recipe->dockerfile));
    g_autoptr(GError) broken = NULL;
    bool ended = engine->post_build(engine->ctx, path, tar, wait, on_chunk, build, &broken) &&
                 dkr_build_stream_finish(build->stream, &broken);
    bool given_up =
        spr_error_is(broken, SPR_E_CANCELLED, NULL) || spr_error_is(broken, SPR_E_TIMEOUT, NULL);
    if (dkr_build_stream_error(build->stream) && !given_up)
        return fail_build(build, recipe, error);
    if (!ended) {
        g_propagate_prefixed_error(error, g_steal_pointer(&broken),
                                   "template %s: ", recipe->template_id);
        return false;
    }
    if (!dkr_build_stream_image_id(build->stream))
        return incomplete(recipe, "the build ended without an image", error);
    return true;
}

static bool build_and_inspect(const DkrRecipe *recipe, const DkrBuildRequest *request,
                              const DkrBuildEngine *engine, const SprWait *wait,
                              DkrTemplateImage **ret_image, GError **error)
{
    static const DkrProgressVisitor visitor = {.step = on_step, .log = on_log};
    Build build = {.request = request};
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(DkrBuildStream) stream = dkr_build_stream_new(on_trace, &build);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, &build);
    build.stream = stream;
    build.progress = progress;
    if (!run_build(&build, recipe, engine, wait, error) ||
        !engine->inspect(engine->ctx, recipe->template_id, wait, &image, error))
        return false;
    if (!image)
        return incomplete(recipe, "the image is gone right after its build", error);
    *ret_image = g_steal_pointer(&image);
    return true;
}

bool dkr_template_build(const DkrRecipe *recipe, const DkrBuildRequest *request,
                        const DkrBuildEngine *engine, const SprWait *wait,
                        DkrTemplateImage **ret_image, GError **error)
{
    g_autoptr(DkrTemplateImage) image = NULL;
    if (!request->force && !engine->inspect(engine->ctx, recipe->template_id, wait, &image, error))
        return false;
    if (image) {
        image->cached = true;
        *ret_image = g_steal_pointer(&image);
        return true;
    }
    if (recipe->secret_names[0])
        return spr_fail(error, SPR_E_UNSUPPORTED, "template-secrets",
                        "template %s needs the secret %s, and this version builds without secrets",
                        recipe->template_id, recipe->secret_names[0]);
    bool has_base = strcmp(recipe->base, "scratch") != 0;
    if (has_base && !engine->ensure_base(engine->ctx, recipe->base, wait, error))
        return false;
    return build_and_inspect(recipe, request, engine, wait, ret_image, error);
}
