#include "sandbox/info.h"

#include "options/json.h"
#include "options/names.h"

#include <string.h>

#define PROVIDER_ID "docker"
#define DEFAULT_PERIOD 100000 /* of a CPU quota, in microseconds */
#define ID_LABEL "mastra.sandbox.id"
#define RFC3339_UTC "%Y-%m-%dT%H:%M:%SZ"

const char *dkr_info_status(const char *state)
{
    static const struct {
        const char *state;
        const char *status;
    } known[] = {
        {"running", "running"}, {"paused", "paused"},  {"restarting", "starting"},
        {"created", "stopped"}, {"exited", "stopped"}, {"removing", "destroying"},
        {"dead", "error"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_strcmp0(state, known[i].state) == 0)
            return known[i].status;
    }
    return "unknown";
}

char *dkr_info_instructions(const char *image, const char *workdir)
{
    return g_strdup_printf(
        "This sandbox is a Docker container made from the image %s.\n"
        "Its working directory is %s: commands start there and relative paths begin there.\n"
        "Run commands as a shell line or as a list of arguments; standard output, standard error "
        "and the exit code come back separately. What has to run on beside them, such as a server, "
        "is started as a background process.\n"
        "Read and write files by path, byte for byte; they outlive a stop of the sandbox, not its "
        "removal.",
        image, workdir);
}

/* A member that is not known is left out. */
static void put(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* RFC 3339 in UTC. Docker writes it so; Podman writes local time with an offset. */
static void put_time(json_t *object, const char *key, const char *text)
{
    if (!text || g_str_has_suffix(text, "Z")) {
        put(object, key, text);
        return;
    }
    g_autoptr(GDateTime) local = g_date_time_new_from_iso8601(text, NULL);
    g_autoptr(GDateTime) utc = local ? g_date_time_to_utc(local) : NULL;
    g_autofree char *normal = utc ? g_date_time_format(utc, RFC3339_UTC) : NULL;
    put(object, key, normal);
}

static void put_labels(json_t *object, const json_t *all)
{
    json_t *labels = json_object();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)all, name, value)
    {
        if (!dkr_name_is_reserved_label(name))
            json_object_set(labels, name, value);
    }
    json_object_set_new(object, "labels", labels);
}

static void put_asked_labels(json_t *object, const DkrPairs *pairs)
{
    json_t *labels = json_object();
    for (size_t i = 0; i < pairs->count; i++)
        put(labels, pairs->items[i].name, pairs->items[i].value);
    json_object_set_new(object, "labels", labels);
}

static const char *without_slash(const char *name)
{
    return name && name[0] == '/' ? name + 1 : name;
}

/* A number that is not known, or 0 for "no limit", is left out. */
static void put_positive(json_t *object, const char *key, const json_t *value)
{
    if (json_integer_value(value) > 0)
        json_object_set_new(object, key, json_integer(json_integer_value(value)));
}

/* However it was asked for: as processors, or as a quota of a period. */
static double processors(const json_t *host)
{
    double quota = (double)json_integer_value(json_object_get(host, "CpuQuota"));
    double period = (double)json_integer_value(json_object_get(host, "CpuPeriod"));
    double nano = (double)json_integer_value(json_object_get(host, "NanoCpus"));
    return nano > 0 ? nano / 1e9 : quota > 0 ? quota / (period > 0 ? period : DEFAULT_PERIOD) : 0;
}

static void put_limits(json_t *info, const json_t *host)
{
    json_t *limits = json_object();
    double cpus = processors(host);
    put_positive(limits, "memory", json_object_get(host, "Memory"));
    put_positive(limits, "memorySwap", json_object_get(host, "MemorySwap"));
    put_positive(limits, "pids", json_object_get(host, "PidsLimit"));
    if (cpus > 0)
        json_object_set_new(limits, "cpus", json_real(cpus));
    json_object_set_new(info, "limits", limits);
}

/* Without the cache of files that it could give back at once, as docker stats counts. */
static json_int_t memory_in_use(const json_t *memory)
{
    const json_t *stats = json_object_get(memory, "stats");
    const json_t *cache = json_object_get(stats, "inactive_file");
    json_int_t usage = json_integer_value(json_object_get(memory, "usage"));
    if (!cache)
        cache = json_object_get(stats, "total_inactive_file"); /* cgroups of version 1 */
    return usage > json_integer_value(cache) ? usage - json_integer_value(cache) : usage;
}

static json_int_t over_networks(const json_t *stats, const char *key)
{
    json_int_t sum = 0;
    const char *name;
    json_t *network;
    json_object_foreach(json_object_get(stats, "networks"), name, network)
    {
        sum += json_integer_value(json_object_get(network, key));
    }
    return sum;
}

static void put_usage(json_t *info, const json_t *stats)
{
    const json_t *cpu = json_object_get(json_object_get(stats, "cpu_stats"), "cpu_usage");
    const json_t *pids = json_object_get(json_object_get(stats, "pids_stats"), "current");
    json_object_set_new(info, "usage",
                        json_pack("{s:I, s:I, s:I, s:I, s:I}", "memory",
                                  memory_in_use(json_object_get(stats, "memory_stats")),
                                  "processes", json_integer_value(pids), "cpuNanoseconds",
                                  json_integer_value(json_object_get(cpu, "total_usage")),
                                  "receivedBytes", over_networks(stats, "rx_bytes"), "sentBytes",
                                  over_networks(stats, "tx_bytes")));
}

