/* Which engine a provider, or one of its sandboxes, talks to. */
#include "glue/ask.h"
#include "glue/own.h"
#include "glue/template.h"

#include "base/error.h"
#include "base/statedir.h"
#include "base/wipe.h"
#include "engine/choice.h"
#include "options/sandbox.h"
#include "sandbox/context.h"

#include <ext/host.h>
#include <string.h>

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

static char **header_lines(const DkrPairs *headers)
{
    char **lines = g_new0(char *, headers->count + 1);
    for (size_t i = 0; i < headers->count; i++)
        lines[i] = g_strdup_printf("%s: %s", headers->items[i].name, headers->items[i].value);
    return lines;
}

static DkrWish wish_of(const DkrProviderConfig *config)
{
    return (DkrWish){.host = config->host,
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
                     .timeout_ms = config->timeout.value};
}

/* What says only how the provider's engine is spoken to. */
static DkrWish wish_over(const DkrProviderConfig *base, const DkrProviderConfig *own)
{
    const DkrWish under = wish_of(base), over = wish_of(own);
    return (DkrWish){.host = under.host,
                     .socket_path = under.socket_path,
                     .context = under.context,
                     .protocol = over.protocol ? over.protocol : under.protocol,
                     .username = over.username ? over.username : under.username,
                     .port = over.port ? over.port : under.port,
                     .ca = over.ca ? over.ca : under.ca,
                     .cert = over.cert ? over.cert : under.cert,
                     .key = over.key ? over.key : under.key,
                     .ssh_config = over.ssh_config ? over.ssh_config : under.ssh_config,
                     .version = over.version ? over.version : under.version,
                     .timeout_ms = over.timeout_ms ? over.timeout_ms : under.timeout_ms};
}

static bool fail_key(const char *why, const char *name, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "tls-credentials",
                    "config \"keySecret\": %s \"%s\": let it answer for the private key, or name "
                    "a file in \"key\"",
                    why, name);
}

/* *ret_key is NULL when the configuration names none. */
static bool ask_for_key(const sprov_provider *provider, const DkrProviderConfig *config,
                        SprSecret **ret_key, GError **error)
{
    const sprov_host *host = &provider->host;
    sprov_host_secrets secrets = SPROV_INIT(sprov_host_secrets);
    const char *name = config->key_secret;
    *ret_key = NULL;
    if (!name)
        return true;
    if (config->key)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "tls-credentials",
                        "config \"keySecret\": \"key\" is given as well: give one of them");
    const void *offered =
        host->get_extension ? host->get_extension(host->ctx, SPROV_HOST_SECRETS) : NULL;
    if (!offered)
        return fail_key("this host has no " SPROV_HOST_SECRETS " to ask for", name, error);
    if (!glue_take_table(&secrets, sizeof secrets, offered, SPROV_HOST_SECRETS, error))
        return false;
    *ret_key = glue_ask_for(provider, secrets.secret, host->ctx, name);
    return *ret_key || fail_key("the host has no secret", name, error);
}

/* base: of the provider; asked: whose "keySecret" counts. */
static bool choose(const sprov_provider *provider, const DkrProviderConfig *base, DkrWish wish,
                   const DkrProviderConfig *asked, const DkrPairs *headers, DkrEndpoint **ret,
                   GError **error)
{
    g_autoptr(SprSecret) key = NULL;
    if (!ask_for_key(provider, asked, &key, error))
        return false;
    wish.key_text = key ? spr_secret_data(key) : NULL;
    const DkrOptBool *environment = &base->environment;
    wish.ignores_environment = environment->is_set && !environment->value;
    g_auto(GStrv) lines = header_lines(headers);
    wish.headers = (const char *const *)lines;
    return dkr_endpoint_choose(&wish, (const char *const *)provider->environment, ret, error);
}

