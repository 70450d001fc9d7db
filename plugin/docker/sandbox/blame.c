#include "sandbox/blame.h"

#include "base/error.h"
#include "engine/failure.h"
#include "options/json.h"

#include <string.h>
#include <sys/resource.h>

/* In all of them low is the engine's text in lower case. */

static bool is_of_name(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("_.-/", c));
}

/* value where it is no part of a longer name; a path may stand behind others. */
static bool has(const char *low, const char *value)
{
    g_autofree char *needle = g_ascii_strdown(value, -1);
    bool is_bounded = *needle == '/' || !is_of_name(*needle);
    for (const char *at = low; *needle && (at = strstr(at, needle)); at++) {
        bool begins = at == low || is_bounded || !is_of_name(at[-1]);
        if (begins && !is_of_name(at[strlen(needle)]))
            return true;
    }
    return false;
}

/* Quoted as engines quote paths and names. */
static bool has_quoted(const char *low, const char *value)
{
    g_autofree char *name = g_ascii_strdown(value, -1);
    g_autofree char *quoted = g_strdup_printf("\"%s\"", name);
    return strstr(low, quoted) != NULL;
}

static char *named(const char *path, const char *value)
{
    g_autofree char *quoted = dkr_json_quote(value);
    return g_strdup_printf("%s %s", path, quoted);
}

static char *named_text(const char *path, const char *value)
{
    return value ? named(path, value) : NULL;
}

static char *named_number(const char *path, DkrOptInt option)
{
    return option.is_set ? g_strdup_printf("%s %" G_GINT64_FORMAT, path, option.value) : NULL;
}

static char *named_at(const char *list, size_t i, const char *member, const char *value)
{
    g_autofree char *path = g_strdup_printf("%s[%zu]%s", list, i, member);
    return named(path, value);
}

static char *named_key(const char *object, const DkrPair *pair)
{
    g_autofree char *quoted = dkr_json_quote(pair->name);
    g_autofree char *path = g_strdup_printf("%s[%s]", object, quoted);
    return named(path, pair->value);
}

/* ------------------------------------------------------------------ lists of texts */

typedef bool (*Means)(const char *low, const char *value);

/* The one of the list that is meant; the only one; or the list. */
static char *find_in(const char *option, char *const *list, Means means, const char *low)
{
    if (!list || !*list)
        return NULL;
    for (size_t i = 0; list[i]; i++) {
        if (means(low, list[i]))
            return named_at(option, i, "", list[i]);
    }
    return list[1] ? g_strdup(option) : named_at(option, 0, "", list[0]);
}

static bool means_capability(const char *low, const char *value)
{
    bool prefixed = g_ascii_strncasecmp(value, "CAP_", 4) == 0;
    g_autofree char *name = g_strconcat("CAP_", prefixed ? value + 4 : value, NULL);
    return has_quoted(low, name);
}

static char *find_cap_drop(const DkrSandboxOptions *o, const char *low)
{
    return find_in("capDrop", o->cap_drop, means_capability, low);
}

static char *find_cap_add(const DkrSandboxOptions *o, const char *low)
{
    return find_in("capAdd", o->cap_add, means_capability, low);
}

/* "seccomp" of "seccomp=profile", where the text does not tell all of it */
static bool means_security(const char *low, const char *value)
{
    g_autofree char *kind = g_strndup(value, strcspn(value, "=:"));
    bool is_refused_whole = strstr(low, "--security-opt");
    return is_refused_whole ? has_quoted(low, value) : has(low, kind);
}

static char *find_security(const DkrSandboxOptions *o, const char *low)
{
    return find_in("securityOpt", o->security_opt, means_security, low);
}

static bool means_device(const char *low, const char *value)
{
    g_autofree char *path = g_strndup(value, strcspn(value, ":"));
    return has_quoted(low, path);
}

static char *find_device(const DkrSandboxOptions *o, const char *low)
{
    return find_in("devices", o->devices, means_device, low);
}

/* ------------------------------------------------------------------------- mounts */

