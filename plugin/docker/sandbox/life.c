#include "sandbox/life.h"

#include "base/error.h"
#include "sandbox/layout.h"

#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static char **archive_mounts(json_t *mounts)
{
    GPtrArray *list = g_ptr_array_new();
    size_t i;
    json_t *mount;
    json_array_foreach(mounts, i, mount) {
        const char *type = text(mount, "Type");
        const char *target = text(mount, "Destination");
        if (type && target && (strcmp(type, "volume") == 0 || strcmp(type, "bind") == 0))
            g_ptr_array_add(list, g_strdup(target));
    }
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

/* Its label tells whether a supervisor is in it and how it was started. */
static DkrLink *find_link(const DkrContext *context, const DkrSandboxOptions *options,
                          const json_t *inspect, DkrLinkSocket *socket)
{
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    const json_t *pid = json_object_get(json_object_get(inspect, "State"), "Pid");
    const char *label = text(labels, DKR_SUPERVISOR_LABEL);
    if (!label || strcmp(options->supervisor, "off") == 0)
        return NULL;
    DkrLinkSpec spec = {.container = text(inspect, "Id"),
                        .is_main = g_str_has_suffix(label, ":main"),
                        .is_required = strcmp(options->supervisor, "required") == 0,
                        .transport = options->transport,
                        .socket_path = text(labels, DKR_SOCKET_LABEL),
                        .pid = (pid_t)json_integer_value(pid),
                        .socket = socket};
    return dkr_link_new(context, &spec);
}

DkrLife *dkr_life_new(const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, GError **error)
{
    const json_t *config = json_object_get(inspect, "Config");
    const char *id = text(inspect, "Id");
    const char *workdir = text(config, "WorkingDir");
    if (!id || !*id || !json_is_object(config)) {
        spr_fail(error, SPR_E_IO, "bad-answer", "the engine's record of a container is none");
        return NULL;
    }
    DkrLife *life = g_new0(DkrLife, 1);
    g_atomic_ref_count_init(&life->refs);
    life->container = g_strdup(id);
    life->image = g_strdup(text(config, "Image"));
    life->workdir = g_strdup(workdir && *workdir == '/' ? workdir : "/");
    life->started = g_strdup(text(json_object_get(inspect, "State"), "StartedAt"));
    life->link = find_link(context, options, inspect, socket);
    life->socket = g_strdup(text(json_object_get(config, "Labels"), DKR_SOCKET_LABEL));
    life->mounts = archive_mounts(json_object_get(inspect, "Mounts"));
    return life;
}

DkrLife *dkr_life_ref(DkrLife *life)
{
    g_atomic_ref_count_inc(&life->refs);
    return life;
}

void dkr_life_unref(DkrLife *life)
{
    if (!life || !g_atomic_ref_count_dec(&life->refs))
        return;
    dkr_link_free(life->link);
    g_free(life->container);
    g_free(life->image);
    g_free(life->workdir);
    g_free(life->started);
    g_free(life->socket);
    g_strfreev(life->mounts);
    g_free(life);
}

DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context)
{
    return (DkrVenue){.context = context, .container = life->container, .link = life->link};
}

char *dkr_life_absolute(const DkrLife *life, const char *path)
{
    if (*path == '/')
        return g_strdup(path);
    return g_strdup_printf("%s%s%s", life->workdir,
                           g_str_has_suffix(life->workdir, "/") ? "" : "/", path);
}
