#include "sandbox/blame.h"

#include "base/error.h"
#include "engine/failure.h"
#include "options/json.h"
#include "options/rules.h"
#include "sandbox/blame_own.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ lists of texts */

typedef bool (*Means)(const char *low, const char *value);

/* The one of the list that is meant; the only one; or the list. */
static char *find_in(const char *option, char *const *list, Means means, const char *low)
{
    if (!list || !*list)
        return NULL;
    for (size_t i = 0; list[i]; i++) {
        if (means(low, list[i]))
            return dkr_blame_named_at(option, i, "", list[i]);
    }
    return list[1] ? g_strdup(option) : dkr_blame_named_at(option, 0, "", list[0]);
}

static bool means_capability(const char *low, const char *value)
{
    bool prefixed = g_ascii_strncasecmp(value, "CAP_", 4) == 0;
    g_autofree char *name = g_strconcat("CAP_", prefixed ? value + 4 : value, NULL);
    return dkr_blame_has_quoted(low, name);
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
    return is_refused_whole ? dkr_blame_has_quoted(low, value) : dkr_blame_has(low, kind);
}

static char *find_security(const DkrSandboxOptions *o, const char *low)
{
    return find_in("securityOpt", o->security_opt, means_security, low);
}

static bool means_device(const char *low, const char *value)
{
    g_autofree char *path = g_strndup(value, strcspn(value, ":"));
    return dkr_blame_has_quoted(low, path);
}

static bool means_device_inside(const char *low, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, ":", 3);
    return dkr_blame_has(low, parts[1] ? parts[1] : parts[0]);
}

static char *find_device_inside(const DkrSandboxOptions *o, const char *low)
{
    return find_in("devices", o->devices, means_device_inside, low);
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
            return dkr_blame_named_key(object, &pairs->items[i]);
    }
    return NULL;
}

static bool means_target_of_bind(const char *low, const DkrPair *pair)
{
    g_autofree char *target = g_strndup(pair->value, strcspn(pair->value, ":"));
    return dkr_blame_has_quoted(low, target);
}

/* /tmp is not meant by /var/tmp. */
static bool has_source(const char *low, const char *source)
{
    g_autofree char *spaced = source ? g_strconcat(" ", source, NULL) : NULL;
    return spaced && (dkr_blame_has(low, spaced) || dkr_blame_has_quoted(low, source));
}

static bool means_source(const char *low, const DkrPair *pair)
{
    return has_source(low, pair->name);
}

static bool means_mode(const char *low, const DkrPair *pair)
{
    const char *mode = strchr(pair->value, ':');
    return mode && dkr_blame_has(low, mode + 1);
}

static bool means_target(const char *low, const DkrPair *pair)
{
    return dkr_blame_has_quoted(low, pair->name);
}

/* Of "size=1m,bogus=2" the name of one that is quoted. */
static bool means_tmpfs_option(const char *low, const DkrPair *pair)
{
    g_auto(GStrv) options = g_strsplit(pair->value, ",", -1);
    for (char **option = options; *option; option++) {
        g_autofree char *name = g_strndup(*option, strcspn(*option, "="));
        if (dkr_blame_has_quoted(low, name))
            return true;
    }
    return false;
}

static char *find_mount(const DkrSandboxOptions *o, const char *low, bool by_target)
{
    for (size_t i = 0; i < o->mounts.count; i++) {
        const DkrMount *mount = &o->mounts.items[i];
        if (by_target && dkr_blame_has_quoted(low, mount->target))
            return dkr_blame_named_at("mounts", i, ".target", mount->target);
        if (!by_target && has_source(low, mount->source))
            return dkr_blame_named_at("mounts", i, ".source", mount->source);
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

/* 'source:/target:options' */
static bool means_specification(const char *low, const DkrPair *pair)
{
    g_autofree char *whole = g_strdup_printf("'%s:%s'", pair->name, pair->value);
    g_autofree char *needle = g_ascii_strdown(whole, -1);
    return strstr(low, needle) != NULL;
}

static char *find_specification(const DkrSandboxOptions *o, const char *low)
{
    char *found = find_pair("volumes", &o->volumes, low, means_specification);
    return found ? found : find_source(o, low);
}

/* Behind the path that the engine has of the sandbox's root. */
static char *find_target_inside(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->mounts.count; i++) {
        if (dkr_blame_has(low, o->mounts.items[i].target))
            return dkr_blame_named_at("mounts", i, ".target", o->mounts.items[i].target);
    }
    for (size_t i = 0; i < o->volumes.count; i++) {
        const DkrPair *pair = &o->volumes.items[i];
        g_autofree char *target = g_strndup(pair->value, strcspn(pair->value, ":"));
        if (dkr_blame_has(low, target))
            return dkr_blame_named_key("volumes", pair);
    }
    return NULL;
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
            return dkr_blame_named_at("mounts", i, ".bindOptions.propagation", mount->propagation);
    }
    return find_source(o, low);
}

