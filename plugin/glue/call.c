#include "glue/own.h"

#include "base/text.h"

#include <string.h>
#include <unistd.h>

/* The provider whose callback this thread is inside of. */
static _Thread_local const sprov_provider *inside;

const sprov_provider *glue_enter_callback(const sprov_provider *provider)
{
    const sprov_provider *before = inside;
    inside = provider;
    return before;
}

void glue_leave_callback(const sprov_provider *before)
{
    inside = before;
}

void glue_emit(const sprov_provider *provider, sprov_text_fn emit, void *emit_ctx, const char *text)
{
    const sprov_provider *before = glue_enter_callback(provider);
    emit(emit_ctx, text, strlen(text));
    glue_leave_callback(before);
}

void glue_done(const sprov_provider *provider, void (*done)(void *), void *ctx)
{
    if (!done)
        return;
    const sprov_provider *before = glue_enter_callback(provider);
    done(ctx);
    glue_leave_callback(before);
}

/* --------------------------------------------------------------------------- errors */

/* A cut JSON object is none: a detail that does not fit is left out whole. */
static void write_error(sprov_error *error, const GError *failure)
{
    const SprErrorPrivate *extra = spr_error_extra(failure);
    if (!error || !glue_check_result(error, sizeof *error, "error", NULL))
        return;
    error->code = failure->domain == SPR_ERROR ? failure->code : SPROV_E_INTERNAL;
    error->flags = extra->flags;
    error->native = extra->native;
    spr_copy_text(error->reason, sizeof error->reason, extra->reason ? extra->reason : "");
    spr_copy_text(error->message, sizeof error->message, failure->message);
    error->detail[0] = '\0';
    if (extra->detail && !spr_copy_text(error->detail, sizeof error->detail, extra->detail)) {
        error->detail[0] = '\0';
        error->flags |= SPROV_ERROR_DETAIL_SHORTENED;
    }
}

sprov_status glue_fail(sprov_error *error, GError *failure)
{
    g_autoptr(GError) owned = failure;
    if (!owned)
        spr_fail(&owned, SPR_E_INTERNAL, "bug", "a failure without an error: please report it");
    if (owned->code == SPR_E_TIMEOUT) /* whatever it was that took too long */
        spr_error_add_flags(&owned, SPR_ERROR_RETRYABLE);
    write_error(error, owned);
    return owned->domain == SPR_ERROR ? owned->code : SPROV_E_INTERNAL;
}

/* ---------------------------------------------------------------------------- begin */

static bool take_cancel(GlueCall *gc, const sprov_cancel *from)
{
    sprov_cancel cancel;
    if (!from)
        return true;
    if (!glue_take_table(&cancel, sizeof cancel, from, "call->cancel", &gc->failure))
        return false;
    if (cancel.fd <= 0 && !cancel.is_cancelled)
        return spr_fail(&gc->failure, SPR_E_INVALID_ARGUMENT, "no-cancel",
                        "call->cancel has neither an fd above 0 nor is_cancelled: set one, or "
                        "leave cancel NULL");
    gc->wait.cancel_fd = cancel.fd > 0 ? cancel.fd : -1;
    gc->wait.is_cancelled = cancel.is_cancelled;
    gc->wait.cancel_ctx = cancel.ctx;
    return true;
}

static bool take_call(GlueCall *gc, const sprov_call *from, gint64 default_ms)
{
    const guint32 known = SPROV_CALL_NOWAIT | SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE;
    sprov_call call = SPROV_INIT(sprov_call);
    if (from && !glue_take_request(&call, sizeof call, from, "call", &gc->failure))
        return false;
    if (call.flags & ~known)
        return spr_fail(&gc->failure, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                        "call->flags 0x%x has bits that are not known", call.flags);
    gc->nowait = call.flags & SPROV_CALL_NOWAIT;
    if (gc->nowait && !gc->may_nowait)
        return spr_fail(&gc->failure, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                        "SPROV_CALL_NOWAIT is not for this function");
    gc->wait = spr_wait_for(call.timeout_ms ? call.timeout_ms : default_ms);
    gc->ready_flags = (call.flags & SPROV_CALL_NO_START ? DKR_READY_NO_START : 0u) |
                      (call.flags & SPROV_CALL_NO_CREATE ? DKR_READY_NO_CREATE : 0u);
    gc->on_progress = call.on_progress;
    gc->progress_ctx = call.progress_ctx;
    /* One that has fired: nothing is done, whatever there would be to say. */
    return take_cancel(gc, call.cancel) && spr_wait_check(&gc->wait, &gc->failure);
}

