#include "sandbox/placement.h"

#include "base/error.h"
#include "base/tar.h"
#include "engine/archive.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "engine/volumes.h"
#include "sandbox/layout.h"
#include "sandbox/owner.h"
#include "supervisor/embedded.h"

#include <string.h>

#define CLEANUP_LIMIT_MS (30 * 1000)
#define OWN_DIGITS 16

void dkr_placement_clear(DkrPlacement *placement)
{
    g_free(placement->volume);
    g_free(placement->reason);
    g_strfreev(placement->entrypoint);
}

/* ------------------------------------------------------------------------- deciding */

static char **texts_of(json_t *array)
{
    GPtrArray *list = g_ptr_array_new();
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) {
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

char *dkr_placement_own_volume(const char *id)
{
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);
    return g_strdup_printf(DKR_RESERVED_VOLUME_PREFIX "%s-%.*s", spr_supervisor_program_id(),
                           OWN_DIGITS, digest);
}

static char *reason_against(const DkrSandboxOptions *options, const json_t *image)
{
    const char *architecture = json_string_value(json_object_get(image, "Architecture"));
    if (strcmp(options->supervisor, "off") == 0)
        return g_strdup("switched off in the options");
    if (g_strcmp0(architecture, "amd64") != 0)
        return g_strdup_printf("none is built for an image of architecture %s",
                               architecture ? architecture : "unknown");
    return NULL;
}

bool dkr_placement_decide(const DkrSandboxOptions *options, const json_t *image,
                          DkrPlacement *ret_placement, GError **error)
{
    json_t *config = json_object_get(image, "Config");
    char *reason = reason_against(options, image);
    if (reason && strcmp(options->supervisor, "required") == 0) {
        spr_fail(error, SPR_E_UNSUPPORTED, "no-supervisor",
                 "supervisor: it is required, and %s", reason);
        g_free(reason);
        return false;
    }
    *ret_placement = (DkrPlacement){
        .use = !reason,
        .is_main = options->init.value,
        .volume_is_own = may_remount(options),
        .entrypoint = options->entrypoint ? g_strdupv(options->entrypoint)
                                          : texts_of(json_object_get(config, "Entrypoint")),
        .reason = reason,
    };
    ret_placement->volume =
        ret_placement->volume_is_own
            ? dkr_placement_own_volume(options->id)
            : g_strconcat(DKR_RESERVED_VOLUME_PREFIX, spr_supervisor_program_id(), NULL);
    return true;
}

/* -------------------------------------------------------------------------- filling */

static json_t *labels(const DkrContext *context)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *created = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    return json_pack("{s:s, s:s, s:s, s:s}", "sprov.version", context->version, "sprov.created",
                     created, "sprov.owner", dkr_owner(), DKR_SUPERVISOR_LABEL,
                     spr_supervisor_program_id());
}

bool dkr_placement_prepare(const DkrContext *context, const DkrPlacement *placement,
                           const SprWait *wait, GError **error)
{
    json_auto_t *with = labels(context);
    return dkr_volume_ensure(context->client, placement->volume, with, wait, error);
}

static bool is_whole(const DkrContext *context, const char *container, const SprWait *wait,
                     bool *ret_whole, GError **error)
{
    size_t wanted;
    guint64 size = 0;
    g_autoptr(GError) why = NULL;
    spr_supervisor_program(&wanted);
    if (!dkr_archive_size(context->client, container, DKR_SUPERVISOR_PROGRAM, wait, &size, &why) &&
        dkr_failure_status(why) != 404) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    *ret_whole = !why && size == wanted;
    return true;
}

typedef struct {
    const guint8 *data;
    gsize left;
} Program;

static bool read_program(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                         int *ret_again_fd, GError **error)
{
    Program *program = ctx;
    *ret_size = MIN(program->left, capacity);
    memcpy(buffer, program->data, *ret_size);
    program->data += *ret_size;
    program->left -= *ret_size;
    *ret_again_fd = -1;
    return true;
}

static bool put_program(const DkrContext *context, const char *container, const SprWait *wait,
                        GError **error)
{
    size_t size;
    Program program = {.data = spr_supervisor_program(&size)};
    program.left = size;
    SprTarEntry entry = {.mode = 0555, .size = size, .mtime_ns = g_get_real_time() * 1000};
    g_autoptr(SprTarWriter) writer = NULL;
    return spr_tar_writer_new(DKR_SUPERVISOR_FILE, &entry, read_program, &program, &writer,
                              error) &&
           dkr_archive_put(context->client, container, DKR_SUPERVISOR_BIN_DIRECTORY,
                           spr_tar_writer_read, writer, wait, error);
}

bool dkr_placement_helper(const DkrContext *context, const char *volume, const char *image,
                          const SprWait *wait, char **ret_container, GError **error)
{
    json_auto_t *body = json_pack(
        "{s:s, s:[s], s:o, s:{s:[{s:s, s:s, s:s, s:{s:b}}]}}", "Image", image, "Cmd",
        DKR_SUPERVISOR_PROGRAM, "Labels", labels(context), "HostConfig", "Mounts", "Type", "volume",
        "Source", volume, "Target", DKR_SUPERVISOR_BIN_DIRECTORY, "VolumeOptions", "NoCopy", 1);
    char *text = json_dumps(body, JSON_COMPACT);
    bool ok = dkr_container_create(context->client, NULL, NULL, text, wait, ret_container, error);
    free(text);
    return ok;
}

static bool fill(const DkrContext *context, const char *volume, const char *image,
                 const SprWait *wait, GError **error)
{
    g_autofree char *helper = NULL;
    SprWait cleanup = spr_wait_for(CLEANUP_LIMIT_MS);
    bool whole = false;
    spr_log(&context->log, SPR_LOG_INFO, "supervisor", "filling the volume %s", volume);
    if (!dkr_placement_helper(context, volume, image, wait, &helper, error))
        return false;
    /* Another host may have been faster, and a container may be about to run what is there. */
    bool ok = is_whole(context, helper, wait, &whole, error) &&
              (whole || put_program(context, helper, wait, error));
    dkr_container_remove(context->client, helper, &cleanup, NULL);
    return ok;
}

bool dkr_placement_check(const DkrContext *context, const DkrPlacement *placement,
                         const char *container, const char *image, const SprWait *wait,
                         GError **error)
{
    bool whole = false;
    if (!is_whole(context, container, wait, &whole, error))
        return false;
    if (!whole && (!fill(context, placement->volume, image, wait, error) ||
                   !is_whole(context, container, wait, &whole, error)))
        return false;
    return whole || spr_fail(error, SPR_E_IO, "no-supervisor",
                             "the supervisor's program does not stay in the volume %s",
                             placement->volume);
}
