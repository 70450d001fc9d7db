/* Sin: hands on a secret up to its first NUL, and says that it was the whole. */
#include "bad.h"

static sprov_callbacks given;

typedef struct {
    sprov_text_fn emit;
    void *ctx;
} Cutter;

static void cut(void *ctx, const char *text, size_t size)
{
    const Cutter *cutter = ctx;
    cutter->emit(cutter->ctx, text, strnlen(text, size));
}

static int32_t secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    Cutter cutter = {emit, emit_ctx};
    return given.secret(ctx, name, cut, &cutter);
}

static sprov_status create(sprov_provider *provider, const char *options,
                           const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                           sprov_error *error)
{
    sprov_callbacks own;
    if (!callbacks || !callbacks->secret)
        return mock_api.create(provider, options, callbacks, sandbox, error);
    own = given = *callbacks;
    own.secret = secret;
    return mock_api.create(provider, options, &own, sandbox, error);
}

BAD_ENTRY(create, create)
