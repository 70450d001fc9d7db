#include "options/provider.h"

#include "base/error.h"
#include "options/json.h"

#include <stddef.h>

void dkr_provider_config_free(DkrProviderConfig *config)
{
    if (!config)
        return;
    g_free(config->host);
    g_free(config->runtime_dir);
    g_free(config);
}

static const DkrJsonField config_fields[] = {
    {"host", dkr_json_read_text, offsetof(DkrProviderConfig, host)},
    {"runtimeDir", dkr_json_read_text, offsetof(DkrProviderConfig, runtime_dir),
     .wrong = dkr_json_wrong_path},
    {NULL},
};

bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "provider config", &object, error))
        return false;
    g_autoptr(DkrProviderConfig) config = g_new0(DkrProviderConfig, 1);
    if (!dkr_json_read_object(object, NULL, config_fields, config, error))
        return false;
    *ret_config = g_steal_pointer(&config);
    return true;
}
