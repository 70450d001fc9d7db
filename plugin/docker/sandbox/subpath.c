#include "sandbox/subpath.h"

#include "base/error.h"
#include "base/tar.h"
#include "engine/archive.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "sandbox/helper.h"
#include "sandbox/layout.h"

#include <string.h>

#define LOOK_LIMIT_MS (30 * 1000)

/* The volume's root as the helper has it. */
#define ROOT DKR_SUPERVISOR_DIRECTORY

static bool is_there(const DkrContext *context, const char *helper, const char *path,
                     const SprWait *wait, bool *ret_there, GError **error)
{
    guint64 size;
    g_autoptr(GError) why = NULL;
    *ret_there = dkr_archive_size(context->client, helper, path, wait, &size, &why);
    if (*ret_there || dkr_failure_status(why) == 404)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool no_bytes(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                     GError **error)
{
    *ret_size = 0;
    *ret_again_fd = -1;
    return true;
}

/* "uid[:gid]" in numbers; a name means nothing outside the image. */
static void set_owner(SprTarEntry *entry, const char *user)
{
    char *end = NULL;
    gint64 uid = user ? g_ascii_strtoll(user, &end, 10) : 0;
    if (!user || end == user || (*end != '\0' && *end != ':'))
        return;
    entry->uid = uid;
    entry->gid = *end == ':' ? g_ascii_strtoll(end + 1, NULL, 10) : uid;
}

static bool make_directory(const DkrContext *context, const char *helper, const char *parent,
                           const char *name, const char *user, const SprWait *wait, GError **error)
{
    SprTarEntry entry = {.is_directory = true, .mode = 0755, .mtime_ns = g_get_real_time() * 1000};
    g_autoptr(SprTarWriter) writer = NULL;
    set_owner(&entry, user);
    return spr_tar_writer_new(name, &entry, no_bytes, NULL, &writer, error) &&
           dkr_archive_put(context->client, helper, parent, writer, wait, error);
}

/* One step after the other, so that none that is there gets another owner or mode. */
static bool make_steps(const DkrContext *context, const char *helper, const char *subpath,
                       const char *user, const SprWait *wait, GError **error)
{
    g_auto(GStrv) steps = g_strsplit(subpath, "/", -1);
    g_autoptr(GString) path = g_string_new(ROOT);
    for (char **step = steps; *step; step++) {
        g_autofree char *parent = g_strdup(path->str);
        bool there = true;
        if (**step == '\0' || strcmp(*step, ".") == 0)
            continue;
        g_string_append_printf(path, "/%s", *step);
        if (!is_there(context, helper, path->str, wait, &there, error) ||
            (!there && !make_directory(context, helper, parent, *step, user, wait, error)))
            return false;
    }
    return true;
}

/* With the labels that the mount would give it. */
static bool ensure_volume(const DkrContext *context, const DkrMount *mount, const SprWait *wait,
                          GError **error)
{
    json_auto_t *labels = json_object();
    for (size_t i = 0; i < mount->labels.count; i++)
        json_object_set_new(labels, mount->labels.items[i].name,
                            json_string(mount->labels.items[i].value));
    return dkr_volume_ensure(context->client, mount->source, labels, wait, NULL, error);
}

static bool make_subpath(const DkrContext *context, const DkrMount *mount, const char *user,
                         const char *image, const SprWait *wait, GError **error)
{
    g_autofree char *helper = NULL;
    if (!ensure_volume(context, mount, wait, error) ||
        !dkr_helper_make(context, mount->source, image, wait, &helper, error))
        return false;
    bool ok = make_steps(context, helper, mount->subpath, user, wait, error);
    dkr_helper_drop(context, helper, wait);
    return ok;
}

bool dkr_subpath_create(const DkrContext *context, const DkrSandboxOptions *options,
                        const char *image, const SprWait *wait, GError **error)
{
    for (size_t i = 0; i < options->mounts.count; i++) {
        const DkrMount *mount = &options->mounts.items[i];
        if (!mount->create_subpath.value ||
            make_subpath(context, mount, options->user, image, wait, error))
            continue;
        g_prefix_error(error, "mounts[%zu].volumeOptions.createSubpath: ", i);
        return false;
    }
    return true;
}

static bool is_missing(const DkrContext *context, const DkrMount *mount, const char *image,
                       const SprWait *wait)
{
    g_autofree char *helper = NULL;
    g_autofree char *path = g_strdup_printf(ROOT "/%s", mount->subpath);
    bool there = true;
    if (!dkr_helper_make(context, mount->source, image, wait, &helper, NULL))
        return false;
    bool known = is_there(context, helper, path, wait, &there, NULL);
    dkr_helper_drop(context, helper, wait);
    return known && !there;
}

void dkr_subpath_explain(const DkrContext *context, const DkrSandboxOptions *options,
                         const char *image, const SprWait *call, GError **error)
{
    for (size_t i = 0; i < options->mounts.count; i++) {
        const DkrMount *mount = &options->mounts.items[i];
        if (!mount->subpath)
            continue;
        SprWait wait = dkr_client_wait_to_tidy(context->client, call, LOOK_LIMIT_MS);
        if (!is_missing(context, mount, image, &wait))
            continue;
        g_clear_error(error);
        spr_fail(error, SPR_E_NOT_FOUND, "no-such-subpath",
                 "mounts[%zu].volumeOptions.subpath: the volume \"%s\" has no \"%s\": %s", i,
                 mount->source, mount->subpath,
                 mount->create_subpath.value
                     ? "a link in it leads elsewhere, name a path without links"
                     : "make it, or set \"createSubpath\"");
        return;
    }
}
