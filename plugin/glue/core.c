/* The core vtable: open to destroy, and the table itself at the end. */
#include "glue/own.h"

#include "base/environment.h"
#include "base/text.h"

#include <unistd.h>

#define CONTROL_LIMIT_MS (30 * 1000)

/* ----------------------------------------------------------------------- open, close */

static void host_log(void *ctx, int level, const char *topic, const char *message)
{
    sprov_provider *provider = ctx;
    const sprov_provider *before = glue_enter_callback(provider);
    provider->host.log(provider->host.ctx, level, topic, message);
    glue_leave_callback(before);
}

static bool take_host(sprov_provider *provider, const sprov_host *host, SprLog *ret_log,
                      GError **error)
{
    *ret_log = (SprLog){0};
    if (!host)
        return true;
    if (!glue_take_table(&provider->host, sizeof provider->host, host, "host", error))
        return false;
    if (provider->host.log)
        *ret_log = (SprLog){host_log, provider};
    return true;
}

static void provider_free(sprov_provider *provider)
{
    if (!provider)
        return;
    glue_own_close(provider->context);
    g_strfreev(provider->environment);
    g_mutex_clear(&provider->lock);
    g_cond_clear(&provider->idle);
    g_free(provider);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sprov_provider, provider_free)

static bool open_provider(const sprov_host *host, const char *config, sprov_provider **ret,
                          GError **error)
{
    g_autoptr(sprov_provider) provider = g_new0(sprov_provider, 1);
    SprLog log;
    g_mutex_init(&provider->lock);
    g_cond_init(&provider->idle);
    provider->environment = spr_environment();
    if (!glue_check_pointer(ret, "provider", error) || !take_host(provider, host, &log, error) ||
        !glue_own_open(provider, &log, config, &provider->context, error))
        return false;
    provider->pid = getpid();
    *ret = g_steal_pointer(&provider);
    return true;
}

static sprov_status core_open(const sprov_host *host, const char *config, sprov_provider **provider,
                              sprov_error *error)
{
    GError *failure = NULL;
    bool ok = glue_check_result(error, sizeof *error, "error", &failure) &&
              open_provider(host, config, provider, &failure);
    return ok ? SPROV_OK : glue_fail(error, failure);
}

/* Threads of processes that were released a moment ago are on their way out. */
static void wait_until_idle(sprov_provider *provider)
{
    g_mutex_lock(&provider->lock);
    while (provider->winding > 0)
        g_cond_wait(&provider->idle, &provider->lock);
    g_mutex_unlock(&provider->lock);
}

static sprov_status core_close(sprov_provider *provider, sprov_error *error)
{
    GlueCall gc;
    if (!glue_begin_provider(&gc, provider, NULL, -1, error))
        return glue_end(&gc, false);
    wait_until_idle(provider);
    int others = g_atomic_int_get(&provider->users) - 1;
    if (others > 0) {
        spr_fail(&gc.failure, SPR_E_CONFLICT, "in-use",
                 "%d sandbox handles or calls of this provider are still alive: release them first",
                 others);
        return glue_end(&gc, false);
    }
    provider_free(provider);
    return SPROV_OK;
}

/* -------------------------------------------------------------------- create, release */

static bool create_sandbox(sprov_provider *provider, const char *options,
                           const sprov_callbacks *callbacks, sprov_sandbox **ret, GError **error)
{
    sprov_callbacks taken = {0};
    DkrContext *own = NULL;
    g_autoptr(DkrSandboxOptions) parsed = NULL;
    if (!glue_check_pointer(provider, "provider", error) ||
        !glue_check_pointer(ret, "sandbox", error))
        return false;
    if (getpid() != provider->pid)
        return spr_fail(error, SPR_E_CONFLICT, "forked",
                        "this process was forked from the one that opened the provider: open it "
                        "anew here");
    if (!glue_take_callbacks(&taken, callbacks, error) ||
        !dkr_sandbox_options_parse(options, &parsed, error) ||
        !glue_own_open_sandbox(provider, parsed, &own, error))
        return false;
    sprov_sandbox *sandbox = g_new0(sprov_sandbox, 1);
    g_atomic_ref_count_init(&sandbox->refs);
    sandbox->provider = provider;
    sandbox->callbacks = taken;
    sandbox->own = own;
    sandbox->context = own ? own : provider->context;
    sandbox->sandbox = dkr_sandbox_new(sandbox->context, g_steal_pointer(&parsed));
    g_atomic_int_inc(&provider->users);
    *ret = sandbox;
    return true;
}

static sprov_status core_create(sprov_provider *provider, const char *options,
                                const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                                sprov_error *error)
{
    GError *failure = NULL;
    bool ok = glue_check_result(error, sizeof *error, "error", &failure) &&
              create_sandbox(provider, options, callbacks, sandbox, &failure);
    return ok ? SPROV_OK : glue_fail(error, failure);
}

/* In a forked child what would be closed and ended with it is still the parent's. */
static void core_release(sprov_sandbox *sandbox)
{
    if (sandbox && getpid() == sandbox->provider->pid)
        glue_sandbox_unref(sandbox);
}

/* -------------------------------------------------------------------- start, destroy */

static bool start_sandbox(GlueCall *gc, sprov_start_result *result)
{
    DkrStartOutcome outcome;
    DkrStartHooks hooks = glue_start_hooks(gc);
    DkrSandbox *sandbox = gc->sandbox->sandbox;
    if (!dkr_sandbox_start(sandbox, gc->ready_flags, &hooks, &gc->wait, &outcome, &gc->failure))
        return false;
    if (result) {
        result->outcome = (sprov_start_outcome)outcome;
        spr_copy_text(result->id, sizeof result->id, dkr_sandbox_common(sandbox)->id);
    }
    return true;
}

static sprov_status core_start(sprov_sandbox *sandbox, const sprov_call *call,
                               sprov_start_result *result, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              start_sandbox(&gc, result);
    return glue_end(&gc, ok);
}

static sprov_status core_destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              dkr_sandbox_destroy(sandbox->sandbox, &gc.wait, &gc.failure);
    return glue_end(&gc, ok);
}

const sprov_api glue_api = {
    .struct_size = sizeof(sprov_api),
    .open = core_open,
    .close = core_close,
    .create = core_create,
    .release = core_release,
    .start = core_start,
    .exec = glue_exec,
    .read_file = glue_read_file,
    .write_file = glue_write_file,
    .destroy = core_destroy,
    .build_template = glue_build_template,
};