static char *find_pair(const char *object, const DkrPairs *pairs, const char *low,
                       bool (*means)(const char *low, const DkrPair *pair))
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (means(low, &pairs->items[i]))
            return named_key(object, &pairs->items[i]);
    }
    return NULL;
}

static bool means_target_of_bind(const char *low, const DkrPair *pair)
{
    g_autofree char *target = g_strndup(pair->value, strcspn(pair->value, ":"));
    return has_quoted(low, target);
}

/* /tmp is not meant by /var/tmp. */
static bool has_source(const char *low, const char *source)
{
    g_autofree char *spaced = source ? g_strconcat(" ", source, NULL) : NULL;
    return spaced && (has(low, spaced) || has_quoted(low, source));
}

static bool means_source(const char *low, const DkrPair *pair)
{
    return has_source(low, pair->name);
}

static bool means_mode(const char *low, const DkrPair *pair)
{
    const char *mode = strchr(pair->value, ':');
    return mode && has(low, mode + 1);
}

static bool means_target(const char *low, const DkrPair *pair)
{
    return has_quoted(low, pair->name);
}

/* Of "size=1m,bogus=2" the name of one that is quoted. */
static bool means_tmpfs_option(const char *low, const DkrPair *pair)
{
    g_auto(GStrv) options = g_strsplit(pair->value, ",", -1);
    for (char **option = options; *option; option++) {
        g_autofree char *name = g_strndup(*option, strcspn(*option, "="));
        if (has_quoted(low, name))
            return true;
    }
    return false;
}

static char *find_mount(const DkrSandboxOptions *o, const char *low, bool by_target)
{
    for (size_t i = 0; i < o->mounts.count; i++) {
        const DkrMount *mount = &o->mounts.items[i];
        if (by_target && has_quoted(low, mount->target))
            return named_at("mounts", i, ".target", mount->target);
        if (!by_target && has_source(low, mount->source))
            return named_at("mounts", i, ".source", mount->source);
    }
    return NULL;
}

static char *find_target(const DkrSandboxOptions *o, const char *low)
{
    char *found = find_mount(o, low, true);
    found = found ? found : find_pair("volumes", &o->volumes, low, means_target_of_bind);
    return found ? found : find_pair("tmpfs", &o->tmpfs, low, means_target);
}

static char *find_source(const DkrSandboxOptions *o, const char *low)
{
    char *found = find_mount(o, low, false);
    return found ? found : find_pair("volumes", &o->volumes, low, means_source);
}

static char *find_mode(const DkrSandboxOptions *o, const char *low)
{
    return find_pair("volumes", &o->volumes, low, means_mode);
}

static char *find_tmpfs(const DkrSandboxOptions *o, const char *low)
{
    return find_pair("tmpfs", &o->tmpfs, low, means_tmpfs_option);
}

static char *find_propagation(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->mounts.count; i++) {
        const DkrMount *mount = &o->mounts.items[i];
        if (mount->propagation && has_source(low, mount->source))
            return named_at("mounts", i, ".bindOptions.propagation", mount->propagation);
    }
    return find_source(o, low);
}

/* -------------------------------------------------------------------------- limits */

static char *find_memory(const DkrSandboxOptions *o, const char *low)
{
    return named_number("memory", o->memory);
}

static char *find_memory_swap(const DkrSandboxOptions *o, const char *low)
{
    return named_number("memorySwap", o->memory_swap);
}

static char *find_shm_size(const DkrSandboxOptions *o, const char *low)
{
    return named_number("shmSize", o->shm_size);
}

static char *find_cpus(const DkrSandboxOptions *o, const char *low)
{
    return o->nano_cpus.is_set ? g_strdup_printf("cpus %g", (double)o->nano_cpus.value / 1e9)
                               : NULL;
}

static char *find_cpu_quota(const DkrSandboxOptions *o, const char *low)
{
    return named_number("cpuQuota", o->cpu_quota);
}

static char *find_cpu_period(const DkrSandboxOptions *o, const char *low)
{
    return named_number("cpuPeriod", o->cpu_period);
}

static char *find_cpu_shares(const DkrSandboxOptions *o, const char *low)
{
    return named_number("cpuShares", o->cpu_shares);
}

