/* What a start asks of its caller. */
#include "glue/glue.h"

static void on_progress(void *ctx, const char *json)
{
    GlueCall *gc = ctx;
    if (gc->on_progress)
        glue_emit(gc->provider, gc->on_progress, gc->progress_ctx, json);
}

static bool resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                             char **ret_image, char **ret_workdir, GError **error)
{
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-templates",
                    "template: this version builds no templates; name an image instead");
}

DkrStartHooks glue_start_hooks(GlueCall *gc)
{
    return (DkrStartHooks){
        .resolve_template = resolve_template, .progress = on_progress, .ctx = gc};
}
