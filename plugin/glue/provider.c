/* The extension sprov.provider/1. */
#include "glue/extensions.h"

#include "glue/own.h"

#define CONTROL_LIMIT_MS (30 * 1000)

static sprov_status provider_info(sprov_provider *provider, const sprov_call *call,
                                  sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    g_autofree char *json = NULL;
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &gc.failure) &&
              glue_own_about(&gc, &json);
    if (ok)
        glue_emit(gc.provider, emit, emit_ctx, json);
    return glue_end(&gc, ok);
}

typedef struct {
    const sprov_provider *provider;
    sprov_text_fn emit;
    void *ctx;
} Teller;

static void tell(void *ctx, const char *json)
{
    const Teller *teller = ctx;
    glue_emit(teller->provider, teller->emit, teller->ctx, json);
}

static bool prune(GlueCall *gc, const char *options, sprov_text_fn emit, void *emit_ctx)
{
    Teller teller = {gc->provider, emit, emit_ctx};
    g_autoptr(DkrPruneOptions) parsed = NULL;
    return glue_check_pointer((const void *)emit, "emit", &gc->failure) &&
           dkr_prune_options_parse(options, &parsed, &gc->failure) &&
           glue_own_prune(gc, parsed, tell, &teller);
}

static sprov_status provider_prune(sprov_provider *provider, const char *options,
                                   const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                                   sprov_error *error)
{
    GlueCall gc;
    bool ok =
        glue_begin_provider(&gc, provider, call, -1, error) && prune(&gc, options, emit, emit_ctx);
    return glue_end(&gc, ok);
}

const sprov_ext_provider glue_provider = {
    .struct_size = sizeof(sprov_ext_provider),
    .info = provider_info,
    .prune = provider_prune,
};