/* Of one volume several subpaths may be mounted. */
static char *find_subpath(const DkrSandboxOptions *o, const char *low)
{
    const DkrMount *found = NULL;
    for (size_t i = 0; i < o->mounts.count; i++) {
        const DkrMount *mount = &o->mounts.items[i];
        g_autofree char *named = g_strdup_printf("/%s/_data", mount->source ?: "");
        g_autofree char *root = g_ascii_strdown(named, -1);
        if (!mount->subpath || !strstr(low, root))
            continue;
        if (!found || dkr_blame_has(low, mount->subpath))
            found = mount;
    }
    return found ? dkr_blame_named_at("mounts", (size_t)(found - o->mounts.items),
                                      ".volumeOptions.subpath", found->subpath)
                 : NULL;
}

/* ------------------------------------------------------------------------- the rest */

static char *find_runtime(const DkrSandboxOptions *o, const char *low)
{
    return dkr_blame_named_text("runtime", o->runtime);
}

/* Another option may be called a network, too. */
static char *find_network(const DkrSandboxOptions *o, const char *low)
{
    const char *peer = o->network ? strchr(o->network, ':') : NULL;
    bool is_told =
        o->network && (dkr_blame_has(low, o->network) || (peer && dkr_blame_has(low, peer + 1)));
    return is_told || strstr(low, "network mode") ? dkr_blame_named_text("network", o->network)
                                                  : NULL;
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
    return dkr_blame_named_text("user", o->user);
}

static char *find_hostname(const DkrSandboxOptions *o, const char *low)
{
    return dkr_blame_named_text("hostname", o->hostname);
}

static char *find_dns(const DkrSandboxOptions *o, const char *low)
{
    return o->dns ? g_strdup("dns") : NULL;
}

static char *find_extra_hosts(const DkrSandboxOptions *o, const char *low)
{
    return o->extra_hosts.count > 0 ? g_strdup("extraHosts") : NULL;
}

/* How well text fits a published port: the address and port it asks for; the port; the address, of
 * which the engine chose the port; the protocol. */
static int port_fits(const char *low, const DkrPair *pair)
{
    const char *colon = strrchr(pair->value, ':');
    const char *number = colon ? colon + 1 : pair->value;
    g_autofree char *address =
        colon ? g_strndup(pair->value, (gsize)(colon - pair->value)) : g_strdup("127.0.0.1");
    g_autofree char *port = g_strdup_printf(":%d", atoi(number));
    g_autofree char *both = g_strconcat(address, port, NULL);
    g_autofree char *any = g_strconcat(address, ":", NULL);
    bool is_chosen = atoi(number) == 0;
    if (strstr(low, "protocol not supported"))
        return g_str_has_suffix(pair->name, "/sctp") ? 4 : 0;
    if (!is_chosen && dkr_blame_has(low, both))
        return 3;
    if (!is_chosen && dkr_blame_has(low, port))
        return 2;
    return is_chosen && strstr(low, any) ? 1 : 0;
}

static char *find_port(const DkrSandboxOptions *o, const char *low)
{
    const DkrPair *best = o->ports.count == 1 ? &o->ports.items[0] : NULL;
    int fits = 0;
    for (size_t i = 0; i < o->ports.count; i++) {
        int now = port_fits(low, &o->ports.items[i]);
        if (now > fits)
            best = &o->ports.items[i];
        fits = MAX(fits, now);
    }
    if (best)
        return dkr_blame_named_key("ports", best);
    return o->ports.count > 0 ? g_strdup("ports") : NULL;
}

static char *find_workdir(const DkrSandboxOptions *o, const char *low)
{
    const char *path = o->working_directory;
    return path && dkr_blame_has(low, path) ? dkr_blame_named("workingDirectory", path) : NULL;
}

/* A directory on the way to it that could not be made. */
static char *find_workdir_parent(const DkrSandboxOptions *o, const char *low)
{
    const char *made = strstr(low, "mkdir /") + strlen("mkdir ");
    gsize size = strcspn(made, ": ");
    g_autofree char *path = o->working_directory ? g_ascii_strdown(o->working_directory, -1) : NULL;
    return path && strncmp(path, made, size) == 0 && strchr("/", path[size])
               ? dkr_blame_named("workingDirectory", o->working_directory)
               : NULL;
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
        return dkr_blame_named_at("entrypoint", 0, "", *o->entrypoint);
    return o->command_is_set ? dkr_blame_named_at("command", 0, "", *o->command) : NULL;
}

