#include "options/sandbox.h"

#include "base/error.h"
#include "options/contradictions.h"
#include "options/json.h"
#include "options/mounts.h"
#include "options/names.h"
#include "options/rules.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CPUS 0.01 /* the engine's */
#define MAX_CPUS 1000000
#define MAX_GPUS 1000000
#define MAX_STOP_TIMEOUT_S 3600

#define AT(member) offsetof(DkrSandboxOptions, member)

void dkr_sandbox_options_free(DkrSandboxOptions *options)
{
    if (!options)
        return;
    g_strfreev(options->given);
    g_free(options->id);
    g_free(options->name);
    g_free(options->image);
    g_free(options->template_id);
    g_free(options->template_json);
    g_free(options->template_made);
    g_free(options->platform);
    g_free(options->pull_policy);
    g_strfreev(options->entrypoint);
    g_strfreev(options->command);
    g_free(options->supervisor);
    g_free(options->transport);
    dkr_pairs_clear(&options->env);
    g_free(options->working_directory);
    g_free(options->user);
    dkr_pairs_clear(&options->labels);
    dkr_pairs_clear(&options->volumes);
    dkr_pairs_clear(&options->tmpfs);
    dkr_mounts_clear(&options->mounts);
    g_free(options->network);
    g_free(options->hostname);
    g_strfreev(options->dns);
    dkr_pairs_clear(&options->extra_hosts);
    dkr_pairs_clear(&options->ports);
    g_strfreev(options->devices);
    g_strfreev(options->gpus.ids);
    g_free(options->runtime);
    for (size_t i = 0; i < options->ulimits.count; i++)
        g_free(options->ulimits.items[i].name);
    g_free(options->ulimits.items);
    g_strfreev(options->cap_drop);
    g_strfreev(options->cap_add);
    g_strfreev(options->security_opt);
    g_free(options->instructions);
    dkr_provider_config_free(options->docker_options);
    g_free(options);
}

static bool read_template(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                          void *target, GError **error)
{
    DkrSandboxOptions *options = target;
    if (json_is_string(value))
        return dkr_json_read_text(value, path, field, target, error);
    if (!json_is_object(value))
        return dkr_json_fail_type(path, value, "a template id or a definition", error);
    options->template_json = dkr_json_to_text(value);
    if (!options->template_json)
        return spr_fail(error, SPR_E_EXHAUSTED, "memory", "template: no memory left to keep it");
    return true;
}

/* The deprecated alias: the other key wins, whichever comes first. */
static bool read_working_dir(const json_t *value, const DkrJsonPath *path,
                             const DkrJsonField *field, void *target, GError **error)
{
    DkrSandboxOptions *options = target;
    char *real = g_steal_pointer(&options->working_directory);
    if (!dkr_json_read_text(value, path, field, target, error)) {
        g_free(real);
        return false;
    }
    if (real) {
        g_free(options->working_directory);
        options->working_directory = real;
    }
    return true;
}

static bool read_command(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    if (json_is_array(value) && json_array_size(value) == 0)
        return dkr_json_fail(path, error, "must not be empty; leave it out for \"sleep infinity\"");
    return dkr_json_read_texts(value, path, field, target, error);
}

static const DkrJsonField ulimit_fields[] = {
    {"name", dkr_json_read_text, offsetof(DkrUlimit, name), .min = 1, .is_required = true},
    {"soft", dkr_json_read_integer, offsetof(DkrUlimit, soft), -1, G_MAXINT64, true},
    {"hard", dkr_json_read_integer, offsetof(DkrUlimit, hard), -1, G_MAXINT64, true},
    {NULL},
};

