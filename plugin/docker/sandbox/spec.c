#include "sandbox/spec.h"

#include "base/error.h"
#include "options/json.h"
#include "sandbox/layout.h"
#include "sandbox/tmpfs.h"
#include "supervised/owner.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Takes value, NULL when it could not be made. A lost member must not become a lost option. */
static void put(json_t *object, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(object, key, value) != 0)
        *ok = false;
}

static void put_text(json_t *object, const char *key, const char *text, bool *ok)
{
    if (text)
        put(object, key, json_string(text), ok);
}

static void put_bool(json_t *object, const char *key, DkrOptBool option, bool *ok)
{
    if (option.is_set)
        put(object, key, json_boolean(option.value), ok);
}

static void put_integer(json_t *object, const char *key, DkrOptInt option, bool *ok)
{
    if (option.is_set)
        put(object, key, json_integer(option.value), ok);
}

static void append(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0)
        *ok = false;
}

static void put_texts(json_t *object, const char *key, char *const *texts, bool *ok)
{
    if (!texts)
        return;
    json_t *array = json_array();
    for (; *texts; texts++)
        append(array, json_string(*texts), ok);
    put(object, key, array, ok);
}

/* "name<separator>value" */
static void put_pair_list(json_t *object, const char *key, const DkrPairs *pairs, char separator,
                          bool *ok)
{
    if (pairs->count == 0)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < pairs->count; i++) {
        const DkrPair *pair = &pairs->items[i];
        append(array, json_sprintf("%s%c%s", pair->name, separator, pair->value), ok);
    }
    put(object, key, array, ok);
}

static json_t *pairs_object(const DkrPairs *pairs, bool *ok)
{
    json_t *object = json_object();
    for (size_t i = 0; i < pairs->count; i++)
        put_text(object, pairs->items[i].name, pairs->items[i].value, ok);
    return object;
}

static void put_pairs(json_t *object, const char *key, const DkrPairs *pairs, bool *ok)
{
    if (pairs->count > 0)
        put(object, key, pairs_object(pairs, ok), ok);
}

static void put_tmpfs(json_t *host, const DkrPairs *tmpfs, bool *ok)
{
    if (tmpfs->count == 0)
        return;
    json_t *object = json_object();
    for (size_t i = 0; i < tmpfs->count; i++) {
        g_autofree char *options = dkr_tmpfs_with_mode(tmpfs->items[i].value);
        put_text(object, tmpfs->items[i].name, options, ok);
    }
    put(host, "Tmpfs", object, ok);
}

static void put_ulimits(json_t *host, const DkrUlimits *ulimits, bool *ok)
{
    if (ulimits->count == 0)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < ulimits->count; i++) {
        const DkrUlimit *ulimit = &ulimits->items[i];
        json_t *entry = json_object();
        put_text(entry, "Name", ulimit->name, ok);
        put_integer(entry, "Soft", ulimit->soft, ok);
        put_integer(entry, "Hard", ulimit->hard, ok);
        append(array, entry, ok);
    }
    put(host, "Ulimits", array, ok);
}

/* Takes group; one without members is not sent. */
static void put_group(json_t *mount, const char *key, json_t *group, bool *ok)
{
    if (json_object_size(group) > 0)
        put(mount, key, group, ok);
    else
        json_decref(group);
}

static json_t *mount_entry(const DkrMount *mount, bool *ok)
{
    static const char *const group_keys[] = {[DKR_MOUNT_VOLUME] = "VolumeOptions",
                                             [DKR_MOUNT_BIND] = "BindOptions",
                                             [DKR_MOUNT_TMPFS] = "TmpfsOptions"};
    json_t *entry = json_object();
    put_text(entry, "Type", mount->type_name, ok);
    put_text(entry, "Source", mount->source ? mount->source : "", ok);
    put_text(entry, "Target", mount->target, ok);
    put_bool(entry, "ReadOnly", mount->read_only, ok);
    json_t *group = json_object();
    put_text(group, "Subpath", mount->subpath, ok);
    put_bool(group, "NoCopy", mount->no_copy, ok);
    put_pairs(group, "Labels", &mount->labels, ok);
    put_text(group, "Propagation", mount->propagation, ok);
    put_integer(group, "SizeBytes", mount->size_bytes, ok);
    if (mount->type == DKR_MOUNT_TMPFS)
        put(group, "Mode", json_integer(mount->mode.is_set ? mount->mode.value : DKR_TMPFS_MODE),
            ok);
    put_group(entry, group_keys[mount->type], group, ok);
    return entry;
}

