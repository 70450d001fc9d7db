/* What lies beside containers: folders of sockets, volumes with the program, images of templates.
 */
#include "prune/run.h"

#include "base/error.h"
#include "engine/images.h"
#include "engine/volumes.h"
#include "sandbox/layout.h"
#include "supervisor/embedded.h"
#include "template/identity.h"

#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

/* The container that has what `has` looks for, or NULL. */
static const json_t *find_user(const DkrPruneRun *run,
                               bool (*has)(const json_t *listed, const char *name),
                               const char *name)
{
    size_t i;
    json_t *listed;
    json_array_foreach(run->containers, i, listed)
    {
        if (!g_hash_table_contains(run->removed, text(listed, "Id")) && has(listed, name))
            return listed;
    }
    return NULL;
}

static bool check_time(DkrPruneRun *run)
{
    return spr_wait_check(run->wait, run->report.failure ? NULL : &run->report.failure);
}

/* removed: false with its error. What is meant for a dry run counts as removed. */
static void finish(DkrPruneRun *run, const DkrPruneFound *found, bool removed, GError *why)
{
    if (removed)
        dkr_prune_tell_done(&run->report, found, NULL);
    else
        dkr_prune_tell_failed(&run->report, found, why);
}

/* -------------------------------------------------------------------------------- folders */

static bool has_socket_in(const json_t *listed, const char *folder)
{
    const char *socket = text(json_object_get(listed, "Labels"), DKR_SOCKET_LABEL);
    g_autofree char *directory = g_path_get_dirname(socket);
    return strcmp(directory, folder) == 0;
}

static bool remove_folder(const DkrPruneRun *run, const char *folder, GError **error)
{
    return run->report.options->dry_run.value || dkr_runtime_remove_folder(folder) ||
           spr_fail(error, SPR_E_DENIED, "runtime-dir", "the folder \"%s\" can't be removed",
                    folder);
}

bool dkr_prune_folders(DkrPruneRun *run, char *const *folders)
{
    for (; *folders; folders++) {
        g_autoptr(GError) why = NULL;
        gint64 changed = dkr_runtime_changed(*folders);
        DkrPruneFound found = {.kind = DKR_PRUNE_FOLDER, .name = *folders};
        found.age_ms = MAX(g_get_real_time() / 1000 - changed * 1000, 0);
        if (!check_time(run))
            return false;
        if (changed == 0 || find_user(run, has_socket_in, *folders) ||
            dkr_runtime_is_listened_in(*folders) || !dkr_prune_is_due(&run->report, &found))
            continue;
        bool removed = remove_folder(run, *folders, &why);
        finish(run, &found, removed, g_steal_pointer(&why));
    }
    return true;
}

/* -------------------------------------------------------------------------------- volumes */

static bool has_volume(const json_t *listed, const char *volume)
{
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(listed, "Mounts"), i, mount)
    {
        if (strcmp(text(mount, "Name"), volume) == 0)
            return true;
    }
    return false;
}

static bool is_of_this_build(const char *program)
{
    static const char *const architectures[] = {"amd64", "arm64"};
    SprProgram own;
    for (gsize i = 0; i < G_N_ELEMENTS(architectures); i++) {
        if (spr_supervisor_program(architectures[i], &own) && strcmp(own.id, program) == 0)
            return true;
    }
    return false;
}

/* Whether it is one of ours that serves no build of this version; *ret_kind then. */
static bool is_left_over(const json_t *volume, DkrPruneKind *ret_kind)
{
    static const char own[] = DKR_RESERVED_VOLUME_PREFIX "own-";
    const char *name = text(volume, "Name");
    const char *program = text(json_object_get(volume, "Labels"), DKR_SUPERVISOR_LABEL);
    g_autofree char *shared = g_strconcat(DKR_RESERVED_VOLUME_PREFIX, program, NULL);
    bool is_own = g_str_has_prefix(name, own);
    *ret_kind = is_own ? DKR_PRUNE_OWN_VOLUME : DKR_PRUNE_VOLUME;
    return is_own || (strcmp(name, shared) == 0 && !is_of_this_build(program));
}

bool dkr_prune_volumes(DkrPruneRun *run)
{
    json_auto_t *volumes = NULL;
    size_t i;
    json_t *volume;
    if (!dkr_volume_list(run->context->client, DKR_SUPERVISOR_LABEL, run->wait, &volumes,
                         run->report.failure ? NULL : &run->report.failure))
        return false;
    json_array_foreach(volumes, i, volume)
    {
        g_autoptr(GError) why = NULL;
        DkrPruneFound found = {.name = text(volume, "Name")};
        dkr_prune_take_labels(&found, json_object_get(volume, "Labels"));
        if (!check_time(run))
            return false;
        if (!is_left_over(volume, &found.kind) || find_user(run, has_volume, found.name) ||
            !dkr_prune_is_due(&run->report, &found))
            continue;
        bool removed = run->report.options->dry_run.value ||
                       dkr_volume_remove(run->context->client, found.name, run->wait, &why);
        finish(run, &found, removed, g_steal_pointer(&why));
    }
    return true;
}

/* ------------------------------------------------------------------------------ templates */

static bool has_image(const json_t *listed, const char *image)
{
    return strcmp(text(listed, "ImageID"), image) == 0;
}

static void consider_tag(DkrPruneRun *run, const json_t *image, const char *tag)
{
    g_autoptr(GError) why = NULL;
    DkrPruneFound found = {.kind = DKR_PRUNE_TEMPLATE, .name = tag};
    dkr_prune_take_labels(&found, json_object_get(image, "Labels"));
    if (!g_str_has_prefix(tag, DKR_TEMPLATE_REPOSITORY ":") ||
        !dkr_prune_is_due(&run->report, &found))
        return;
    const json_t *user = find_user(run, has_image, text(image, "Id"));
    if (user) {
        const char *name = json_string_value(json_array_get(json_object_get(user, "Names"), 0));
        g_autofree char *by = g_strdup_printf("used by %s", name ? name + (*name == '/') : "");
        dkr_prune_tell_done(&run->report, &found, by);
        return;
    }
    bool removed = run->report.options->dry_run.value ||
                   dkr_image_remove(run->context->client, tag, run->wait, &why);
    finish(run, &found, removed, g_steal_pointer(&why));
}

bool dkr_prune_templates(DkrPruneRun *run)
{
    json_auto_t *images = NULL;
    size_t i, j;
    json_t *image, *tag;
    if (!dkr_image_list(run->context->client, DKR_TEMPLATE_REPOSITORY, run->wait, &images,
                        run->report.failure ? NULL : &run->report.failure))
        return false;
    json_array_foreach(images, i, image)
    {
        if (!*text(json_object_get(image, "Labels"), DKR_LABEL_OWNER))
            continue;
        json_array_foreach(json_object_get(image, "RepoTags"), j, tag)
        {
            if (!check_time(run))
                return false;
            consider_tag(run, image, json_string_value(tag) ?: "");
        }
    }
    return true;
}
