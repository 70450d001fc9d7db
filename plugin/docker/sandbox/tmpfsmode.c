#include "sandbox/tmpfsmode.h"

#include "base/error.h"
#include "base/tar.h"
#include "base/text.h"
#include "engine/archive.h"
#include "options/json.h"
#include "sandbox/layout.h"
#include "sandbox/script.h"
#include "sandbox/tmpfs.h"
#include "supervised/filecalls.h"

#include <stdio.h>
#include <string.h>

#define NOT_TOLD (-1)

/* The API of the first engine that comes with a runtime that does as it is told. */
#define OBEYING_API_MINOR 44

/* Both kinds of memory of the container; false ends it. */
typedef bool (*EachFn)(void *ctx, const char *option, const char *target, int mode);

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

static bool each_of_tmpfs(const json_t *tmpfs, EachFn each, void *ctx)
{
    const char *target;
    json_t *options;
    json_object_foreach((json_t *)tmpfs, target, options)
    {
        g_autofree char *quoted = dkr_json_quote(target);
        g_autofree char *option = g_strdup_printf("tmpfs[%s]", quoted);
        int mode = dkr_tmpfs_mode(json_string_value(options) ?: "");
        if (mode != DKR_TMPFS_NO_MODE && strcmp(target, DKR_SUPERVISOR_RUN_DIRECTORY) != 0 &&
            !each(ctx, option, target, mode))
            return false;
    }
    return true;
}

static bool each_memory(const json_t *inspect, EachFn each, void *ctx)
{
    const json_t *host = json_object_get(inspect, "HostConfig");
    const json_t *mounts = json_object_get(host, "Mounts");
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        const json_t *mount = json_array_get(mounts, i);
        const json_t *mode = json_object_get(json_object_get(mount, "TmpfsOptions"), "Mode");
        g_autofree char *option = g_strdup_printf("mounts[%zu].tmpfsOptions.mode", i);
        if (mode && !each(ctx, option, text(mount, "Target"), (int)json_integer_value(mode)))
            return false;
    }
    return each_of_tmpfs(json_object_get(host, "Tmpfs"), each, ctx);
}

/* ----------------------------------------------------------------------- before a start */

static bool no_bytes(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                     GError **error)
{
    *ret_size = 0;
    *ret_again_fd = -1;
    return true;
}

typedef struct {
    const DkrContext *context;
    const json_t *inspect;
    const SprWait *wait;
} Preparation;

/* A volume's folders keep their mode. */
static bool is_in_volume(const json_t *inspect, const char *target)
{
    const json_t *mounts = json_object_get(inspect, "Mounts");
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        const json_t *mount = json_array_get(mounts, i);
        const char *volume = text(mount, "Destination");
        gsize size = strlen(volume);
        if (strcmp(text(mount, "Type"), "tmpfs") != 0 && strncmp(target, volume, size) == 0 &&
            strchr("/", target[size]))
            return true;
    }
    return false;
}

static bool make_directory(void *ctx, const char *option, const char *target, int mode)
{
    const Preparation *p = ctx;
    g_autofree char *clean = spr_clean_path(target);
    SprTarEntry entry = {
        .is_directory = true, .mode = (guint)mode, .mtime_ns = g_get_real_time() * 1000};
    g_autoptr(SprTarWriter) writer = NULL;
    if (!is_in_volume(p->inspect, clean) &&
        spr_tar_writer_new(clean + 1, &entry, no_bytes, NULL, &writer, NULL))
        dkr_archive_put(p->context->client, text(p->inspect, "Id"), "/", writer, p->wait, NULL);
    return true;
}

bool dkr_tmpfs_mode_is_obeyed(const DkrContext *context, const SprWait *wait)
{
    int api_minor;
    return !dkr_client_api_minor(context->client, wait, &api_minor, NULL) ||
           api_minor >= OBEYING_API_MINOR;
}

