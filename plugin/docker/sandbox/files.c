#include "sandbox/files.h"

#include "base/error.h"
#include "base/tar.h"
#include "base/text.h"
#include "engine/archive.h"
#include "engine/failure.h"
#include "sandbox/files_own.h"
#include "sandbox/script.h"

#include <string.h>

#define CLEANUP_LIMIT_MS (30 * 1000)
#define CLEANUP_TRIES 5
#define DEFAULT_MODE 0644

static bool probe(const DkrVenue *venue, const DkrLife *life, const char *path, const char *how,
                  const SprWait *wait, DkrFileFacts *ret_facts, GError **error)
{
    g_autofree char *absolute = dkr_life_absolute(life, path);
    const char *args[] = {absolute, how, NULL};
    g_autoptr(GByteArray) output = NULL;
    int exit_code;
    if (!dkr_script_run(venue, NULL, dkr_file_probe_script, args, NULL, wait, &output, &exit_code,
                        error)) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    return dkr_file_facts_parse((const char *)output->data, output->len, exit_code, path, ret_facts,
                                error);
}

bool dkr_file_is_in_archive(const DkrLife *life, const DkrFileFacts *facts)
{
    return g_utf8_validate(facts->path, -1, NULL) &&
           dkr_file_in_archive(facts->mountinfo, facts->path, (const char *const *)life->mounts);
}

/* --------------------------------------------------------------------------- reading */

/* A window of a stream: skips bytes, hands on at most left. */
typedef struct {
    const DkrSink *sink;
    guint64 skip;
    guint64 left;
    guint64 count;
    bool refused;
} Window;

/* False: nothing more is wanted. */
static bool window_write(void *ctx, const void *data, gsize size)
{
    Window *w = ctx;
    const guint8 *bytes = data;
    gsize skip = (gsize)MIN((guint64)size, w->skip);
    w->skip -= skip;
    bytes += skip;
    size = (gsize)MIN((guint64)(size - skip), w->left);
    w->left -= size;
    w->count += size;
    if (size > 0 && w->sink->write && !w->sink->write(w->sink->ctx, bytes, size))
        w->refused = true;
    return !w->refused && w->left > 0;
}

typedef struct {
    DkrReply *reply;
    const SprWait *wait;
} Pull;

static bool pull_block(void *ctx, const void **ret_data, gsize *ret_size, GError **error)
{
    Pull *pull = ctx;
    return dkr_reply_read(pull->reply, pull->wait, ret_data, ret_size, error);
}

static bool read_archive(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                         Window *window, const SprWait *wait, DkrReadResult *result, GError **error)
{
    g_autoptr(DkrReply) reply = NULL;
    SprTarEntry entry;
    if (!dkr_archive_get(venue->context->client, life->container, facts->path, wait, &reply, error))
        return false;
    Pull pull = {reply, wait};
    g_autoptr(SprTarReader) reader = spr_tar_reader_new(pull_block, &pull);
    if (!spr_tar_reader_open(reader, &entry, error))
        return false;
    result->mode = entry.mode & 0777;
    result->size = entry.size;
    result->mtime_ns = entry.mtime_ns;
    for (guint64 seen = 0;;) {
        const void *data;
        gsize size;
        if (!spr_tar_reader_read(reader, &data, &size, error))
            return false;
        seen += size;
        if (size == 0 && seen != entry.size)
            return dkr_failure_broken(error, "the file's bytes ended early");
        if (size == 0 || !window_write(window, data, size))
            return true;
    }
}

static bool read_command(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                         Window *window, const SprWait *wait, GError **error)
{
    const char *const args[] = {facts->path, NULL};
    g_auto(GStrv) argv = dkr_script_argv("exec cat -- \"$1\"", args);
    DkrCommand command = {
        .argv = (const char *const *)argv, .cwd = "/", .out = {window_write, window}};
    DkrCommandResult result;
    g_autoptr(GError) why = NULL;
    bool ok = dkr_run(venue, &command, wait, &result, &why);
    if (!ok && spr_error_is(why, SPR_E_REFUSED, NULL) && window->left == 0)
        return true;
    if (!ok) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    if (result.flags & DKR_COMMAND_KILLED)
        return spr_fail(error, SPR_E_CANCELLED, "cancelled", "cancelled by the caller");
    if (result.exit_code != 0)
        return spr_fail(error, SPR_E_IO, "read-failed", "cat ended with code %d", result.exit_code);
    return true;
}

