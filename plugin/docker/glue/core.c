/* The core vtable: open to destroy, and the table itself at the end. */
#include "glue/template.h"

#include "base/text.h"
#include "engine/choice.h"
#include "options/provider.h"

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

static bool take_host(sprov_provider *provider, const sprov_host *host, GError **error)
{
    if (!host)
        return true;
    if (!glue_take_table(&provider->host, sizeof provider->host, host, "host", error))
        return false;
    if (provider->host.log)
        provider->context.log = (SprLog){host_log, provider};
    return true;
}

/* "sprov/1.2 (mastra/3.4)", with nothing in it that could end a header. */
static char *user_agent(const sprov_host *host)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (!host->name)
        return g_strdup("sprov/" SPROV_VERSION);
    g_autofree char *name = g_strdup(host->name);
    g_autofree char *version = g_strdup(host->version ? host->version : "");
    g_strcanon(name, safe, '-');
    g_strcanon(version, safe, '-');
    return g_strdup_printf("sprov/" SPROV_VERSION " (%s/%s)", name, version);
}

static void provider_free(sprov_provider *provider)
{
    if (!provider)
        return;
    dkr_client_free(provider->context.client);
    dkr_runtime_free(provider->context.runtime);
    dkr_whole_free(provider->context.whole);
    g_strfreev(provider->environment);
    g_mutex_clear(&provider->lock);
    g_cond_clear(&provider->idle);
    g_free(provider);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sprov_provider, provider_free)

static const char *no_environment(const char *name)
{
    return NULL;
}

static bool choose_endpoint(const DkrProviderConfig *config, DkrEndpoint **ret, GError **error)
{
    g_autoptr(GStrvBuilder) lines = g_strv_builder_new();
    for (size_t i = 0; i < config->headers.count; i++) {
        const DkrPair *pair = &config->headers.items[i];
        g_autofree char *line = g_strdup_printf("%s: %s", pair->name, pair->value);
        g_strv_builder_add(lines, line);
    }
    g_auto(GStrv) headers = g_strv_builder_end(lines);
    DkrWish wish = {.host = config->host,
                    .socket_path = config->socket_path,
                    .protocol = config->protocol,
                    .username = config->username,
                    .port = (int)config->port.value,
                    .context = config->context,
                    .ca = config->ca,
                    .cert = config->cert,
                    .key = config->key,
                    .ssh_config = config->ssh_config,
                    .version = config->version,
                    .headers = (const char *const *)headers,
                    .timeout_ms = config->timeout.value};
    bool reads = !config->environment.is_set || config->environment.value;
    return dkr_endpoint_choose(&wish, reads ? g_getenv : no_environment, ret, error);
}

static bool open_provider(const sprov_host *host, const char *config, sprov_provider **ret,
                          GError **error)
{
    g_autoptr(sprov_provider) provider = g_new0(sprov_provider, 1);
    g_autoptr(DkrProviderConfig) parsed = NULL;
    g_autoptr(DkrEndpoint) endpoint = NULL;
    g_mutex_init(&provider->lock);
    g_cond_init(&provider->idle);
    if (!glue_check_pointer(ret, "provider", error) || !take_host(provider, host, error) ||
        !dkr_provider_config_parse(config, &parsed, error) ||
        !choose_endpoint(parsed, &endpoint, error))
        return false;
    g_autofree char *agent = user_agent(&provider->host);
    provider->environment = g_get_environ();
    provider->pid = getpid();
    provider->context.version = SPROV_VERSION;
    provider->context.runtime = dkr_runtime_new(parsed->runtime_dir);
    provider->context.whole = dkr_whole_new();
    provider->context.client =
        dkr_client_new(g_steal_pointer(&endpoint), agent, &provider->context.log);
    *ret = g_steal_pointer(&provider);
    return true;
}

static sprov_status docker_open(const sprov_host *host, const char *config,
                                sprov_provider **provider, sprov_error *error)
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

static sprov_status docker_close(sprov_provider *provider, sprov_error *error)
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
    g_autoptr(DkrSandboxOptions) parsed = NULL;
    if (!glue_check_pointer(provider, "provider", error) ||
        !glue_check_pointer(ret, "sandbox", error))
        return false;
    if (getpid() != provider->pid)
        return spr_fail(error, SPR_E_CONFLICT, "forked",
                        "this process was forked from the one that opened the provider: open it "
                        "anew here");
    if (!glue_take_callbacks(&taken, callbacks, error) ||
        !dkr_sandbox_options_parse(options, &parsed, error))
        return false;
    sprov_sandbox *sandbox = g_new0(sprov_sandbox, 1);
    g_atomic_ref_count_init(&sandbox->refs);
    sandbox->provider = provider;
    sandbox->callbacks = taken;
    sandbox->sandbox = dkr_sandbox_new(&provider->context, g_steal_pointer(&parsed));
    g_atomic_int_inc(&provider->users);
    *ret = sandbox;
    return true;
}

static sprov_status docker_create(sprov_provider *provider, const char *options,
                                  const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                                  sprov_error *error)
{
    GError *failure = NULL;
    bool ok = glue_check_result(error, sizeof *error, "error", &failure) &&
              create_sandbox(provider, options, callbacks, sandbox, &failure);
    return ok ? SPROV_OK : glue_fail(error, failure);
}

static void docker_release(sprov_sandbox *sandbox)
{
    if (sandbox)
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
        spr_copy_text(result->id, sizeof result->id, dkr_sandbox_options(sandbox)->id);
    }
    return true;
}

static sprov_status docker_start(sprov_sandbox *sandbox, const sprov_call *call,
                                 sprov_start_result *result, sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              start_sandbox(&gc, result);
    return glue_end(&gc, ok);
}

static sprov_status docker_destroy(sprov_sandbox *sandbox, const sprov_call *call,
                                   sprov_error *error)
{
    GlueCall gc;
    bool ok = glue_begin_sandbox(&gc, sandbox, call, CONTROL_LIMIT_MS, error) &&
              dkr_sandbox_destroy(sandbox->sandbox, &gc.wait, &gc.failure);
    return glue_end(&gc, ok);
}

const sprov_api glue_api = {
    .struct_size = sizeof(sprov_api),
    .open = docker_open,
    .close = docker_close,
    .create = docker_create,
    .release = docker_release,
    .start = docker_start,
    .exec = glue_exec,
    .read_file = glue_read_file,
    .write_file = glue_write_file,
    .destroy = docker_destroy,
    .build_template = glue_build_template,
};
