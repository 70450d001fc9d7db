#include "local/options.h"

#include "base/error.h"
#include "base/text.h"
#include "local/capability.h"
#include "local/refuse.h"
#include "local/user.h"
#include "options/json.h"
#include "options/names.h"
#include "options/rules.h"

#include <stddef.h>
#include <string.h>

#define ID_MAX_BYTES 255
#define DEFAULT_TIMEOUT_MS (300 * 1000)
#define MAX_PIDS 4194304
#define MAX_STOP_TIMEOUT_S 3600

void dkr_sandbox_options_free(DkrSandboxOptions *options)
{
    if (!options)
        return;
    g_free(options->id);
    g_free(options->name);
    dkr_pairs_clear(&options->env);
    dkr_pairs_clear(&options->labels);
    g_free(options->working_directory);
    g_free(options->user);
    g_free(options->instructions);
    g_free(options->isolation);
    g_free(options->network);
    g_free(options->hostname);
    g_strfreev(options->cap_drop);
    local_mounts_clear(&options->mounts);
    g_free(options->supervisor);
    g_free(options->transport);
    g_free(options);
}

/* ---------------------------------------------------------------------------- refusals */

/* Accepted where it asks for what is so anyway. */
static bool read_false(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                       void *target, GError **error)
{
    return !json_is_true(value) ? dkr_json_read_bool(value, path, field, target, error)
                                : local_refuse(path, "nothing here is privileged", error);
}

static bool read_true(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    return !json_is_false(value)
               ? dkr_json_read_bool(value, path, field, target, error)
               : local_refuse(path, "the first process is always the supervisor, which reaps",
                              error);
}

static bool read_network(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    const char *text = json_string_value(value);
    if (text && *text && strcmp(text, "none") != 0 && strcmp(text, "host") != 0)
        return local_refuse(path, "a sandbox has no network (\"none\") or the host's (\"host\")",
                            error);
    return dkr_json_read_text(value, path, field, target, error);
}

static bool read_supervisor(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                            void *target, GError **error)
{
    if (g_strcmp0(json_string_value(value), "off") == 0)
        return local_refuse(path, "its supervisor is the only way into a sandbox", error);
    return dkr_json_read_word(value, path, field, target, error);
}

static bool read_transport(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                           void *target, GError **error)
{
    if (g_strcmp0(json_string_value(value), "stream") == 0)
        return local_refuse(path, "the supervisor is reached by a socket", error);
    return dkr_json_read_word(value, path, field, target, error);
}

static bool read_user(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    if (!dkr_json_read_text(value, path, field, target, error))
        return false;
    return local_user_is_own(json_string_value(value)) ||
           local_refuse(path, "a sandbox has one user, who is the host's", error);
}

/* ------------------------------------------------------------------------------ fields */

#define AT(member) offsetof(DkrSandboxOptions, member)
#define WHY(text)                                                                                  \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        text, NULL                                                                                 \
    }

#define NO_IMAGE "it has no images, a sandbox sees the host's /usr"
#define NO_ENGINE "it needs an engine"
#define ALREADY_LESS "a sandbox has no capabilities and can get none"
#define OTHER_LIMIT "its limits are memory and pidsLimit"

static const char *const isolations[] = {LOCAL_BUBBLEWRAP, LOCAL_NO_ISOLATION, NULL};
static const char *const supervisor_modes[] = {"auto", "required", NULL};
static const char *const transports[] = {"auto", "socket", NULL};