bool dkr_file_read(const DkrContext *context, const DkrLife *life, const char *path, guint64 offset,
                   guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                   DkrReadResult *ret_result, GError **error)
{
    const DkrVenue at = dkr_life_venue(life, context), *venue = &at;
    g_auto(DkrFileFacts) facts = {0};
    g_autoptr(GError) why = NULL;
    if (!probe(venue, life, path, "read", wait, &facts, error))
        return false;
    Window window = {.sink = sink, .skip = offset, .left = max_bytes ? max_bytes : G_MAXUINT64};
    DkrReadResult result = {
        .mode = facts.mode & 0777, .size = facts.size, .mtime_ns = spr_tar_time(facts.mtime_s, 0)};
    bool ok = dkr_file_is_in_archive(life, &facts)
                  ? read_archive(venue, life, &facts, &window, wait, &result, &why)
                  : read_command(venue, life, &facts, &window, wait, &why);
    if (window.refused)
        return spr_fail(error, SPR_E_REFUSED, "sink-stopped",
                        "%s: the taker of the bytes asked to stop", path);
    if (!ok) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why), "%s: ", path);
        return false;
    }
    result.count = window.count;
    *ret_result = result;
    return true;
}

/* --------------------------------------------------------------------------- writing */

static bool meter_read(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                       GError **error)
{
    DkrFileMeter *meter = ctx;
    if (!meter->source->read(meter->source->ctx, buffer, capacity, ret_size, ret_again_fd, error))
        return false;
    meter->count += *ret_size;
    return true;
}

bool dkr_file_put_temporary(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                            const char *temporary, guint mode, DkrFileMeter *meter,
                            const SprWait *wait, GError **error)
{
    bool fresh = facts->kind == DKR_FILE_MISSING;
    SprTarEntry entry = {.mode = mode,
                         .uid = fresh ? facts->user_uid : facts->uid,
                         .gid = fresh ? facts->user_gid : facts->gid,
                         .size = meter->announced,
                         .mtime_ns = g_get_real_time() * 1000};
    g_autoptr(SprTarWriter) writer = NULL;
    return spr_tar_writer_new(strrchr(temporary, '/') + 1, &entry, meter_read, meter, &writer,
                              error) &&
           dkr_archive_put(venue->context->client, life->container, facts->directory, writer, wait,
                           error);
}

bool dkr_file_check_step(const GByteArray *output, int exit_code, GError **error)
{
    if (exit_code == 0)
        return true;
    g_autofree char *text = g_strndup((const char *)output->data, output->len);
    bool full = strstr(text, "No space left") || strstr(text, "quota exceeded");
    return spr_fail(error, full ? SPR_E_EXHAUSTED : SPR_E_DENIED,
                    full ? "no-space" : "write-failed", "%s",
                    *text ? text : "it cannot be written");
}

/* Runs a step of a write as the sandbox's user; what it prints on failure is the reason. */
static bool run_step(const DkrVenue *venue, const DkrLife *life, const char *script,
                     const char *const *args, const DkrSource *source, const SprWait *wait,
                     GError **error)
{
    g_autoptr(GByteArray) output = NULL;
    int exit_code;
    if (!dkr_script_run(venue, NULL, script, args, source, wait, &output, &exit_code, error))
        return false;
    return dkr_file_check_step(output, exit_code, error);
}

static bool stream_to(const DkrVenue *venue, const DkrLife *life, const char *target,
                      DkrFileMeter *meter, const SprWait *wait, GError **error)
{
    const char *args[] = {target, NULL};
    DkrSource source = {meter_read, meter};
    return run_step(venue, life, "umask 077; cat 2>&1 >\"$1\"", args, &source, wait, error);
}

const char dkr_file_commit_script[] =
    "exec 2>&1\n"
    "s=$(stat -c %s -- \"$1\") || exit 1\n"
    "[ \"$s\" = \"$3\" ] || { echo \"$s of $3 bytes arrived\"; exit 1; }\n"
    "if [ -n \"$4\" ]; then chmod \"$4\" \"$1\" || exit 1; fi\n"
    "if [ -n \"$5\" ]; then chown \"$5\" \"$1\" || exit 1; fi\n"
    "[ -z \"$2\" ] && exit 0\n"
    "[ -d \"$2\" ] && { echo 'is a directory'; exit 1; }\n"
    "mv -f -- \"$1\" \"$2\"\n";

static bool commit(const DkrVenue *venue, const DkrLife *life, const char *from, const char *to,
                   const char *mode, const char *owner, const DkrFileMeter *meter,
                   const SprWait *wait, GError **error)
{
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, meter->count);
    const char *args[] = {from, to, size, mode, owner, NULL};
    return run_step(venue, life, dkr_file_commit_script, args, NULL, wait, error);
}

/* Whether the file is there once the engine is done with a transfer that was broken off: asking
 * waits for the container's lock. */
