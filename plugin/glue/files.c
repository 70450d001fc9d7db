/* The extension sprov.files/1. */
#include "glue/extensions.h"

#include "supervised/filecalls.h"

#define CONTROL_LIMIT_MS (30 * 1000)

G_STATIC_ASSERT((int)DKR_FILES_RECURSIVE == (int)SPROV_FILES_RECURSIVE);
G_STATIC_ASSERT((int)DKR_FILES_NO_FOLLOW == (int)SPROV_FILES_NO_FOLLOW);
G_STATIC_ASSERT((int)DKR_FILES_MISSING_OK == (int)SPROV_FILES_MISSING_OK);

/* One call: its arguments, as many as it has. */
typedef struct {
    GlueCall gc;
    const char *path, *to;
    guint mode, flags;
    sprov_text_fn emit;
    void *emit_ctx;
    bool touched; /* emit was called, or something may have been changed */
} Call;

static void emit_json(void *ctx, const char *json)
{
    Call *call = ctx;
    call->touched = true;
    glue_emit(call->gc.provider, call->emit, call->emit_ctx, json);
}

static bool may_repeat(void *ctx)
{
    return !((const Call *)ctx)->touched;
}

static bool check(Call *call, guint allowed)
{
    GError **error = &call->gc.failure;
    if (!glue_check_path(call->path, error))
        return false;
    return !(call->flags & ~allowed) ||
           spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                    "flags 0x%x has bits that this function does not take", call->flags);
}

static bool work(Call *call, bool (*attempt)(void *ctx, DkrLife *life, GError **error))
{
    DkrWork work = {attempt, may_repeat, call};
    return glue_work(&call->gc, &work);
}

/* ------------------------------------------------------------------------- stat and list */

static bool attempt_stat(void *ctx, DkrLife *life, GError **error)
{
    Call *call = ctx;
    return dkr_files_stat(call->gc.sandbox->context, life, call->path, call->flags, emit_json, call,
                          &call->gc.wait, error);
}

static sprov_status files_stat(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                               const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                               sprov_error *error)
{
    Call c = {.path = path, .flags = flags, .emit = emit, .emit_ctx = emit_ctx};
    bool ok = glue_begin_sandbox(&c.gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &c.gc.failure) &&
              check(&c, SPROV_FILES_NO_FOLLOW | SPROV_FILES_MISSING_OK) && work(&c, attempt_stat);
    return glue_end(&c.gc, ok);
}

static bool attempt_list(void *ctx, DkrLife *life, GError **error)
{
    Call *call = ctx;
    return dkr_files_list(call->gc.sandbox->context, life, call->path, call->flags, emit_json, call,
                          &call->gc.wait, error);
}

static sprov_status files_list(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                               const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                               sprov_error *error)
{
    Call c = {.path = path, .flags = flags, .emit = emit, .emit_ctx = emit_ctx};
    bool ok = glue_begin_sandbox(&c.gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              glue_check_pointer((const void *)emit, "emit", &c.gc.failure) &&
              check(&c, SPROV_FILES_RECURSIVE | SPROV_FILES_MISSING_OK) && work(&c, attempt_list);
    return glue_end(&c.gc, ok);
}

/* ------------------------------------------------------------------------------- changes */

static bool attempt_make_directory(void *ctx, DkrLife *life, GError **error)
{
    Call *call = ctx;
    return dkr_files_make_directory(call->gc.sandbox->context, life, call->path, call->mode,
                                    call->flags, &call->gc.wait, error);
}

static bool check_mode(Call *call)
{
    return call->mode <= 0777 ||
           spr_fail(&call->gc.failure, SPR_E_INVALID_ARGUMENT, "bad-mode",
                    "mode 0%o: permission bits go from 0001 to 0777", call->mode);
}

static sprov_status files_make_directory(sprov_sandbox *sandbox, const char *path, uint32_t mode,
                                         uint32_t flags, const sprov_call *call, sprov_error *error)
{
    Call c = {.path = path, .mode = mode, .flags = flags};
    bool ok = glue_begin_sandbox(&c.gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              check(&c, SPROV_FILES_RECURSIVE) && check_mode(&c) &&
              work(&c, attempt_make_directory);
    return glue_end(&c.gc, ok);
}

static bool attempt_remove(void *ctx, DkrLife *life, GError **error)
{
    Call *call = ctx;
    return dkr_files_remove(call->gc.sandbox->context, life, call->path, call->flags,
                            &call->gc.wait, error);
}

static sprov_status files_remove(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                                 const sprov_call *call, sprov_error *error)
{
    Call c = {.path = path, .flags = flags};
    bool ok = glue_begin_sandbox(&c.gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              check(&c, SPROV_FILES_RECURSIVE | SPROV_FILES_MISSING_OK) && work(&c, attempt_remove);
    return glue_end(&c.gc, ok);
}

static bool attempt_rename(void *ctx, DkrLife *life, GError **error)
{
    Call *call = ctx;
    return dkr_files_rename(call->gc.sandbox->context, life, call->path, call->to, &call->gc.wait,
                            error);
}

static sprov_status files_rename(sprov_sandbox *sandbox, const char *from, const char *to,
                                 const sprov_call *call, sprov_error *error)
{
    Call c = {.path = from, .to = to};
    bool ok = glue_begin_sandbox(&c.gc, sandbox, call, CONTROL_LIMIT_MS, error) && check(&c, 0) &&
              glue_check_path(to, &c.gc.failure) && work(&c, attempt_rename);
    return glue_end(&c.gc, ok);
}

const sprov_ext_files glue_files = {
    .struct_size = sizeof(sprov_ext_files),
    .stat = files_stat,
    .list = files_list,
    .make_directory = files_make_directory,
    .remove = files_remove,
    .rename = files_rename,
};