static char *find_pids_limit(const DkrSandboxOptions *o, const char *low)
{
    return named_number("pidsLimit", o->pids_limit);
}

/* Runtimes tell a limit by the kernel's number. */
static const struct {
    const char *name;
    int number;
} rlimits[] = {
    {"cpu", RLIMIT_CPU},           {"fsize", RLIMIT_FSIZE},
    {"data", RLIMIT_DATA},         {"stack", RLIMIT_STACK},
    {"core", RLIMIT_CORE},         {"rss", RLIMIT_RSS},
    {"nproc", RLIMIT_NPROC},       {"nofile", RLIMIT_NOFILE},
    {"memlock", RLIMIT_MEMLOCK},   {"as", RLIMIT_AS},
    {"locks", RLIMIT_LOCKS},       {"sigpending", RLIMIT_SIGPENDING},
    {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"rtprio", RLIMIT_RTPRIO},     {"rttime", RLIMIT_RTTIME},
};

static bool means_ulimit(const char *low, const char *name)
{
    g_autofree char *spelled = g_strconcat("rlimit_", name, NULL);
    if (has(low, spelled) || has(low, name))
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(rlimits); i++) {
        g_autofree char *numbered = g_strdup_printf("rlimit type %d:", rlimits[i].number);
        if (g_ascii_strcasecmp(rlimits[i].name, name) == 0)
            return strstr(low, numbered) != NULL;
    }
    return false;
}

static char *find_ulimit(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->ulimits.count; i++) {
        if (means_ulimit(low, o->ulimits.items[i].name))
            return named_at("ulimits", i, ".name", o->ulimits.items[i].name);
    }
    return o->ulimits.count > 0 ? g_strdup("ulimits") : NULL;
}

/* ------------------------------------------------------------------------- the rest */

static char *find_runtime(const DkrSandboxOptions *o, const char *low)
{
    return named_text("runtime", o->runtime);
}

/* Another option may be called a network, too. */
static char *find_network(const DkrSandboxOptions *o, const char *low)
{
    const char *peer = o->network ? strchr(o->network, ':') : NULL;
    bool is_told = o->network && (has(low, o->network) || (peer && has(low, peer + 1)));
    return is_told || strstr(low, "network mode") ? named_text("network", o->network) : NULL;
}

static char *find_gpus(const DkrSandboxOptions *o, const char *low)
{
    if (o->gpus.ids)
        return g_strdup("gpus");
    if (o->gpus.count < 0)
        return g_strdup("gpus \"all\"");
    return o->gpus.count > 0 ? g_strdup_printf("gpus %" G_GINT64_FORMAT, o->gpus.count) : NULL;
}

static char *find_user(const DkrSandboxOptions *o, const char *low)
{
    return named_text("user", o->user);
}

static char *find_hostname(const DkrSandboxOptions *o, const char *low)
{
    return named_text("hostname", o->hostname);
}

static char *find_dns(const DkrSandboxOptions *o, const char *low)
{
    return o->dns ? g_strdup("dns") : NULL;
}

static char *find_extra_hosts(const DkrSandboxOptions *o, const char *low)
{
    return o->extra_hosts.count > 0 ? g_strdup("extraHosts") : NULL;
}

static char *find_port(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->ports.count; i++) {
        const char *at = o->ports.items[i].value, *colon = strrchr(at, ':');
        g_autofree char *shown = g_strconcat(":", colon ? colon + 1 : at, NULL);
        if (has(low, shown))
            return named_key("ports", &o->ports.items[i]);
    }
    return o->ports.count > 0 ? g_strdup("ports") : NULL;
}

static char *find_workdir(const DkrSandboxOptions *o, const char *low)
{
    const char *path = o->working_directory;
    return path && has(low, path) ? named("workingDirectory", path) : NULL;
}

static char *find_privileged(const DkrSandboxOptions *o, const char *low)
{
    return o->privileged.value ? g_strdup("privileged true") : find_cap_add(o, low);
}