static bool is_there(const DkrVenue *venue, const char *path, const SprWait *wait)
{
    guint64 size;
    g_autoptr(GError) why = NULL;
    return dkr_archive_size(venue->context->client, venue->container, path, wait, &size, &why) ||
           !spr_error_is(why, SPR_E_NOT_FOUND, NULL);
}

void dkr_file_remove_temporary(const DkrVenue *venue, const DkrLife *life, const char *path,
                               bool by_archive, const SprWait *call)
{
    SprWait wait = dkr_client_wait_to_tidy(venue->context->client, call, CLEANUP_LIMIT_MS);
    const char *args[] = {path, NULL};
    g_autoptr(GError) error = NULL;
    bool ok = true;
    for (int tries = 0; ok && tries < CLEANUP_TRIES; tries++) {
        if (by_archive && !is_there(venue, path, &wait) && tries > 0)
            return;
        ok = run_step(venue, life, "exec rm -f -- \"$1\" 2>&1", args, NULL, &wait, &error);
        if (ok && !by_archive)
            return;
    }
    if (!ok)
        spr_log(&venue->context->log, SPR_LOG_WARNING, "files", "%s was left behind: %s", path,
                error->message);
}

/* The owner a replaced file has to be given back, or "": the engine set it, or it is the user's. */
static char *owner_to_restore(const DkrFileFacts *facts)
{
    if (facts->kind == DKR_FILE_MISSING || facts->uid == facts->user_uid)
        return g_strdup("");
    return g_strdup_printf("%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT, facts->uid, facts->gid);
}

char *dkr_file_temporary(const DkrFileFacts *facts)
{
    g_autofree char *token = spr_random_hex(8);
    return g_strdup_printf("%s/.sprov-%s.tmp",
                           strcmp(facts->directory, "/") == 0 ? "" : facts->directory, token);
}

guint dkr_file_mode(const DkrFileFacts *facts, guint wished)
{
    bool exists = facts->kind == DKR_FILE_REGULAR;
    return wished ? wished : exists ? facts->mode & 07777 : DEFAULT_MODE;
}

static bool replace(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                    guint mode, DkrFileMeter *meter, const SprWait *wait, GError **error)
{
    bool by_archive = dkr_file_is_in_archive(life, facts) && meter->announced != G_MAXUINT64;
    g_autofree char *temporary = dkr_file_temporary(facts);
    g_autofree char *mode_text = by_archive ? g_strdup("") : g_strdup_printf("%o", mode);
    g_autofree char *owner = by_archive ? g_strdup("") : owner_to_restore(facts);
    bool ok = by_archive
                  ? dkr_file_put_temporary(venue, life, facts, temporary, mode, meter, wait, error)
                  : stream_to(venue, life, temporary, meter, wait, error);
    ok = ok && commit(venue, life, temporary, facts->path, mode_text, owner, meter, wait, error);
    if (!ok)
        dkr_file_remove_temporary(venue, life, temporary, by_archive, wait);
    return ok;
}

static bool write_in_place(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                           guint mode, DkrFileMeter *meter, const SprWait *wait, GError **error)
{
    g_autofree char *mode_text = mode != facts->mode ? g_strdup_printf("%o", mode) : g_strdup("");
    return stream_to(venue, life, facts->path, meter, wait, error) &&
           commit(venue, life, facts->path, "", mode_text, "", meter, wait, error);
}

bool dkr_file_check_may_write(const DkrFileFacts *facts, const char *path, bool in_place,
                              GError **error)
{
    bool exists = facts->kind == DKR_FILE_REGULAR;
    if (in_place ? exists && facts->may_write : facts->may_write || !exists)
        return true;
    if (dkr_file_is_read_only(facts->mountinfo, facts->path))
        return spr_fail(error, SPR_E_DENIED, "read-only", "%s: the file system is read-only there",
                        path);
    return spr_fail(error, SPR_E_DENIED, "permission", "%s: the sandbox's user may not write there",
                    path);
}

bool dkr_file_must_be_in_place(const DkrFileFacts *facts)
{
    return !facts->may_write_directory ||
           (facts->kind == DKR_FILE_REGULAR && dkr_file_is_mount(facts->mountinfo, facts->path));
}

bool dkr_file_write_probed(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                           const char *path, guint mode, guint64 size, const DkrSource *source,
                           const SprWait *wait, GError **error)
{
    bool in_place = dkr_file_must_be_in_place(facts);
    if (!dkr_file_check_may_write(facts, path, in_place, error))
        return false;
    guint wanted = dkr_file_mode(facts, mode);
    DkrFileMeter meter = {.source = source, .announced = size};
    bool ok = in_place ? write_in_place(venue, life, facts, wanted, &meter, wait, error)
                       : replace(venue, life, facts, wanted, &meter, wait, error);
    if (!ok)
        g_prefix_error(error, "%s: ", path);
    return ok;
}
