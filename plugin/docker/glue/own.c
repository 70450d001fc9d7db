/* Opening the provider of an engine. */
#include "glue/own.h"

#include "engine/choice.h"
#include "options/provider.h"
#include "sandbox/context.h"

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

bool glue_own_open(const sprov_host *host, const SprLog *log, const char *config,
                   DkrContext **ret_context, GError **error)
{
    g_autoptr(DkrProviderConfig) parsed = NULL;
    g_autoptr(DkrEndpoint) endpoint = NULL;
    if (!dkr_provider_config_parse(config, &parsed, error) ||
        !choose_endpoint(parsed, &endpoint, error))
        return false;
    g_autofree char *agent = user_agent(host);
    DkrContext *context = g_new0(DkrContext, 1);
    context->log = *log;
    context->version = SPROV_VERSION;
    context->runtime = dkr_runtime_new(parsed->runtime_dir);
    context->whole = dkr_whole_new();
    context->client = dkr_client_new(g_steal_pointer(&endpoint), agent, &context->log);
    *ret_context = context;
    return true;
}

void glue_own_close(DkrContext *context)
{
    if (!context)
        return;
    dkr_client_free(context->client);
    dkr_runtime_free(context->runtime);
    dkr_whole_free(context->whole);
    g_free(context);
}