static char *find_init(const DkrSandboxOptions *o, const char *low)
{
    return o->init.value ? g_strdup("init true") : NULL;
}

static char *find_program(const DkrSandboxOptions *o, const char *low)
{
    if (o->entrypoint && *o->entrypoint)
        return named_at("entrypoint", 0, "", *o->entrypoint);
    return o->command_is_set ? named_at("command", 0, "", *o->command) : NULL;
}

static char *find_image(const DkrSandboxOptions *o, const char *low)
{
    return named_text("image", o->image_is_set ? o->image : NULL);
}

/* What engines from 19.03 to 26.1 and their runtimes say; the first that finds an option counts. */
static const struct {
    const char *says; /* lower case */
    char *(*find)(const DkrSandboxOptions *o, const char *low);
} rules[] = {
    {"invalid capdrop", find_cap_drop},
    {"invalid capadd", find_cap_add},
    {"apply caps", find_privileged},
    {"--security-opt", find_security},
    {"seccomp", find_security},
    {"apparmor", find_security},
    {"selinux", find_security},
    {"invalid runtime name", find_runtime},
    {"unknown runtime", find_runtime},
    {"gathering device information", find_device},
    {"device driver", find_gpus},
    {"minimum memory limit", find_memory},
    {"memoryswap", find_memory_swap},
    {"shm size", find_shm_size},
    {"range of cpus", find_cpus},
    {"nanocpus", find_cpus},
    {"cfs quota", find_cpu_quota},
    {"cfs period", find_cpu_period},
    {"cpu-shares", find_cpu_shares},
    {"cpu shares", find_cpu_shares},
    {"pids limit", find_pids_limit},
    {"rlimit", find_ulimit},
    {"ulimit", find_ulimit},
    {"invalid tmpfs option", find_tmpfs},
    {"invalid mode:", find_mode},
    {"not a shared mount", find_propagation},
    {"not a shared or slave mount", find_propagation},
    {"source path does not exist", find_source},
    {"local volume name", find_source},
    {"invalid mount config", find_source},
    {"volume specification", find_source},
    {"error while creating mount source path", find_source},
    {"error mounting", find_target},
    {"duplicate mount point", find_target},
    {"no such container", find_network},
    {"unable to find user", find_user},
    {"unable to find group", find_user},
    {"invalid hostname", find_hostname},
    {"hostname and the network mode", find_hostname},
    {"dns and the network mode", find_dns},
    {"host-to-ip", find_extra_hosts},
    {"host-gateway", find_extra_hosts},
    {"port is already allocated", find_port},
    {"external connectivity", find_port},
    {"bind host port", find_port},
    {"listen tcp", find_port},
    {"listen udp", find_port},
    {"network", find_network},
    {"invalid reference format", find_image},
    {"not a directory", find_source},
    {"not a directory", find_workdir},
    {"docker-init", find_init},
    {"exec: \"", find_program},
};

char *dkr_blame(const DkrSandboxOptions *options, const char *text)
{
    g_autofree char *low = g_ascii_strdown(text, -1);
    char *found = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(rules) && !found; i++) {
        if (strstr(low, rules[i].says))
            found = rules[i].find(options, low);
    }
    return found;
}

bool dkr_blame_option(const DkrSandboxOptions *options, GError **error)
{
    static const char *const vague[] = {"engine-refused", "engine-error", "not-found",
                                        "start-failed", NULL};
    int status = dkr_failure_status(*error);
    g_autofree char *option = status != 0 ? dkr_blame(options, (*error)->message) : NULL;
    if (!option)
        return false;
    g_autoptr(GError) why = g_steal_pointer(error);
    const char *reason = spr_error_extra(why)->reason;
    const char *way = strstr(why->message, "not a directory")
                          ? "a part of that path is a file, name another: "
                          : "";
    spr_fail(error, why->code == SPR_E_INTERNAL ? SPR_E_INVALID_ARGUMENT : (SprErrorCode)why->code,
             g_strv_contains(vague, reason) ? "option-refused" : reason, "%s: %s%s", option, way,
             why->message);
    spr_error_set_native(error, status);
    return true;
}
