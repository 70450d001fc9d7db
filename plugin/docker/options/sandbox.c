#include "options/sandbox.h"

#include "base/error.h"
#include "options/json.h"
#include "options/mounts.h"
#include "options/names.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(DkrSandboxOptions, member)

void dkr_sandbox_options_free(DkrSandboxOptions *options)
{
    if (!options)
        return;
    g_free(options->id);
    g_free(options->name);
    g_free(options->image);
    g_free(options->template_id);
    g_free(options->template_json);
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
    for (size_t i = 0; i < options->ulimits.count; i++)
        g_free(options->ulimits.items[i].name);
    g_free(options->ulimits.items);
    g_strfreev(options->cap_drop);
    g_strfreev(options->cap_add);
    g_strfreev(options->security_opt);
    g_free(options->instructions);
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

static const char *wrong_variable(const char *name, const char *text)
{
    return strchr(name, '=') ? "a variable's name must not contain \"=\"" : NULL;
}

static const char *wrong_user(const char *key, const char *user)
{
    g_auto(GStrv) parts = g_strsplit(user, ":", -1);
    guint count = g_strv_length(parts);
    bool fits = count == 1 || (count == 2 && parts[1][0] != '\0');
    return fits && parts[0][0] != '\0' ? NULL : "expected a name or uid, or \"user:group\"";
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

static bool refuse_docker_options(const json_t *value, const DkrJsonPath *path,
                                  const DkrJsonField *field, void *target, GError **error)
{
    return spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-option",
                    "dockerOptions is not supported; name the engine in the provider's "
                    "configuration instead: {\"host\": \"unix:///var/run/docker.sock\"}");
}

/* The kernel clamps CPU shares to this and knows no more pids; beyond, an engine would take the
 * number and the sandbox get less. */
#define MAX_CPU_SHARES 262144
#define MAX_PIDS 4194304
#define MAX_CPU_PERIOD 1000000

static const char *const supervisor_modes[] = {"auto", "required", "off", NULL};
static const char *const transports[] = {"auto", "socket", "stream", NULL};

static const DkrJsonField option_fields[] = {
    {"id", dkr_json_read_text, AT(id), 1, DKR_ID_MAX_BYTES},
    {"name", dkr_json_read_text, AT(name), .min = 1},
    {"image", dkr_json_read_text, AT(image), .min = 1},
    {"template", read_template, AT(template_id), .min = 1},
    {"command", read_command, AT(command)},
    {"env", dkr_json_read_pairs, AT(env), .wrong = wrong_variable},
    {"workingDirectory", dkr_json_read_text, AT(working_directory), .wrong = dkr_json_wrong_path},
    {"workingDir", read_working_dir, AT(working_directory), .wrong = dkr_json_wrong_path},
    {"user", dkr_json_read_text, AT(user), .min = 1, .wrong = wrong_user},
    {"labels", dkr_json_read_pairs, AT(labels), .wrong = dkr_name_wrong_label},
    {"volumes", dkr_json_read_pairs, AT(volumes), .min = 1, .wrong = dkr_volume_wrong},
    {"tmpfs", dkr_json_read_pairs, AT(tmpfs), .wrong = dkr_tmpfs_wrong},
    {"mounts", dkr_mounts_read, AT(mounts)},
    {"network", dkr_json_read_text, AT(network), .min = 1},
    {"privileged", dkr_json_read_bool, AT(privileged)},
    {"memory", dkr_json_read_integer, AT(memory), 0, G_MAXINT64},
    {"memorySwap", dkr_json_read_integer, AT(memory_swap), -1, G_MAXINT64},
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
    {"supervisor", dkr_json_read_word, AT(supervisor), .words = supervisor_modes},
    {"transport", dkr_json_read_word, AT(transport), .words = transports},
    {"timeout", dkr_json_read_integer, AT(timeout), 0, G_MAXINT64},
    {"autoStart", dkr_json_read_bool, AT(auto_start)},
    {"instructions", dkr_json_read_text, AT(instructions)},
    {"dockerOptions", refuse_docker_options},
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

static bool check_image(const DkrSandboxOptions *options, GError **error)
{
    bool has_template = options->template_id || options->template_json;
    if (has_template && options->image)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                        "image and template are mutually exclusive; leave one of them out");
    return true;
}

static void fill_defaults(DkrSandboxOptions *options)
{
    static const char *const keep_alive[] = {"sleep", "infinity", NULL};
    options->id_is_generated = !options->id;
    if (!options->id)
        options->id = dkr_name_generate_id();
    if (!options->image && !options->template_id && !options->template_json)
        options->image = g_strdup(DKR_DEFAULT_IMAGE);
    options->command_is_set = options->command != NULL;
    if (!options->command)
        options->command = g_strdupv((char **)keep_alive);
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

bool dkr_sandbox_options_parse(const char *json, DkrSandboxOptions **ret_options, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "sandbox options", &object, error))
        return false;
    g_autoptr(DkrSandboxOptions) options = g_new0(DkrSandboxOptions, 1);
    if (!dkr_json_read_object(object, NULL, option_fields, options, error) ||
        !check_image(options, error) || !check_transport(options, error) ||
        !dkr_mounts_check_targets(options, error))
        return false;
    fill_defaults(options);
    *ret_options = g_steal_pointer(&options);
    return true;
}

const char *dkr_sandbox_options_workdir(const DkrSandboxOptions *options,
                                        const char *template_workdir)
{
    if (options->working_directory)
        return options->working_directory;
    return template_workdir ? template_workdir : DKR_DEFAULT_WORKING_DIRECTORY;
}