static bool read_ulimits(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    if (!json_is_array(value))
        return dkr_json_fail_type(path, value, "an array of limits", error);
    DkrUlimits *ulimits = &((DkrSandboxOptions *)target)->ulimits;
    ulimits->items = g_new0(DkrUlimit, json_array_size(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        DkrJsonPath at = {.parent = path, .index = i};
        DkrUlimit *ulimit = &ulimits->items[ulimits->count++];
        if (!dkr_json_read_object(json_array_get(value, i), &at, ulimit_fields, ulimit, error))
            return false;
        bool above = ulimit->soft.value == -1 || ulimit->soft.value > ulimit->hard.value;
        if (ulimit->hard.value != -1 && above)
            return dkr_json_fail(&at, error, "\"soft\" is above \"hard\"");
    }
    return true;
}

/* A number of processors or parts of one, which the engine counts in billionths. */
static bool read_cpus(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    double cpus = json_number_value(value);
    char got[32];
    if (!json_is_number(value))
        return dkr_json_fail_type(path, value, "a number", error);
    if (cpus < MIN_CPUS || cpus > MAX_CPUS)
        return dkr_json_fail(path, error, "%s is out of range, must be 0.01 to %d",
                             g_ascii_formatd(got, sizeof got, "%.15g", cpus), MAX_CPUS);
    ((DkrSandboxOptions *)target)->nano_cpus =
        (DkrOptInt){.is_set = true, .value = (gint64)(cpus * 1e9 + 0.5)};
    return true;
}

static bool read_gpus(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    DkrGpus *gpus = &((DkrSandboxOptions *)target)->gpus;
    gint64 count = json_integer_value(value);
    if (json_is_array(value) && json_array_size(value) > 0)
        return dkr_json_read_texts(value, path, field, target, error);
    gpus->count = g_strcmp0(json_string_value(value), "all") == 0 ? -1 : count;
    if (gpus->count == -1 || (count > 0 && count <= MAX_GPUS))
        return true;
    return dkr_json_fail(path, error, "expected \"all\", how many, or an array of ids");
}

/* The kernel clamps CPU shares to this and knows no more pids; beyond, an engine would take the
 * number and the sandbox get less. */
#define MAX_CPU_SHARES 262144
#define MAX_PIDS 4194304
#define MAX_CPU_PERIOD 1000000

static const char *const pull_policies[] = {"missing", "always", "never", NULL};
static const char *const supervisor_modes[] = {"auto", "required", "off", NULL};
static const char *const transports[] = {"auto", "socket", "stream", NULL};

static const DkrJsonField option_fields[] = {
    {"id", dkr_json_read_text, AT(id), 1, DKR_ID_MAX_BYTES},
    {"name", dkr_json_read_text, AT(name), .min = 1},
    {"image", dkr_json_read_text, AT(image), .min = 1},
    {"template", read_template, AT(template_id), .min = 1},
    {"platform", dkr_json_read_text, AT(platform), .wrong = dkr_rule_platform},
    {"pullPolicy", dkr_json_read_word, AT(pull_policy), .words = pull_policies},
    {"entrypoint", dkr_json_read_texts, AT(entrypoint), .max = DKR_ARGUMENT_MAX},
    {"command", read_command, AT(command), .max = DKR_ARGUMENT_MAX},
    {"env", dkr_json_read_pairs, AT(env), .wrong = dkr_rule_variable},
    {"workingDirectory", dkr_json_read_text, AT(working_directory), .wrong = dkr_json_wrong_path},
    {"workingDir", read_working_dir, AT(working_directory), .wrong = dkr_json_wrong_path},
    {"user", dkr_json_read_text, AT(user), .min = 1, .wrong = dkr_rule_user},
    {"labels", dkr_json_read_pairs, AT(labels), .wrong = dkr_name_wrong_label},
    {"volumes", dkr_json_read_pairs, AT(volumes), .min = 1, .wrong = dkr_volume_wrong},
    {"tmpfs", dkr_json_read_pairs, AT(tmpfs), .wrong = dkr_tmpfs_wrong},
    {"mounts", dkr_mounts_read, AT(mounts)},
    {"network", dkr_json_read_text, AT(network), .min = 1},
    {"hostname", dkr_json_read_text, AT(hostname), .wrong = dkr_rule_hostname},
    {"dns", dkr_json_read_texts, AT(dns), .wrong = dkr_rule_address},
    {"extraHosts", dkr_json_read_pairs, AT(extra_hosts), .wrong = dkr_rule_extra_host},
    {"ports", dkr_json_read_pairs, AT(ports), .wrong = dkr_rule_port},
    {"devices", dkr_json_read_texts, AT(devices), .wrong = dkr_rule_device},
    {"gpus", read_gpus, AT(gpus.ids), .min = 1},
    {"runtime", dkr_json_read_text, AT(runtime), .min = 1},
    {"privileged", dkr_json_read_bool, AT(privileged)},
    {"memory", dkr_json_read_integer, AT(memory), 0, G_MAXINT64},
    {"memorySwap", dkr_json_read_integer, AT(memory_swap), -1, G_MAXINT64},
    {"shmSize", dkr_json_read_integer, AT(shm_size), 1, G_MAXINT64},
    {"cpus", read_cpus},
    {"cpuShares", dkr_json_read_integer, AT(cpu_shares), 0, MAX_CPU_SHARES},
    {"cpuQuota", dkr_json_read_integer, AT(cpu_quota), -1, G_MAXINT64},
    {"cpuPeriod", dkr_json_read_integer, AT(cpu_period), 0, MAX_CPU_PERIOD},
    {"pidsLimit", dkr_json_read_integer, AT(pids_limit), -1, MAX_PIDS},
    {"ulimits", read_ulimits, AT(ulimits)},
    {"init", dkr_json_read_bool, AT(init)},
    {"readonlyRootfs", dkr_json_read_bool, AT(readonly_rootfs)},
    {"capDrop", dkr_json_read_texts, AT(cap_drop), .min = 1},
    {"capAdd", dkr_json_read_texts, AT(cap_add), .min = 1},
    {"securityOpt", dkr_json_read_texts, AT(security_opt), .min = 1},
    {"stopTimeout", dkr_json_read_integer, AT(stop_timeout), 0, MAX_STOP_TIMEOUT_S},
    {"supervisor", dkr_json_read_word, AT(supervisor), .words = supervisor_modes},
    {"transport", dkr_json_read_word, AT(transport), .words = transports},
    {"timeout", dkr_json_read_integer, AT(timeout), 0, G_MAXINT64},
    {"autoStart", dkr_json_read_bool, AT(auto_start)},
    {"instructions", dkr_json_read_text, AT(instructions)},
    {"dockerOptions", dkr_provider_config_read, AT(docker_options)},
    {NULL},
};

static bool check_transport(const DkrSandboxOptions *options, GError **error)
{
    if (g_strcmp0(options->transport, "socket") != 0 || g_strcmp0(options->supervisor, "off") != 0)
        return true;
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                    "transport: a \"socket\" leads to the supervisor, which \"supervisor\": "
                    "\"off\" does without; leave one of them out");
}

