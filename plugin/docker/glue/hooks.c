/* What a start asks of its caller. */
#include "glue/template.h"

void glue_on_progress(void *ctx, const char *json)
{
    GlueCall *gc = ctx;
    if (gc->on_progress)
        glue_emit(gc->provider, gc->on_progress, gc->progress_ctx, json);
}

DkrStartHooks glue_start_hooks(GlueCall *gc)
{
    return (DkrStartHooks){
        .resolve_template = glue_resolve_template, .progress = glue_on_progress, .ctx = gc};
}

bool glue_work(GlueCall *gc, const DkrWork *work)
{
    DkrStartHooks hooks = glue_start_hooks(gc);
    return dkr_sandbox_work(gc->sandbox->sandbox, gc->ready_flags, &hooks, &gc->wait, work,
                            &gc->failure);
}