/* Where each published port is reached; one of several addresses. */
static void put_ports(json_t *info, const json_t *network)
{
    json_t *ports = json_object();
    const char *port;
    json_t *bindings;
    json_object_foreach(json_object_get(network, "Ports"), port, bindings)
    {
        const json_t *first = json_array_get(bindings, 0);
        const char *address = text_at(first, "HostIp"), *at = text_at(first, "HostPort");
        if (address && at)
            json_object_set_new(
                ports, port, json_sprintf(strchr(address, ':') ? "[%s]:%s" : "%s:%s", address, at));
    }
    if (json_object_size(ports) > 0)
        json_object_set(info, "ports", ports);
    json_decref(ports);
}

static void put_container(json_t *info, const json_t *inspect)
{
    const json_t *config = json_object_get(inspect, "Config");
    put_time(info, "createdAt", text_at(inspect, "Created"));
    put(info, "containerId", text_at(inspect, "Id"));
    put(info, "containerName", without_slash(text_at(inspect, "Name")));
    put(info, "state", text_at(json_object_get(inspect, "State"), "Status"));
    put_labels(info, json_object_get(config, "Labels"));
    put_limits(info, json_object_get(inspect, "HostConfig"));
    put_ports(info, json_object_get(inspect, "NetworkSettings"));
}

/* A container without a directory of its own runs commands in "/". */
static const char *container_workdir(const json_t *inspect)
{
    const char *workdir = text_at(json_object_get(inspect, "Config"), "WorkingDir");
    return workdir && workdir[0] ? workdir : "/";
}

static const char *image_in_use(const DkrInfoSource *source, const json_t *inspect)
{
    const char *image = text_at(json_object_get(inspect, "Config"), "Image");
    if (!image)
        image = source->image ? source->image : source->options->image;
    return image ? image : source->options->template_id; /* a definition has no name yet */
}

static void put_instructions(json_t *info, const DkrSandboxOptions *options, const char *image,
                             const char *workdir)
{
    g_autofree char *own = dkr_info_instructions(image ? image : "of its template", workdir);
    put(info, "instructions", options->instructions ? options->instructions : own);
}

char *dkr_info_sandbox(const DkrInfoSource *source, const json_t *inspect, const json_t *stats)
{
    const DkrSandboxOptions *options = source->options;
    const char *state = text_at(json_object_get(inspect, "State"), "Status");
    const char *image = image_in_use(source, inspect);
    const char *workdir = inspect ? container_workdir(inspect)
                                  : dkr_sandbox_options_workdir(options, source->workdir);
    json_auto_t *info = json_object();
    put(info, "id", options->id);
    put(info, "name", options->name ? options->name : options->id);
    put(info, "provider", PROVIDER_ID);
    put(info, "status", inspect ? dkr_info_status(state) : source->status);
    put(info, "workingDirectory", workdir);
    put_instructions(info, options, image, workdir);
    put(info, "image", image);
    if (inspect)
        put_container(info, inspect);
    else
        put_asked_labels(info, &options->labels);
    if (stats)
        put_usage(info, stats);
    json_object_set_new(info, "supervisor",
                        json_pack("{ss ss* ss* ss*}", "mode",
                                  source->supervisor_reason ? "off" : "on", "reason",
                                  source->supervisor_reason, "transport", source->transport,
                                  "transportReason", source->transport_reason));
    return dkr_json_to_text(info);
}

/* The name that was asked for is not kept; a container called after its id had none. */
static const char *listed_name(const char *id, const char *container_name)
{
    g_autofree char *from_id = dkr_name_for_container(id, NULL);
    return g_strcmp0(container_name, from_id) == 0 || !container_name ? id : container_name;
}

/* The container's own name; those with a second slash are links of other containers to it. */
static const char *own_name(const json_t *element)
{
    const json_t *names = json_object_get(element, "Names");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = without_slash(json_string_value(json_array_get(names, i)));
        if (name && !strchr(name, '/'))
            return name;
    }
    return NULL;
}

char *dkr_info_listed(const json_t *element)
{
    const json_t *labels = json_object_get(element, "Labels");
    const char *id = text_at(labels, ID_LABEL);
    if (!id)
        return NULL;
    const char *name = own_name(element);
    const char *state = text_at(element, "State");
    const json_t *created = json_object_get(element, "Created"); /* seconds since 1970 */
    g_autoptr(GDateTime) time =
        created ? g_date_time_new_from_unix_utc(json_integer_value(created)) : NULL;
    g_autofree char *created_at = time ? g_date_time_format(time, RFC3339_UTC) : NULL;
    json_auto_t *info = json_object();
    put(info, "id", id);
    put(info, "name", listed_name(id, name));
    put(info, "provider", PROVIDER_ID);
    put(info, "status", dkr_info_status(state));
    put(info, "createdAt", created_at);
    put(info, "image", text_at(element, "Image"));
    put(info, "containerId", text_at(element, "Id"));
    put(info, "containerName", name);
    put(info, "state", state);
    put_labels(info, labels);
    return dkr_json_to_text(info);
}
