/* A large file beside a supervisor that is reached by stream: its bytes go by the engine's archive.
 */
#include "base/error.h"
#include "sandbox/files_own.h"
#include "supervisor/client/files.h"

#include <string.h>

#define LARGE_SIZE (16u << 20)
#define LARGE_API_MINOR 45

/* The engine's own copying is sooner there than frames of the stream: from 1.45 on, where it was
 * measured to be so (26.1: three times, 20.10: not at all). */
static bool prefers_archive(const DkrContext *context, guint64 size, const SprWait *wait)
{
    int api_minor = 0;
    return size >= LARGE_SIZE && size != G_MAXUINT64 &&
           dkr_client_api_minor(context->client, wait, &api_minor, NULL) &&
           api_minor >= LARGE_API_MINOR;
}

static bool take_place(void *ctx, const SprFileEntry *entry)
{
    DkrFileFacts *facts = ctx;
    dkr_file_facts_clear(facts);
    *facts = (DkrFileFacts){.kind = DKR_FILE_REGULAR,
                            .path = g_strdup(entry->path),
                            .directory = g_path_get_dirname(entry->path),
                            .mode = entry->mode,
                            .uid = entry->uid,
                            .gid = entry->gid,
                            .may_write_directory = true};
    return true;
}

static SprFlow take_mounts(void *ctx, const void *data, gsize size)
{
    g_string_append_len(ctx, data, (gssize)size);
    return SPR_FLOW_CONTINUE;
}

static bool read_mounts(SprSupervisor *supervisor, const SprWait *wait, char **ret_mounts)
{
    GString *text = g_string_new(NULL);
    SprFileRange range = {.path = "/proc/self/mountinfo"};
    SprSink sink = {text, take_mounts};
    SprFileEntry entry;
    bool ok = spr_files_read(supervisor, &range, &sink, wait, &entry, NULL);
    *ret_mounts = g_string_free(text, FALSE);
    return ok;
}

/* Whether the engine can put a file there that then takes its place. What is wrong with the path is
 * told by the way that is taken instead. The engine has all rights, and the directory may be a link
 * to another when it comes there: so for root alone, who could have put it there as well. */
static bool find_place(const DkrLife *life, SprSupervisor *supervisor, const char *path,
                       const SprWait *wait, DkrFileFacts *facts)
{
    return spr_supervisor_info(supervisor)->uid == 0 && spr_files_can_replace(supervisor) &&
           spr_files_locate(supervisor, path, take_place, facts, wait, NULL) && facts->path &&
           read_mounts(supervisor, wait, &facts->mountinfo) &&
           dkr_file_is_in_archive(life, facts) && !dkr_file_must_be_in_place(facts);
}

bool dkr_file_write_large(const DkrContext *context, const DkrLife *life, SprSupervisor *supervisor,
                          DkrFileWrite *file, const SprWait *wait)
{
    const DkrVenue venue = dkr_life_venue(life, context);
    g_autofree char *absolute = dkr_life_absolute(life, file->path);
    g_auto(DkrFileFacts) facts = {0};
    if (!prefers_archive(context, file->size, wait) ||
        !find_place(life, supervisor, absolute, wait, &facts))
        return false;
    DkrFileMeter meter = {.source = &file->source, .announced = file->size};
    g_autofree char *temporary = dkr_file_temporary(&facts);
    bool ok =
        dkr_file_put_temporary(&venue, life, &facts, temporary, dkr_file_mode(&facts, file->mode),
                               &meter, wait, &file->failure);
    if (!ok)
        g_prefix_error(&file->failure, "%s: ", file->path);
    ok = ok && spr_files_replace(supervisor, facts.path, strrchr(temporary, '/') + 1, meter.count,
                                 wait, &file->failure);
    if (!ok)
        dkr_file_remove_temporary(&venue, life, temporary, true, wait);
    return true;
}