static bool check_thread(GlueCall *gc, const sprov_provider *provider)
{
    if (getpid() != provider->pid)
        return spr_fail(&gc->failure, SPR_E_CONFLICT, "forked",
                        "this process was forked from the one that opened the provider: open it "
                        "anew here");
    if (inside == provider)
        return spr_fail(&gc->failure, SPR_E_CONFLICT, "in-callback",
                        "a blocking call from inside a callback of the same provider: return "
                        "from it first, or use another thread");
    return true;
}

static bool begin(GlueCall *gc, sprov_provider *provider, const sprov_call *call, gint64 default_ms)
{
    if (!check_thread(gc, provider) || !take_call(gc, call, default_ms))
        return false;
    gc->provider = provider;
    g_atomic_int_inc(&provider->users);
    return true;
}

bool glue_begin_provider(GlueCall *gc, sprov_provider *provider, const sprov_call *call,
                         gint64 default_ms, sprov_error *error)
{
    *gc = (GlueCall){.error = error};
    return glue_check_result(error, sizeof *error, "error", &gc->failure) &&
           glue_check_pointer(provider, "provider", &gc->failure) &&
           begin(gc, provider, call, default_ms);
}

static bool begin_sandbox(GlueCall *gc, sprov_sandbox *sandbox, const sprov_call *call,
                          gint64 default_ms, sprov_error *error)
{
    if (!glue_check_result(error, sizeof *error, "error", &gc->failure) ||
        !glue_check_pointer(sandbox, "sandbox", &gc->failure) ||
        !begin(gc, sandbox->provider, call, default_ms))
        return false;
    gc->sandbox = sandbox;
    glue_sandbox_ref(sandbox);
    return true;
}

bool glue_begin_sandbox(GlueCall *gc, sprov_sandbox *sandbox, const sprov_call *call,
                        gint64 default_ms, sprov_error *error)
{
    *gc = (GlueCall){.error = error};
    return begin_sandbox(gc, sandbox, call, default_ms, error);
}

bool glue_begin_nowait(GlueCall *gc, sprov_sandbox *sandbox, const sprov_call *call,
                       gint64 default_ms, sprov_error *error)
{
    *gc = (GlueCall){.error = error, .may_nowait = true};
    return begin_sandbox(gc, sandbox, call, default_ms, error);
}

const DkrContext *glue_context(const GlueCall *gc)
{
    return gc->sandbox ? gc->sandbox->context : gc->provider->context;
}

sprov_status glue_end(GlueCall *gc, bool ok)
{
    sprov_status status = SPROV_OK;
    if (!ok)
        status = glue_fail(gc->error, g_steal_pointer(&gc->failure));
    g_clear_error(&gc->failure);
    if (gc->sandbox)
        glue_sandbox_unref(gc->sandbox);
    if (gc->provider)
        g_atomic_int_add(&gc->provider->users, -1);
    return status;
}

/* -------------------------------------------------------------------------- handles */

void glue_sandbox_ref(sprov_sandbox *sandbox)
{
    g_atomic_ref_count_inc(&sandbox->refs);
}

void glue_sandbox_unref(sprov_sandbox *sandbox)
{
    if (!g_atomic_ref_count_dec(&sandbox->refs))
        return;
    sprov_provider *provider = sandbox->provider;
    dkr_sandbox_free(sandbox->sandbox);
    glue_own_close(sandbox->own);
    glue_done(provider, sandbox->callbacks.done, sandbox->callbacks.ctx);
    g_free(sandbox);
    g_atomic_int_add(&provider->users, -1);
}
