/* What a start asks of its caller, and work in a sandbox around it. */
#include "glue/ask.h"
#include "glue/own.h"

void glue_on_progress(void *ctx, const char *json)
{
    GlueCall *gc = ctx;
    if (gc->on_progress)
        glue_emit(gc->provider, gc->on_progress, gc->progress_ctx, json);
}

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    const GlueCall *gc = ctx;
    return glue_ask_login(gc->provider, &gc->sandbox->callbacks, registry, ret_user, ret_password);
}

DkrStartHooks glue_start_hooks(GlueCall *gc)
{
    return (DkrStartHooks){.resolve_template = glue_resolve_template,
                           .progress = glue_on_progress,
                           .login = give_login,
                           .ctx = gc};
}

typedef struct {
    GlueCall *gc;
    const DkrWork *work;
} Entered;

/* A stop or destroy of the same handle ends the attempt rather than wait for it. */
static bool attempt_entered(void *ctx, DkrLife *life, GError **error)
{
    const Entered *entered = ctx;
    GlueCall *gc = entered->gc;
    DkrTransfers *transfers = dkr_life_transfers(life);
    SprWait own = gc->wait;
    if (!dkr_transfers_enter(transfers, &own, &gc->wait, error)) {
        gc->wait = own;
        return false;
    }
    bool ok = entered->work->attempt(entered->work->ctx, life, error);
    dkr_transfers_leave(transfers, &gc->wait);
    gc->wait = own;
    return ok;
}

static bool entered_may_repeat(void *ctx)
{
    const DkrWork *work = ((const Entered *)ctx)->work;
    return work->may_repeat(work->ctx);
}

bool glue_work(GlueCall *gc, const DkrWork *work)
{
    DkrStartHooks hooks = glue_start_hooks(gc);
    Entered entered = {gc, work};
    DkrWork inside = {attempt_entered, entered_may_repeat, &entered};
    return dkr_sandbox_work(gc->sandbox->sandbox, gc->ready_flags, &hooks, &gc->wait, &inside,
                            &gc->failure);
}
