#include "sandbox/life.h"

#include "base/error.h"
#include "sandbox/layout.h"
#include "supervised/owner.h"
#include "sandbox/placement.h"

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
    json_array_foreach(mounts, i, mount)
    {
        const char *type = text(mount, "Type");
        const char *target = text(mount, "Destination");
        if (type && target && (strcmp(type, "volume") == 0 || strcmp(type, "bind") == 0))
            g_ptr_array_add(list, g_strdup(target));
    }
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

bool dkr_life_only_stays(const json_t *inspect)
{
    const char *path = text(inspect, "Path");
    json_t *args = json_object_get(inspect, "Args");
    size_t count = json_array_size(args);
    const char *last = json_string_value(json_array_get(args, count - 1));
    if (g_strcmp0(path, DKR_SUPERVISOR_PROGRAM) == 0)
        return g_strcmp0(last, "--") == 0;
    return g_strcmp0(path, "sleep") == 0 && count == 1 && g_strcmp0(last, "infinity") == 0;
}

static bool is_of_reference(const json_t *labels)
{
    return g_strcmp0(text(labels, "mastra.sandbox"), "true") == 0 &&
           !text(labels, DKR_LABEL_VERSION);
}

/* Its label tells whether a supervisor is in it and how it was started. What the reference made has
 * none yet. */
static bool find_link(DkrLife *life, const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, const SprWait *wait,
                      GError **error)
{
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    const json_t *pid = json_object_get(json_object_get(inspect, "State"), "Pid");
    const char *label = text(labels, DKR_SUPERVISOR_LABEL);
    g_autofree char *program = NULL;
    DkrLinkSpec spec = {.container = life->container,
                        .sandbox = options->id,
                        .kind = DKR_LINK_ADOPTED,
                        .is_required = strcmp(options->supervisor, "required") == 0,
                        .transport = options->transport,
                        .socket_path = text(labels, DKR_SOCKET_LABEL),
                        .pid = (pid_t)json_integer_value(pid),
                        .socket = socket};
    if (strcmp(options->supervisor, "off") == 0) {
        life->unlinked = g_strdup("it is switched off in the options");
    } else if (label) {
        spec.kind = g_str_has_suffix(label, ":main") ? DKR_LINK_MAIN : DKR_LINK_OURS;
        program = g_strdup(DKR_SUPERVISOR_PROGRAM);
    } else if (!is_of_reference(labels)) {
        life->unlinked = g_strdup("its container was made without one");
    } else if (!dkr_placement_adopt(context, inspect, wait, &program, &life->unlinked, error)) {
        return false;
    }
    spec.program = program;
    life->link = program ? dkr_link_new(context, &spec) : NULL;
    return life->link || !spec.is_required ||
           spr_fail(error, SPR_E_UNSUPPORTED, "no-supervisor", "supervisor: it is required, and %s",
                    life->unlinked);
}

DkrLife *dkr_life_new(const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, const SprWait *wait,
                      GError **error)
{
    const json_t *config = json_object_get(inspect, "Config");
    const char *id = text(inspect, "Id");
    const char *workdir = text(config, "WorkingDir");
    if (!id || !*id || !json_is_object(config)) {
        spr_fail(error, SPR_E_IO, "bad-answer", "the engine's record of a container is none");
        return NULL;
    }
    g_autoptr(DkrLife) life = g_new0(DkrLife, 1);
    g_atomic_ref_count_init(&life->refs);
    dkr_transfers_init(&life->transfers);
    life->container = g_strdup(id);
    life->image = g_strdup(text(config, "Image"));
    life->workdir = g_strdup(workdir && *workdir == '/' ? workdir : "/");
    life->only_stays = dkr_life_only_stays(inspect);
    life->started = g_strdup(text(json_object_get(inspect, "State"), "StartedAt"));
    life->socket = g_strdup(text(json_object_get(config, "Labels"), DKR_SOCKET_LABEL));
    life->mounts = archive_mounts(json_object_get(inspect, "Mounts"));
    if (!find_link(life, context, options, inspect, socket, wait, error))
        return NULL;
    return g_steal_pointer(&life);
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
    dkr_transfers_clear(&life->transfers);
    dkr_link_free(life->link);
    g_free(life->unlinked);
    g_free(life->container);
    g_free(life->image);
    g_free(life->workdir);
    g_free(life->started);
    g_free(life->socket);
    g_strfreev(life->mounts);
    g_free(life);
}

char *dkr_life_unsupervised(const DkrLife *life)
{
    return life->link ? dkr_link_reason(life->link) : g_strdup(life->unlinked);
}

DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context)
{
    return (DkrVenue){.context = context, .container = life->container, .link = life->link};
}

const SprLog *dkr_context_log(const DkrContext *context)
{
    return &context->log;
}

DkrLink *dkr_life_link(const DkrLife *life)
{
    return life->link;
}

DkrTransfers *dkr_life_transfers(DkrLife *life)
{
    return &life->transfers;
}

char *dkr_life_absolute(const DkrLife *life, const char *path)
{
    if (!path || *path == '/')
        return g_strdup(path ? path : life->workdir);
    return g_strdup_printf("%s%s%s", life->workdir, g_str_has_suffix(life->workdir, "/") ? "" : "/",
                           path);
}