static void put_mounts(json_t *host, const DkrMounts *mounts, bool *ok)
{
    if (mounts->count == 0)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < mounts->count; i++)
        append(array, mount_entry(&mounts->items[i], ok), ok);
    put(host, "Mounts", array, ok);
}

/* Ours come last, so that nothing of the user replaces them. */
static json_t *labels_object(const DkrSandboxOptions *o, const DkrSpecContext *ctx, bool *ok)
{
    json_t *labels = pairs_object(&o->labels, ok);
    put(labels, DKR_LABEL_VERSION, json_string(ctx->version), ok);
    put(labels, DKR_LABEL_CREATED, json_string(ctx->created), ok);
    put(labels, DKR_LABEL_OWNER, json_string(ctx->owner), ok);
    if (ctx->supervisor)
        put(labels, DKR_SUPERVISOR_LABEL,
            json_sprintf("%s:%s", ctx->supervisor->id, ctx->supervisor->is_main ? "main" : "exec"),
            ok);
    if (ctx->supervisor && ctx->supervisor->socket)
        put(labels, DKR_SOCKET_LABEL, json_string(ctx->supervisor->socket), ok);
    put(labels, "mastra.sandbox", json_string("true"), ok);
    put(labels, "mastra.sandbox.id", json_string(o->id), ok);
    return labels;
}

char *dkr_spec_socket_inside(const char *socket)
{
    g_autofree char *name = g_path_get_basename(socket);
    return g_build_filename(DKR_SUPERVISOR_HOST_DIRECTORY, name, NULL);
}

/* Read-only: who is inside connects and does nothing else. A source that is missing is an error of
 * the engine, never a folder made there. */
static void put_socket_folder(json_t *mounts, const char *socket, bool *ok)
{
    g_autofree char *folder = g_path_get_dirname(socket);
    append(mounts,
           json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source", folder, "Target",
                     DKR_SUPERVISOR_HOST_DIRECTORY, "ReadOnly", 1),
           ok);
}

/* The program's volume, and a place of its own for its socket. */
static void put_supervisor(json_t *host, const DkrSpecSupervisor *supervisor, bool *ok)
{
    json_t *mounts = json_object_get(host, "Mounts");
    json_t *tmpfs = json_object_get(host, "Tmpfs");
    if (!mounts)
        put(host, "Mounts", mounts = json_array(), ok);
    if (!tmpfs)
        put(host, "Tmpfs", tmpfs = json_object(), ok);
    append(mounts,
           json_pack("{s:s, s:s, s:s, s:b, s:{s:b}}", "Type", "volume", "Source",
                     supervisor->volume, "Target", DKR_SUPERVISOR_DIRECTORY, "ReadOnly", 1,
                     "VolumeOptions", "NoCopy", 1),
           ok);
    if (supervisor->socket)
        put_socket_folder(mounts, supervisor->socket, ok);
    put(tmpfs, DKR_SUPERVISOR_RUN_DIRECTORY, json_string(DKR_SUPERVISOR_RUN_OPTIONS), ok);
    if (supervisor->is_main)
        put(host, "Init", json_false(), ok); /* the supervisor is the init */
}

/* Entrypoint and command mean what they mean without it: the image's entrypoint before the command.
 * The keep-alive alone needs no process: the supervisor stays. */
static void put_main_process(json_t *body, const DkrSandboxOptions *o,
                             const DkrSpecSupervisor *supervisor, bool *ok)
{
    json_t *command = json_array();
    bool keeps_alive = !o->command_is_set && (!supervisor->entrypoint || !*supervisor->entrypoint);
    for (char *const *word = supervisor->entrypoint; word && *word; word++)
        append(command, json_string(*word), ok);
    for (char *const *word = o->command; !keeps_alive && *word; word++)
        append(command, json_string(*word), ok);
    json_t *entrypoint =
        json_pack("[s, s, s]", DKR_SUPERVISOR_PROGRAM, "init", DKR_SUPERVISOR_RUN_DIRECTORY);
    if (supervisor->socket) {
        g_autofree char *inside = dkr_spec_socket_inside(supervisor->socket);
        append(entrypoint, json_string("--dial"), ok);
        append(entrypoint, json_string(inside), ok);
    }
    append(entrypoint, json_string("--"), ok);
    put(body, "Entrypoint", entrypoint, ok);
    put(body, "Cmd", command, ok);
}