static bool exclude(bool both, const char *text, GError **error)
{
    return !both || spr_fail(error, SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                             "%s; leave one of them out", text);
}

static bool check_exclusions(const DkrSandboxOptions *o, GError **error)
{
    bool has_template = o->template_id || o->template_json;
    bool has_quota = o->cpu_quota.is_set || o->cpu_period.is_set;
    return exclude(has_template && o->image, "image and template are mutually exclusive", error) &&
           exclude(has_template && o->platform,
                   "platform and template are mutually exclusive: a template has that of its base",
                   error) &&
           exclude(has_template && o->pull_policy,
                   "pullPolicy and template are mutually exclusive: a template is built", error) &&
           exclude(o->nano_cpus.is_set && has_quota,
                   "cpus and cpuQuota or cpuPeriod are mutually exclusive", error);
}

/* "address:port/protocol" of the engine's machine; NULL: any that is free. */
static char *published_at(const DkrPair *pair)
{
    g_autofree char *port = dkr_sandbox_options_port(pair->name);
    const char *colon = strrchr(pair->value, ':');
    int number = atoi(colon ? colon + 1 : pair->value);
    g_autofree char *address =
        colon ? g_strndup(pair->value, (gsize)(colon - pair->value)) : g_strdup("127.0.0.1");
    return number == 0 ? NULL : g_strdup_printf("%s:%d%s", address, number, strchr(port, '/'));
}

static bool check_pair_of_ports(const DkrPair *first, const DkrPair *second, GError **error)
{
    g_autofree char *port = dkr_sandbox_options_port(second->name);
    g_autofree char *other = dkr_sandbox_options_port(first->name);
    g_autofree char *at = published_at(second);
    g_autofree char *taken = published_at(first);
    if (strcmp(port, other) == 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "duplicate",
                        "ports: %s is there twice; leave one of them out", port);
    return !at || g_strcmp0(at, taken) != 0 ||
           spr_fail(error, SPR_E_INVALID_ARGUMENT, "duplicate",
                    "ports[\"%s\"]: %s is where ports[\"%s\"] is published already; choose another",
                    second->name, at, first->name);
}

