#include "sandbox/placement.h"

#include "base/error.h"
#include "base/tar.h"
#include "engine/archive.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "sandbox/helper.h"
#include "sandbox/layout.h"
#include "supervised/owner.h"

#include <string.h>

#define OWN_DIGITS 16
#define FILL_TRIES 5
#define FILL_PAUSE_US (100 * 1000)

void dkr_placement_clear(DkrPlacement *placement)
{
    g_free(placement->volume);
    g_free(placement->volume_created);
    g_free(placement->reason);
    g_strfreev(placement->entrypoint);
}

/* ------------------------------------------------------------------------- deciding */

static char **texts_of(json_t *array)
{
    GPtrArray *list = g_ptr_array_new();
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value)
    {
        g_ptr_array_add(list, g_strdup(json_string_value(value)));
    }
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

/* Whoever may mount could make a read-only mount writable, and the program is shared. */
static bool may_remount(const DkrSandboxOptions *options)
{
    static const char *const names[] = {"SYS_ADMIN", "ALL", NULL};
    bool may = options->privileged.value;
    for (char **cap = options->cap_add; cap && *cap; cap++) {
        g_autofree char *upper = g_ascii_strup(*cap, -1);
        const char *name = g_str_has_prefix(upper, "CAP_") ? upper + strlen("CAP_") : upper;
        may = may || g_strv_contains(names, name);
    }
    return may;
}

/* Without the build's id: whoever destroys the sandbox finds it, whatever build made it. */
char *dkr_placement_own_volume(const char *id)
{
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);
    return g_strdup_printf(DKR_RESERVED_VOLUME_PREFIX "own-%.*s", OWN_DIGITS, digest);
}

/* The program runs on the engine's kernel, whatever the image is made for. NULL when there is one.
 */
static char *find_program(const char *architecture, SprProgram *ret_program)
{
    if (*architecture && spr_supervisor_program(architecture, ret_program))
        return NULL;
    return g_strdup_printf("none is built for engines of architecture %s",
                           *architecture ? architecture : "unknown");
}

bool dkr_placement_decide(const DkrSandboxOptions *options, const json_t *image,
                          const char *architecture, DkrPlacement *ret_placement, GError **error)
{
    json_t *config = json_object_get(image, "Config");
    const char *of_image = json_string_value(json_object_get(image, "Architecture"));
    SprProgram program = {.id = "none"};
    char *reason =
        strcmp(options->supervisor, "off") == 0
            ? g_strdup("switched off in the options")
            : find_program(*architecture || !of_image ? architecture : of_image, &program);
    if (reason && strcmp(options->supervisor, "required") == 0) {
        spr_fail(error, SPR_E_UNSUPPORTED, "no-supervisor", "supervisor: it is required, and %s",
                 reason);
        g_free(reason);
        return false;
    }
    *ret_placement = (DkrPlacement){
        .use = !reason,
        .is_main = options->init.value,
        .program = program,
        .volume_is_own = may_remount(options),
        .entrypoint = options->entrypoint ? g_strdupv(options->entrypoint)
                                          : texts_of(json_object_get(config, "Entrypoint")),
        .reason = reason,
    };
    ret_placement->volume = ret_placement->volume_is_own
                                ? dkr_placement_own_volume(options->id)
                                : g_strconcat(DKR_RESERVED_VOLUME_PREFIX, program.id, NULL);
    return true;
}

/* -------------------------------------------------------------------------- filling */

static json_t *labels(const DkrContext *context, const char *key, const char *value)
{
    json_t *labels = dkr_owner_labels(context->version);
    json_object_set_new(labels, key, json_string(value));
    return labels;
}

bool dkr_placement_prepare(const DkrContext *context, DkrPlacement *placement, const SprWait *wait,
                           GError **error)
{
    json_auto_t *with = labels(context, DKR_SUPERVISOR_LABEL, placement->program.id);
    g_clear_pointer(&placement->volume_created, g_free);
    return dkr_volume_ensure(context->client, placement->volume, with, wait,
                             &placement->volume_created, error);
}

bool dkr_placement_is_known(const DkrContext *context, const DkrPlacement *placement)
{
    return placement->is_main &&
           dkr_whole_is_known(context->whole, placement->volume, placement->volume_created);
}

/* Engines of today mount what a container mounts before they look, which fails in a volume without
 * the folders that others are mounted on. */
static bool lacks_folder(const GError *why)
{
    return dkr_failure_status(why) == 500 && strstr(why->message, "read-only file system");
}