/* Its value may be a secret, and is long. */
static char *find_long_variable(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->env.count; i++) {
        const DkrPair *variable = &o->env.items[i];
        g_autofree char *quoted = dkr_json_quote(variable->name);
        if (strlen(variable->name) + strlen("=") + strlen(variable->value) > DKR_ARGUMENT_MAX)
            return g_strdup_printf("env[%s], which has 128 KiB or more", quoted);
    }
    return NULL;
}

static char *find_image(const DkrSandboxOptions *o, const char *low)
{
    return dkr_blame_named_text("image", o->image_is_set ? o->image : NULL);
}

#define NUMBER(path, member) NULL, path, offsetof(DkrSandboxOptions, member)

/* What engines from 19.03 to 26.1 and their runtimes say; the first that finds an option counts. */
static const struct {
    const char *says; /* lower case */
    char *(*find)(const DkrSandboxOptions *o, const char *low);
    const char *path; /* without find: of a number, and where that lies */
    size_t at;
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
    {"creating device nodes", find_device_inside},
    {"minimum memory limit", NUMBER("memory", memory)},
    {"unable to set memory limit", NUMBER("memory", memory)},
    {"memoryswap", NUMBER("memorySwap", memory_swap)},
    {"shm size", NUMBER("shmSize", shm_size)},
    {"range of cpus", dkr_blame_cpus},
    {"nanocpus", dkr_blame_cpus},
    {"cfs quota", NUMBER("cpuQuota", cpu_quota)},
    {"cfs period", NUMBER("cpuPeriod", cpu_period)},
    {"cpu-shares", NUMBER("cpuShares", cpu_shares)},
    {"cpu shares", NUMBER("cpuShares", cpu_shares)},
    {"pids limit", NUMBER("pidsLimit", pids_limit)},
    {"rlimit", dkr_blame_ulimit},
    {"ulimit", dkr_blame_ulimit},
    {"too many open files", dkr_blame_files},
    {"cannot allocate memory", dkr_blame_addresses},
    {"resource temporarily unavailable", dkr_blame_processes},
    {"invalid tmpfs option", find_tmpfs},
    {"invalid mode:", find_mode},
    {"not a shared mount", find_propagation},
    {"not a shared or slave mount", find_propagation},
    {"source path does not exist", find_source},
    {"local volume name", find_source},
    {"volume name is too short", find_source},
    {"volume specification", find_specification},
    {"invalid mount config", find_source},
    {"error while creating mount source path", find_source},
    {"error mounting", find_target},
    {"duplicate mount point", find_target},
    {"no such container", find_network},
    {"unable to find user", find_user},
    {"unable to find group", find_user},
    {"uids and gids must be in range", find_user},
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
    {"path concatenation escapes", find_subpath},
    {"cannot access path", find_subpath},
    {"not a directory", find_source},
    {"not a directory", find_workdir},
    {"is not directory", find_target_inside},
    {"mkdir /", find_workdir_parent},
    {"argument list too long", find_long_variable},
    {"docker-init", find_init},
    {"exec: \"", find_program},
};

char *dkr_blame(const DkrSandboxOptions *options, const char *text)
{
    g_autofree char *low = g_ascii_strdown(text, -1);
    char *found = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(rules) && !found; i++) {
        const void *number = (const char *)options + rules[i].at;
        if (!strstr(low, rules[i].says))
            continue;
        found = rules[i].find ? rules[i].find(options, low)
                              : dkr_blame_named_number(rules[i].path, *(const DkrOptInt *)number);
    }
    return found;
}

/* What the main process printed of how it was started: the supervisor's words, or the engine's
 * init's. */
static char *blame_main(const DkrSandboxOptions *options, const char *text)
{
    g_autofree char *low = g_ascii_strdown(text, -1);
    if (strstr(low, "resource temporarily unavailable"))
        return dkr_blame_processes(options, low);
    if (strstr(low, "argument list too long"))
        return find_long_variable(options, low);
    return strstr(low, "it printed: sprov: ") ? find_program(options, low) : NULL;
}

static bool blame_engine(const DkrSandboxOptions *options, const char *option, GError **error)
{
    static const char *const vague[] = {"engine-refused", "engine-error", "not-found",
                                        "start-failed", NULL};
    int status = dkr_failure_status(*error);
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

bool dkr_blame_option(const DkrSandboxOptions *options, GError **error)
{
    bool is_main = spr_error_is(*error, SPR_E_NOT_READY, "main-process-ended");
    g_autofree char *option = NULL;
    if (is_main)
        option = blame_main(options, (*error)->message);
    else if (dkr_failure_status(*error) != 0)
        option = dkr_blame(options, (*error)->message);
    if (!option)
        return false;
    if (!is_main)
        return blame_engine(options, option, error);
    g_prefix_error(error, "%s: ", option);
    return true;
}