static const DkrJsonField option_fields[] = {
    {"id", dkr_json_read_text, AT(id), 1, ID_MAX_BYTES},
    {"name", dkr_json_read_text, AT(name), .min = 1},
    {"env", dkr_json_read_pairs, AT(env), .wrong = dkr_rule_variable},
    {"workingDirectory", dkr_json_read_text, AT(working_directory), .wrong = local_wrong_directory},
    {"timeout", dkr_json_read_integer, AT(timeout), 0, G_MAXINT64},
    {"labels", dkr_json_read_pairs, AT(labels), .wrong = dkr_name_wrong_label},
    {"instructions", dkr_json_read_text, AT(instructions)},
    {"autoStart", dkr_json_read_bool, AT(auto_start)},
    {"user", read_user, AT(user), .min = 1, .wrong = dkr_rule_user},
    {"isolation", dkr_json_read_word, AT(isolation), .words = isolations},
    {"network", read_network, AT(network), .min = 1},
    {"hostname", dkr_json_read_text, AT(hostname), .wrong = dkr_rule_hostname},
    {"memory", dkr_json_read_integer, AT(memory), 0, G_MAXINT64},
    {"pidsLimit", dkr_json_read_integer, AT(pids_limit), -1, MAX_PIDS},
    {"capDrop", dkr_json_read_texts, AT(cap_drop), .min = 1, .wrong = local_wrong_capability},
    {"init", read_true, AT(init)},
    {"privileged", read_false, AT(privileged)},
    {"supervisor", read_supervisor, AT(supervisor), .words = supervisor_modes},
    {"transport", read_transport, AT(transport), .words = transports},
    {"stopTimeout", dkr_json_read_integer, AT(stop_timeout), 0, MAX_STOP_TIMEOUT_S},
    {"mounts", local_mounts_read, AT(mounts)},
    {"tmpfs", local_mounts_read_tmpfs, AT(mounts)},
    {"image", local_refuse_option, WHY(NO_IMAGE)},
    {"template", local_refuse_option, WHY(NO_IMAGE)},
    {"platform", local_refuse_option, WHY(NO_IMAGE)},
    {"pullPolicy", local_refuse_option, WHY(NO_IMAGE)},
    {"entrypoint", local_refuse_option, WHY(NO_IMAGE)},
    {"command", local_refuse_option, WHY("the first process is always the supervisor")},
    {"workingDir", local_refuse_option, WHY("its name is \"workingDirectory\"")},
    {"volumes", local_refuse_option, WHY("folders of the host are \"mounts\" of type \"bind\"")},
    {"dns", local_refuse_option, WHY("with \"network\": \"host\" it has the host's")},
    {"extraHosts", local_refuse_option, WHY("with \"network\": \"host\" it has the host's")},
    {"ports", local_refuse_option, WHY("with \"network\": \"host\" its ports are the host's")},
    {"devices", local_refuse_option, WHY("a sandbox has no devices of the host")},
    {"gpus", local_refuse_option, WHY("a sandbox has no devices of the host")},
    {"runtime", local_refuse_option, WHY(NO_ENGINE)},
    {"memorySwap", local_refuse_option, WHY(OTHER_LIMIT)},
    {"shmSize", local_refuse_option, WHY(OTHER_LIMIT)},
    {"cpus", local_refuse_option, WHY(OTHER_LIMIT)},
    {"cpuShares", local_refuse_option, WHY(OTHER_LIMIT)},
    {"cpuQuota", local_refuse_option, WHY(OTHER_LIMIT)},
    {"cpuPeriod", local_refuse_option, WHY(OTHER_LIMIT)},
    {"ulimits", local_refuse_option, WHY(OTHER_LIMIT)},
    {"readonlyRootfs", local_refuse_option,
     WHY("all but the workspace, /tmp and /dev/shm is read-only always")},
    {"capAdd", local_refuse_option, WHY(ALREADY_LESS)},
    {"securityOpt", local_refuse_option, WHY(NO_ENGINE)},
    {"dockerOptions", local_refuse_option, WHY(NO_ENGINE)},
    {NULL},
};

/* --------------------------------------------------------------------------- sandboxes */

static char *generate_id(void)
{
    g_autofree char *random = spr_random_hex(8);
    return g_strdup_printf("local-sandbox-%s", random);
}

static void fill_defaults(DkrSandboxOptions *options)
{
    options->id_is_generated = !options->id;
    if (!options->id)
        options->id = generate_id();
    if (!options->isolation)
        options->isolation = g_strdup(LOCAL_BUBBLEWRAP);
    options->network_is_set = options->network != NULL;
    if (!options->network)
        options->network =
            g_strdup(strcmp(options->isolation, LOCAL_BUBBLEWRAP) == 0 ? "none" : "host");
    if (!options->timeout.is_set)
        options->timeout.value = DEFAULT_TIMEOUT_MS;
    if (!options->auto_start.is_set)
        options->auto_start.value = true;
    if (options->pids_limit.value < 0)
        options->pids_limit.value = 0;
}

/* What plain processes cannot keep. */
static bool check_isolation(const DkrSandboxOptions *options, GError **error)
{
    if (strcmp(options->isolation, LOCAL_BUBBLEWRAP) == 0)
        return true;
    const char *wrong = strcmp(options->network, "none") == 0     ? "network"
                        : options->hostname                       ? "hostname"
                        : options->working_directory              ? "workingDirectory"
                        : options->cap_drop && *options->cap_drop ? "capDrop"
                        : options->mounts.count > 0               ? "mounts"
                                                                  : NULL;
    return !wrong || spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-option",
                              "%s: with \"isolation\": \"none\" there is nothing to keep it with: "
                              "leave one of the two out",
                              wrong);
}

bool dkr_sandbox_options_parse(const char *json, DkrSandboxOptions **ret_options, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "sandbox options", &object, error))
        return false;
    g_autoptr(DkrSandboxOptions) options = g_new0(DkrSandboxOptions, 1);
    if (!dkr_json_read_object(object, NULL, option_fields, options, error))
        return false;
    fill_defaults(options);
    if (!check_isolation(options, error))
        return false;
    *ret_options = g_steal_pointer(&options);
    return true;
}

DkrCommonOptions dkr_sandbox_options_common(const DkrSandboxOptions *options)
{
    return (DkrCommonOptions){.id = options->id,
                              .id_is_generated = options->id_is_generated,
                              .env = &options->env,
                              .auto_start = options->auto_start.value,
                              .timeout_ms = options->timeout.value,
                              .is_supervised = true};
}

/* ------------------------------------------------------------------------ configuration */

static const DkrJsonField config_fields[] = {
    {"runtimeDir", dkr_json_read_text, offsetof(LocalConfig, runtime_dir),
     .wrong = dkr_json_wrong_path},
    {NULL},
};

void local_config_free(LocalConfig *config)
{
    if (!config)
        return;
    g_free(config->runtime_dir);
    g_free(config);
}

bool local_config_parse(const char *json, LocalConfig **ret_config, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "provider config", &object, error))
        return false;
    g_autoptr(LocalConfig) config = g_new0(LocalConfig, 1);
    if (!dkr_json_read_object(object, NULL, config_fields, config, error))
        return false;
    *ret_config = g_steal_pointer(&config);
    return true;
}