static bool is_whole(const DkrContext *context, const char *container, const char *path,
                     const SprProgram *program, const SprWait *wait, bool *ret_whole,
                     GError **error)
{
    guint64 size = 0;
    g_autoptr(GError) why = NULL;
    if (!dkr_archive_size(context->client, container, path, wait, &size, &why) &&
        dkr_failure_status(why) != 404 && !lacks_folder(why)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    *ret_whole = !why && size == program->size;
    return true;
}

typedef struct {
    const guint8 *data;
    gsize left;
} Rest;

static bool read_program(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                         int *ret_again_fd, GError **error)
{
    Rest *rest = ctx;
    *ret_size = MIN(rest->left, capacity);
    *ret_again_fd = -1;
    if (*ret_size == 0)
        return true;
    memcpy(buffer, rest->data, *ret_size);
    rest->data += *ret_size;
    rest->left -= *ret_size;
    return true;
}

typedef struct {
    const char *name;
    guint mode;
} Folder;

/* The program as file in directory, behind the folders, which are named from the innermost out. */
static bool put_program(const DkrContext *context, const char *container, const char *directory,
                        const char *file, const Folder *folders, const SprProgram *program,
                        const SprWait *wait, GError **error)
{
    Rest rest = {program->bytes, program->size};
    SprTarEntry entry = {.mode = 0555, .size = program->size, .mtime_ns = g_get_real_time() * 1000};
    g_autoptr(SprTarWriter) writer = NULL;
    if (!spr_tar_writer_new(file, &entry, read_program, &rest, &writer, error))
        return false;
    for (; folders->name; folders++) {
        SprTarEntry folder = {
            .is_directory = true, .mode = folders->mode, .mtime_ns = entry.mtime_ns};
        if (!spr_tar_writer_prepend_directory(writer, folders->name, &folder, error))
            return false;
    }
    return dkr_archive_put(context->client, container, directory, writer, wait, error);
}

static bool fill(const DkrContext *context, const DkrPlacement *placement, const char *image,
                 const SprWait *wait, GError **error)
{
    static const Folder folders[] = {{"host", 0755}, {"run", 01777}, {"bin", 0755}, {NULL, 0}};
    g_autofree char *helper = NULL;
    bool whole = false;
    spr_log(&context->log, SPR_LOG_INFO, "supervisor", "filling the volume %s", placement->volume);
    if (!dkr_helper_make(context, placement->volume, image, wait, &helper, error))
        return false;
    /* Another host may have been faster, and a container may be about to run what is there. */
    bool ok = placement->volume_is_own || is_whole(context, helper, DKR_SUPERVISOR_PROGRAM,
                                                   &placement->program, wait, &whole, error);
    ok = ok && (whole ||
                put_program(context, helper, DKR_SUPERVISOR_DIRECTORY, "bin/" DKR_SUPERVISOR_FILE,
                            folders, &placement->program, wait, error));
    dkr_helper_drop(context, helper, wait);
    return ok;
}

/* Another host may unpack it there at this moment: that is in the way of ours, and a part of it is
 * seen. */
static bool fill_until_whole(const DkrContext *context, const DkrPlacement *placement,
                             const char *container, const char *image, const SprWait *wait,
                             bool *ret_whole, GError **error)
{
    for (guint tries = 1;; tries++) {
        g_autoptr(GError) why = NULL;
        int ready;
        bool filled = fill(context, placement, image, wait, &why);
        if ((filled || dkr_failure_status(why) == 500) &&
            !is_whole(context, container, DKR_SUPERVISOR_PROGRAM, &placement->program, wait,
                      ret_whole, error))
            return false;
        if (*ret_whole || (filled && tries == FILL_TRIES))
            return true;
        if (!filled && (dkr_failure_status(why) != 500 || tries == FILL_TRIES)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + FILL_PAUSE_US, &ready, error))
            return false;
    }
}

bool dkr_placement_check(const DkrContext *context, const DkrPlacement *placement,
                         const char *container, const char *image, const SprWait *wait,
                         bool *ret_filled, GError **error)
{
    const SprProgram *program = &placement->program;
    bool whole = false;
    dkr_whole_forget(context->whole, placement->volume);
    /* What lies in a volume of its own may be of another build. */
    if (!placement->volume_is_own &&
        !is_whole(context, container, DKR_SUPERVISOR_PROGRAM, program, wait, &whole, error))
        return false;
    if (ret_filled)
        *ret_filled = !whole;
    if (!whole && !fill_until_whole(context, placement, container, image, wait, &whole, error))
        return false;
    if (!whole)
        return spr_fail(error, SPR_E_IO, "no-supervisor",
                        "the supervisor's program does not stay in the volume %s",
                        placement->volume);
    if (!placement->volume_is_own)
        dkr_whole_learn(context->whole, placement->volume, placement->volume_created);
    return true;
}

/* ------------------------------------------------------------------------- adopting */

/* The socket's folder is as /tmp: any user's supervisor meets its hosts there, and both ends see
 * whose process the other one is. */
static bool put_into_root(const DkrContext *context, const char *container, const char *path,
                          const SprProgram *program, const SprWait *wait, GError **error)
{
    static const Folder folders[] = {{&DKR_SUPERVISOR_RUN_DIRECTORY[1], 01777},
                                     {&DKR_SUPERVISOR_BIN_DIRECTORY[1], 0755},
                                     {&DKR_RESERVED_DIRECTORY[1], 0755},
                                     {NULL, 0}};
    spr_log(&context->log, SPR_LOG_INFO, "supervisor", "putting it into the container %.12s",
            container);
    return put_program(context, container, "/", path + 1, folders, program, wait, error);
}

bool dkr_placement_adopt(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                         char **ret_program, char **ret_reason, GError **error)
{
    const char *container = json_string_value(json_object_get(inspect, "Id"));
    const json_t *host = json_object_get(inspect, "HostConfig");
    const char *architecture = "";
    SprProgram program;
    bool whole = false;
    g_autoptr(GError) why = NULL;
    *ret_program = NULL;
    if (json_is_true(json_object_get(host, "ReadonlyRootfs"))) {
        *ret_reason = g_strdup("its container was made without one, and its root is read-only");
        return true;
    }
    if (dkr_client_architecture(context->client, wait, &architecture, &why) &&
        (*ret_reason = find_program(architecture, &program)))
        return true;
    g_autofree char *path = why ? NULL : g_strdup_printf(DKR_SUPERVISOR_PROGRAM "-%s", program.id);
    if (path && is_whole(context, container, path, &program, wait, &whole, &why) &&
        (whole || put_into_root(context, container, path, &program, wait, &why))) {
        *ret_program = g_steal_pointer(&path);
        return true;
    }
    if (spr_wait_is_over(wait)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    *ret_reason = g_strdup_printf("its container was made without one, and none could be put into "
                                  "it: %s",
                                  why->message);
    return true;
}