/* Takes endpoint over. */
static DkrContext *connect_to(const sprov_provider *provider, const SprLog *log,
                              const char *runtime_dir, DkrEndpoint *endpoint)
{
    g_autofree char *directory = spr_state_directory(runtime_dir, provider->environment);
    g_autofree char *agent = user_agent(&provider->host);
    DkrContext *context = g_new0(DkrContext, 1);
    context->log = *log;
    context->version = SPROV_VERSION;
    context->runtime = dkr_runtime_new(directory, endpoint->address);
    context->whole = dkr_whole_new();
    context->client = dkr_client_new(endpoint, agent, &context->log);
    return context;
}

bool glue_own_open(const sprov_provider *provider, const SprLog *log, const char *config,
                   DkrContext **ret_context, GError **error)
{
    g_autoptr(DkrProviderConfig) parsed = NULL;
    DkrEndpoint *endpoint = NULL;
    if (!dkr_provider_config_parse(config, &parsed, error) ||
        !choose(provider, parsed, wish_of(parsed), parsed, &parsed->headers, &endpoint, error))
        return false;
    *ret_context = connect_to(provider, log, parsed->runtime_dir, endpoint);
    (*ret_context)->config = g_steal_pointer(&parsed);
    return true;
}

void glue_own_close(DkrContext *context)
{
    if (!context)
        return;
    dkr_client_free(context->client);
    dkr_runtime_free(context->runtime);
    dkr_whole_free(context->whole);
    dkr_provider_config_free(context->config);
    g_free(context);
}

/* ---------------------------------------------------------- dockerOptions of a sandbox */

/* Nothing but an engine, and that which the provider talks to anyway. */
static bool is_the_providers(const DkrProviderConfig *own, bool is_same_engine)
{
    const DkrWish wish = wish_of(own);
    bool says_how = wish.ca || wish.cert || wish.key || own->key_secret || wish.ssh_config ||
                    wish.version || wish.timeout_ms || own->headers.count > 0;
    return is_same_engine && !says_how;
}

/* What the provider was opened for holds: it may be an operator's choice, and the options of a
 * sandbox somebody else's. */
static bool check_engine(const sprov_provider *provider, const DkrEndpoint *wanted,
                         bool is_same_engine, GError **error)
{
    const DkrEndpoint *opened = dkr_client_endpoint(provider->context->client);
    return is_same_engine || !dkr_provider_config_names_engine(provider->context->config) ||
           spr_fail(error, SPR_E_CONFLICT, "other-engine",
                    "dockerOptions: they name the engine at %s, and the provider was opened for "
                    "that at %s: leave dockerOptions out, or open a provider for the other engine",
                    wanted->address, opened->address);
}

bool glue_own_open_sandbox(const sprov_provider *provider, DkrSandboxOptions *options,
                           DkrContext **ret_context, GError **error)
{
    const DkrProviderConfig *own = options->docker_options, *base = provider->context->config;
    g_autoptr(DkrEndpoint) endpoint = NULL;
    if (!glue_template_check(options, error))
        return false;
    if (!own)
        return true;
    bool names_engine = dkr_provider_config_names_engine(own);
    DkrWish wish = names_engine ? wish_of(own) : wish_over(base, own);
    const DkrPairs *headers =
        names_engine || own->headers.count > 0 ? &own->headers : &base->headers;
    const DkrProviderConfig *asked = names_engine || own->key_secret ? own : base;
    if (!choose(provider, base, wish, asked, headers, &endpoint, error)) {
        g_prefix_error(error, "dockerOptions: ");
        return false;
    }
    bool is_same =
        strcmp(endpoint->address, dkr_client_endpoint(provider->context->client)->address) == 0;
    if (!check_engine(provider, endpoint, is_same, error))
        return false;
    if (is_the_providers(own, is_same))
        return true;
    *ret_context = connect_to(provider, &provider->context->log, base->runtime_dir,
                              g_steal_pointer(&endpoint));
    return true;
}
