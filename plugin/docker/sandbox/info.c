#include "sandbox/info.h"

#include "options/json.h"
#include "options/names.h"

#include <string.h>

#define PROVIDER_ID "docker"
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
        "and the exit code come back separately.\n"
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

static void put_container(json_t *info, const json_t *inspect)
{
    const json_t *config = json_object_get(inspect, "Config");
    put_time(info, "createdAt", text_at(inspect, "Created"));
    put(info, "containerId", text_at(inspect, "Id"));
    put(info, "containerName", without_slash(text_at(inspect, "Name")));
    put(info, "state", text_at(json_object_get(inspect, "State"), "Status"));
    put_labels(info, json_object_get(config, "Labels"));
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

char *dkr_info_sandbox(const DkrInfoSource *source, const json_t *inspect)
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