/* Where the network is not the sandbox's own, an engine drops them or nothing could reach them. */
static bool check_ports(const DkrSandboxOptions *o, GError **error)
{
    const char *network = o->network ? o->network : "";
    bool is_others = strcmp(network, "none") == 0 || strcmp(network, "host") == 0 ||
                     g_str_has_prefix(network, "container:");
    if (o->ports.count > 0 && is_others)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                        "ports and network \"%s\" are mutually exclusive: that network is not the "
                        "sandbox's own; leave one of them out",
                        network);
    for (size_t i = 0; i < o->ports.count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!check_pair_of_ports(&o->ports.items[k], &o->ports.items[i], error))
                return false;
        }
    }
    return true;
}

static void fill_defaults(DkrSandboxOptions *options)
{
    static const char *const keep_alive[] = {"sleep", "infinity", NULL};
    static const char *const none[] = {NULL};
    options->id_is_generated = !options->id;
    if (!options->id)
        options->id = dkr_name_generate_id();
    options->image_is_set = options->image != NULL;
    if (!options->image && !options->template_id && !options->template_json)
        options->image = g_strdup(DKR_DEFAULT_IMAGE);
    bool has_entrypoint = options->entrypoint && *options->entrypoint;
    options->command_is_set = options->command || has_entrypoint;
    if (!options->command)
        options->command = g_strdupv((char **)(has_entrypoint ? none : keep_alive));
    if (!options->pull_policy)
        options->pull_policy = g_strdup("missing");
    if (!options->init.is_set)
        options->init.value = true;
    if (!options->supervisor)
        options->supervisor = g_strdup("auto");
    if (!options->transport)
        options->transport = g_strdup("auto");
    if (!options->timeout.is_set)
        options->timeout.value = DKR_DEFAULT_TIMEOUT_MS;
    if (!options->auto_start.is_set)
        options->auto_start.value = true;
}

static char **keys_of(json_t *object)
{
    g_autoptr(GStrvBuilder) keys = g_strv_builder_new();
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        g_strv_builder_add(keys, key);
    }
    return g_strv_builder_end(keys);
}

bool dkr_sandbox_options_parse(const char *json, DkrSandboxOptions **ret_options, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "sandbox options", &object, error))
        return false;
    g_autoptr(DkrSandboxOptions) options = g_new0(DkrSandboxOptions, 1);
    if (!dkr_json_read_object(object, NULL, option_fields, options, error) ||
        !check_exclusions(options, error) || !check_ports(options, error) ||
        !check_transport(options, error) || !dkr_contradictions_check(options, error) ||
        !dkr_mounts_check_targets(options, error))
        return false;
    options->given = keys_of(object);
    fill_defaults(options);
    *ret_options = g_steal_pointer(&options);
    return true;
}

bool dkr_sandbox_options_has(const DkrSandboxOptions *options, const char *key)
{
    return g_strv_contains((const char *const *)options->given, key);
}

char *dkr_sandbox_options_port(const char *key)
{
    const char *slash = strchr(key, '/');
    return g_strdup_printf("%d%s", atoi(key), slash ? slash : "/tcp");
}

const char *dkr_sandbox_options_workdir(const DkrSandboxOptions *options,
                                        const char *template_workdir)
{
    if (options->working_directory)
        return options->working_directory;
    return template_workdir ? template_workdir : DKR_DEFAULT_WORKING_DIRECTORY;
}

int dkr_sandbox_options_stop_s(const DkrSandboxOptions *options)
{
    return options->stop_timeout.is_set ? (int)options->stop_timeout.value
                                        : DKR_DEFAULT_STOP_TIMEOUT_S;
}

DkrCommonOptions dkr_sandbox_options_common(const DkrSandboxOptions *options)
{
    return (DkrCommonOptions){.id = options->id,
                              .id_is_generated = options->id_is_generated,
                              .env = &options->env,
                              .auto_start = options->auto_start.value,
                              .timeout_ms = options->timeout.value,
                              .stop_s = dkr_sandbox_options_stop_s(options),
                              .is_supervised = strcmp(options->supervisor, "off") != 0};
}
