#include "sandbox/life.h"

#include "base/error.h"

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

DkrLife *dkr_life_new(const json_t *inspect, GError **error)
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
    g_free(life->container);
    g_free(life->image);
    g_free(life->workdir);
    g_strfreev(life->mounts);
    g_free(life);
}

char *dkr_life_absolute(const DkrLife *life, const char *path)
{
    if (*path == '/')
        return g_strdup(path);
    return g_strdup_printf("%s%s%s", life->workdir,
                           g_str_has_suffix(life->workdir, "/") ? "" : "/", path);
}