/* "/dev/on/host[:/path/inside[:permissions]]", as options/rules.h checked it */
static void put_devices(json_t *host, char *const *devices, bool *ok)
{
    if (!devices)
        return;
    json_t *array = json_array();
    for (; *devices; devices++) {
        g_auto(GStrv) parts = g_strsplit(*devices, ":", 3);
        guint count = g_strv_length(parts);
        append(array,
               json_pack("{s:s, s:s, s:s}", "PathOnHost", parts[0], "PathInContainer",
                         count > 1 ? parts[1] : parts[0], "CgroupPermissions",
                         count > 2 ? parts[2] : "rwm"),
               ok);
    }
    put(host, "Devices", array, ok);
}

static void put_gpus(json_t *host, const DkrGpus *gpus, bool *ok)
{
    if (gpus->count == 0 && !gpus->ids)
        return;
    json_t *request = json_object();
    put_text(request, "Driver", "", ok);
    put(request, "Count", json_integer(gpus->count), ok);
    put_texts(request, "DeviceIDs", gpus->ids, ok);
    if (!gpus->ids)
        put(request, "DeviceIDs", json_null(), ok);
    put(request, "Capabilities", json_pack("[[s]]", "gpu"), ok);
    put(request, "Options", json_null(), ok);
    json_t *array = json_array();
    append(array, request, ok);
    put(host, "DeviceRequests", array, ok);
}

/* Without an address only the engine's machine gets there. */
static json_t *port_binding(const char *at)
{
    const char *colon = strrchr(at, ':');
    g_autofree char *address = colon ? g_strndup(at, (gsize)(colon - at)) : g_strdup("127.0.0.1");
    gsize size = strlen(address);
    bool in_brackets = address[0] == '[';
    g_autofree char *port = g_strdup_printf("%d", atoi(colon ? colon + 1 : at));
    return json_pack("[{s:s%, s:s}]", "HostIp", address + in_brackets, size - 2 * in_brackets,
                     "HostPort", port);
}

static void put_ports(json_t *body, json_t *host, const DkrPairs *ports, bool *ok)
{
    if (ports->count == 0)
        return;
    json_t *exposed = json_object(), *bindings = json_object();
    for (size_t i = 0; i < ports->count; i++) {
        g_autofree char *port = dkr_sandbox_options_port(ports->items[i].name);
        put(exposed, port, json_object(), ok);
        put(bindings, port, port_binding(ports->items[i].value), ok);
    }
    put(body, "ExposedPorts", exposed, ok);
    put(host, "PortBindings", bindings, ok);
}

static json_t *host_config(const DkrSandboxOptions *o, const DkrSpecSupervisor *supervisor,
                           bool *ok)
{
    json_t *host = json_object();
    put_pair_list(host, "Binds", &o->volumes, ':', ok);
    put_text(host, "NetworkMode", o->network, ok);
    put(host, "Privileged", json_boolean(o->privileged.value), ok);
    put_integer(host, "Memory", o->memory, ok);
    put_integer(host, "MemorySwap", o->memory_swap, ok);
    put_integer(host, "ShmSize", o->shm_size, ok);
    put_integer(host, "NanoCpus", o->nano_cpus, ok);
    put_integer(host, "CpuShares", o->cpu_shares, ok);
    put_integer(host, "CpuQuota", o->cpu_quota, ok);
    put_integer(host, "CpuPeriod", o->cpu_period, ok);
    put_integer(host, "PidsLimit", o->pids_limit, ok);
    put(host, "Init", json_boolean(o->init.value), ok);
    put_bool(host, "ReadonlyRootfs", o->readonly_rootfs, ok);
    put_texts(host, "CapDrop", o->cap_drop, ok);
    put_texts(host, "CapAdd", o->cap_add, ok);
    put_texts(host, "SecurityOpt", o->security_opt, ok);
    put_ulimits(host, &o->ulimits, ok);
    put_texts(host, "Dns", o->dns, ok);
    put_pair_list(host, "ExtraHosts", &o->extra_hosts, ':', ok);
    put_devices(host, o->devices, ok);
    put_gpus(host, &o->gpus, ok);
    put_text(host, "Runtime", o->runtime, ok);
    put_tmpfs(host, &o->tmpfs, ok);
    put_mounts(host, &o->mounts, ok);
    if (supervisor)
        put_supervisor(host, supervisor, ok);
    return host;
}

