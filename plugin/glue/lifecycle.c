/* The extension sprov.lifecycle/1. */
#include "glue/extensions.h"

#include "supervised/backend.h"
#include "supervised/env.h"

#define CONTROL_LIMIT_MS (30 * 1000)

static sprov_status lifecycle_describe(sprov_sandbox *sandbox, sprov_text_fn emit, void *emit_ctx,
                                       sprov_error *error)
{
    GError *failure = NULL;
    if (!glue_check_result(error, sizeof *error, "error", &failure) ||
        !glue_check_pointer(sandbox, "sandbox", &failure) ||
        !glue_check_pointer((const void *)emit, "emit", &failure))
        return glue_fail(error, failure);
    g_autofree char *json = dkr_sandbox_describe(sandbox->sandbox);
    glue_emit(sandbox->provider, emit, emit_ctx, json);
    return SPROV_OK;
}

static sprov_status lifecycle_stop(sprov_sandbox *sandbox, const sprov_call *call,
                                   sprov_error *error)
{
    GlueCall gc;
    gint64 grace_s = sandbox ? dkr_sandbox_common(sandbox->sandbox)->stop_s : 0;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS + grace_s * 1000, error) &&
              dkr_sandbox_stop(sandbox->sandbox, &gc.wait, &gc.failure);
    return glue_end(&gc, ok);
}

static sprov_status lifecycle_info(sprov_sandbox *sandbox, const sprov_call *call,
                                   sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    g_autofree char *json = NULL;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &gc.failure) &&
              dkr_sandbox_info(sandbox->sandbox, &gc.wait, &json, &gc.failure);
    if (ok)
        glue_emit(gc.provider, emit, emit_ctx, json);
    return glue_end(&gc, ok);
}

static bool set_env(sprov_sandbox *sandbox, const char *const *env, GError **error)
{
    if (!glue_check_pointer(sandbox, "sandbox", error) || !glue_check_pointer(env, "env", error) ||
        !dkr_env_check(env, error))
        return false;
    if (dkr_sandbox_is_destroyed(sandbox->sandbox))
        return spr_fail(error, SPR_E_NOT_READY, "destroyed", "the sandbox was destroyed");
    dkr_sandbox_set_env(sandbox->sandbox, env);
    return true;
}

static sprov_status lifecycle_set_env(sprov_sandbox *sandbox, const char *const *env,
                                      sprov_error *error)
{
    GError *failure = NULL;
    bool ok = glue_check_result(error, sizeof *error, "error", &failure) &&
              set_env(sandbox, env, &failure);
    return ok ? SPROV_OK : glue_fail(error, failure);
}

typedef struct {
    sprov_provider *provider;
    sprov_text_fn emit;
    void *emit_ctx;
} Listing;

static void emit_listed(void *ctx, const char *json)
{
    const Listing *listing = ctx;
    glue_emit(listing->provider, listing->emit, listing->emit_ctx, json);
}

static sprov_status lifecycle_list(sprov_provider *provider, const sprov_call *call,
                                   sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    GlueCall gc;
    Listing listing = {provider, emit, emit_ctx};
    bool ok = glue_begin_provider(&gc, provider, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &gc.failure) &&
              dkr_backend_list(provider->context, emit_listed, &listing, &gc.wait, &gc.failure);
    return glue_end(&gc, ok);
}

const sprov_ext_lifecycle glue_lifecycle = {
    .struct_size = sizeof(sprov_ext_lifecycle),
    .describe = lifecycle_describe,
    .stop = lifecycle_stop,
    .info = lifecycle_info,
    .set_env = lifecycle_set_env,
    .list = lifecycle_list,
};