void dkr_tmpfs_mode_prepare(const DkrContext *context, const json_t *inspect, const SprWait *wait)
{
    Preparation preparation = {context, inspect, wait};
    if (!dkr_tmpfs_mode_is_obeyed(context, wait))
        each_memory(inspect, make_directory, &preparation);
}

/* ------------------------------------------------------------------------ after a start */

static void take_mode(void *ctx, const char *text)
{
    json_auto_t *entry = json_loads(text, 0, NULL);
    *(int *)ctx = (int)json_integer_value(json_object_get(entry, "mode")) & 07777;
}

static int ask_program(const DkrContext *context, const DkrLife *life, const char *target,
                       const SprWait *wait)
{
    const DkrVenue venue = dkr_life_venue(life, context);
    const char *args[] = {target, NULL};
    g_autoptr(GByteArray) output = NULL;
    int exit_code, mode = NOT_TOLD;
    if (!dkr_script_run(&venue, NULL, "exec stat -c %a -- \"$1\"", args, NULL, wait, &output,
                        &exit_code, NULL) ||
        exit_code != 0)
        return NOT_TOLD;
    g_byte_array_append(output, (const guint8 *)"", 1);
    return sscanf((const char *)output->data, "%o", (guint *)&mode) == 1 ? mode : NOT_TOLD;
}

/* False only when the caller's time is over. */
static bool ask_mode(const DkrContext *context, const DkrLife *life, const char *target,
                     const SprWait *wait, int *ret_mode, GError **error)
{
    g_autoptr(GError) why = NULL;
    *ret_mode = NOT_TOLD;
    if (!dkr_files_stat(context, life, target, 0, take_mode, ret_mode, wait, &why) &&
        spr_error_is(why, SPR_E_UNSUPPORTED, NULL))
        *ret_mode = ask_program(context, life, target, wait);
    return spr_wait_check(wait, error);
}

/* What a main process made of it since is its own affair: only the covered directory's mode is a
 * mode that was kept. */
static bool was_kept(const DkrContext *context, const DkrLife *life, const char *target, int mode,
                     const SprWait *wait)
{
    guint covered;
    return !dkr_archive_mode(context->client, life->container, target, wait, &covered, NULL) ||
           (int)covered == mode;
}

typedef struct {
    const DkrContext *context;
    const DkrLife *life;
    const SprWait *wait;
    GError **error;
} Settling;

static void change(const DkrContext *context, const DkrLife *life, const char *target, int mode,
                   const SprWait *wait)
{
    const DkrVenue venue = dkr_life_venue(life, context);
    g_autofree char *octal = g_strdup_printf("%o", (guint)mode);
    const char *args[] = {octal, target, NULL};
    g_autoptr(GByteArray) output = NULL;
    int exit_code;
    dkr_script_run(&venue, "0", "exec chmod -- \"$1\" \"$2\"", args, NULL, wait, &output,
                   &exit_code, NULL);
}

static bool settle(void *ctx, const char *option, const char *target, int asked)
{
    const Settling *s = ctx;
    int mode;
    if (!ask_mode(s->context, s->life, target, s->wait, &mode, s->error))
        return false;
    if (mode == NOT_TOLD || mode == asked || !was_kept(s->context, s->life, target, mode, s->wait))
        return true;
    change(s->context, s->life, target, asked, s->wait);
    if (!ask_mode(s->context, s->life, target, s->wait, &mode, s->error))
        return false;
    return mode == asked ||
           spr_fail(s->error, SPR_E_UNSUPPORTED, "option-not-applied",
                    "%s: asked for mode %o, it has %o: the engine's runtime keeps that of a "
                    "directory that is there, and it can't be changed here; mount it elsewhere",
                    option, (guint)asked, (guint)mode);
}

bool dkr_tmpfs_mode_settle(const DkrContext *context, const json_t *inspect, const DkrLife *life,
                           const SprWait *wait, GError **error)
{
    Settling settling = {context, life, wait, error};
    return each_memory(inspect, settle, &settling);
}