char *dkr_spec_create_body(const DkrSandboxOptions *options, const DkrSpecContext *ctx,
                           GError **error)
{
    bool ok = true;
    json_auto_t *body = json_object();
    put(body, "Image", json_string(ctx->image), &ok);
    if (ctx->supervisor && ctx->supervisor->is_main) {
        put_main_process(body, options, ctx->supervisor, &ok);
    } else {
        put_texts(body, "Entrypoint", options->entrypoint, &ok);
        put_texts(body, "Cmd", options->command, &ok);
    }
    put_pair_list(body, "Env", &options->env, '=', &ok);
    put_text(body, "WorkingDir", ctx->workdir, &ok);
    put_text(body, "User", options->user, &ok);
    put_text(body, "Hostname", options->hostname, &ok);
    put_integer(body, "StopTimeout", options->stop_timeout, &ok);
    put(body, "Labels", labels_object(options, ctx, &ok), &ok);
    put(body, "OpenStdin", json_true(), &ok); /* nobody attaches; the reference's value */
    put(body, "Tty", json_false(), &ok);
    json_t *host = host_config(options, ctx->supervisor, &ok);
    put_ports(body, host, &options->ports, &ok);
    put(body, "HostConfig", host, &ok);
    char *text = ok ? dkr_json_to_text(body) : NULL;
    if (!text)
        spr_fail(error, SPR_E_INTERNAL, "create-body",
                 "the request that creates sandbox %s could not be written", options->id);
    return text;
}

static char *find_subpath(const DkrSandboxOptions *options)
{
    for (size_t i = 0; i < options->mounts.count; i++) {
        if (options->mounts.items[i].subpath)
            return g_strdup_printf("mounts[%zu].volumeOptions.subpath", i);
    }
    return NULL;
}

static char *find_platform(const DkrSandboxOptions *options)
{
    return options->platform ? g_strdup("platform") : NULL;
}

static char *find_host_gateway(const DkrSandboxOptions *options)
{
    for (size_t i = 0; i < options->extra_hosts.count; i++) {
        const DkrPair *pair = &options->extra_hosts.items[i];
        g_autofree char *quoted = dkr_json_quote(pair->name);
        if (strcmp(pair->value, "host-gateway") == 0)
            return g_strdup_printf("extraHosts[%s]", quoted);
    }
    return NULL;
}

static char *find_gpus(const DkrSandboxOptions *options)
{
    return options->gpus.count != 0 || options->gpus.ids ? g_strdup("gpus") : NULL;
}

static char *find_mounts(const DkrSandboxOptions *options)
{
    return options->mounts.count > 0 ? g_strdup("mounts") : NULL;
}

/* What an engine ignores in silence when its API is older; newest first. */
static const struct {
    char *(*find)(const DkrSandboxOptions *); /* the option's path, NULL when not used */
    int api_minor;
    const char *engine; /* the first with that API */
} api_needs[] = {
    {find_subpath, 45, "26.0"}, {find_platform, 41, "20.10"}, {find_host_gateway, 41, "20.10"},
    {find_gpus, 40, "19.03"},   {find_mounts, 25, "1.13"},
};

bool dkr_spec_check_api(const DkrSandboxOptions *options, int api_minor, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(api_needs); i++) {
        if (api_minor >= api_needs[i].api_minor)
            continue;
        g_autofree char *path = api_needs[i].find(options);
        if (path)
            return spr_fail(error, SPR_E_UNSUPPORTED, "api-too-old",
                            "%s needs Docker API 1.%d (Docker Engine %s or newer), this engine "
                            "has 1.%d; use a newer engine or leave the option out",
                            path, api_needs[i].api_minor, api_needs[i].engine, api_minor);
    }
    return true;
}
