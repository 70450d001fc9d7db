#include "sandbox/tmpfsmode.h"

#include "base/error.h"
#include "engine/archive.h"
#include "options/json.h"
#include "sandbox/script.h"
#include "supervised/filecalls.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NOT_TOLD (-1)

int dkr_tmpfs_mode(const char *options)
{
    g_auto(GStrv) parts = g_strsplit(options, ",", -1);
    int mode = NOT_TOLD;
    for (char **part = parts; *part; part++) {
        guint64 value;
        if (g_str_has_prefix(g_strstrip(*part), "mode=") &&
            g_ascii_string_to_unsigned(*part + strlen("mode="), 8, 0, 07777, &value, NULL))
            mode = (int)value;
    }
    return mode;
}

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

static bool check(const DkrContext *context, const DkrLife *life, const char *path,
                  const char *target, int asked, const SprWait *wait, GError **error)
{
    int mode;
    if (asked == NOT_TOLD)
        return true;
    if (!ask_mode(context, life, target, wait, &mode, error))
        return false;
    return mode == NOT_TOLD || mode == asked || !was_kept(context, life, target, mode, wait) ||
           spr_fail(error, SPR_E_UNSUPPORTED, "option-not-applied",
                    "%s: asked for mode %o, it has %o: the engine's runtime keeps that of a "
                    "directory that is there; mount it elsewhere, or leave the mode out",
                    path, (guint)asked, (guint)mode);
}

bool dkr_tmpfs_mode_check(const DkrContext *context, const DkrSandboxOptions *options,
                          const DkrLife *life, const SprWait *wait, GError **error)
{
    for (size_t i = 0; i < options->tmpfs.count; i++) {
        const DkrPair *pair = &options->tmpfs.items[i];
        g_autofree char *quoted = dkr_json_quote(pair->name);
        g_autofree char *path = g_strdup_printf("tmpfs[%s]", quoted);
        if (!check(context, life, path, pair->name, dkr_tmpfs_mode(pair->value), wait, error))
            return false;
    }
    for (size_t i = 0; i < options->mounts.count; i++) {
        const DkrMount *mount = &options->mounts.items[i];
        g_autofree char *path = g_strdup_printf("mounts[%zu].tmpfsOptions.mode", i);
        int asked = mount->mode.is_set ? (int)mount->mode.value : NOT_TOLD;
        if (!check(context, life, path, mount->target, asked, wait, error))
            return false;
    }
    return true;
}
