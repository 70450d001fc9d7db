#include "supervised/filecalls.h"

#include "base/error.h"
#include "supervised/filetar.h"
#include "supervised/run.h"
#include "supervisor/client/files.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

G_STATIC_ASSERT((int)DKR_FILES_RECURSIVE == (int)SPR_FILE_RECURSIVE);
G_STATIC_ASSERT((int)DKR_FILES_NO_FOLLOW == (int)SPR_FILE_NO_FOLLOW);

#define LARGE_SIZE (128u << 10) /* from here on a pipe is worth what it costs */

/* One call: where, and by which supervisor. */
typedef struct {
    DkrVenue venue;
    const DkrLife *life;
    SprSupervisor *supervisor; /* NULL: none that serves files */
    bool is_own;               /* it is a connection of this call alone, */
    bool is_clean;             /* and the call ended as it should */
    const char *user;          /* that is left to become */
    const SprWait *wait;
} Call;

static void call_clear(Call *call)
{
    if (call->is_own)
        dkr_link_give_back(call->venue.link, call->supervisor, call->is_clean);
    else
        spr_supervisor_unref(call->supervisor);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Call, call_clear)

static bool begin(Call *call, const DkrContext *context, const DkrLife *life, const char *user,
                  const SprWait *wait, GError **error)
{
    *call = (Call){.venue = dkr_life_venue(life, context), .life = life, .wait = wait};
    if (!call->venue.link)
        return true;
    if (!dkr_venue_supervisor(&call->venue, user, wait, &call->supervisor, &call->user, error))
        return false;
    if (call->supervisor && !spr_files_are_served(call->supervisor))
        g_clear_pointer(&call->supervisor, spr_supervisor_unref);
    SprSupervisor *own = NULL;
    if (call->supervisor)
        own = dkr_link_take_own(call->venue.link, call->supervisor, wait);
    if (own) {
        spr_supervisor_unref(call->supervisor);
        call->supervisor = own;
        call->is_own = true;
    }
    return true;
}

static bool begin_supervised(Call *call, const DkrContext *context, const DkrLife *life,
                             const char *user, const SprWait *wait, GError **error)
{
    if (!begin(call, context, life, user, wait, error))
        return false;
    return call->supervisor ||
           spr_fail(error, SPR_E_UNSUPPORTED, "no-supervisor",
                    "this needs a supervisor in the sandbox, which it was made without: see the "
                    "option \"supervisor\"");
}

/* Errors of the connection concern the sandbox rather than the file. */
static bool finish(Call *call, bool ok, GError *why, GError **error)
{
    call->is_clean = ok;
    if (ok)
        return true;
    if (spr_error_is(why, SPR_E_IO, "supervisor-lost"))
        return dkr_venue_fail_broken(&call->venue, why, error);
    g_propagate_error(error, why);
    return false;
}

/* ---------------------------------------------------------------------------------- read */

bool dkr_files_read(const DkrContext *context, const DkrLife *life, const char *path,
                    guint64 offset, guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                    DkrReadResult *ret_result, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin(&call, context, life, NULL, wait, error))
        return false;
    if (!call.supervisor)
        return dkr_file_read(context, life, path, offset, max_bytes, sink, wait, ret_result, error);
    g_autofree char *absolute = dkr_life_absolute(life, path);
    SprFileRange range = {absolute, offset, max_bytes};
    SprSink taker = dkr_supervisor_sink(sink);
    SprFileEntry entry;
    GError *why = NULL;
    bool ok = spr_files_read(call.supervisor, &range, &taker, wait, &entry, &why);
    if (ok)
        *ret_result = (DkrReadResult){.mode = entry.mode & 0777,
                                      .size = entry.size,
                                      .mtime_ns = entry.mtime_ns,
                                      .count = entry.length};
    return finish(&call, ok, why, error);
}

/* --------------------------------------------------------------------------------- write */

void dkr_file_write_clear(DkrFileWrite *file)
{
    g_clear_error(&file->failure);
}

static bool was_reached(const GError *failure)
{
    return !spr_error_is(failure, SPR_E_CANCELLED, "not-reached");
}

/* The error of the first that failed; of the first that was not reached when none did. */
static bool judge(DkrFileWrite *files, gsize count, GError **error)
{
    const GError *first = NULL;
    for (gsize i = 0; i < count; i++) {
        const GError *failure = files[i].failure;
        if (failure && (!first || (was_reached(failure) && !was_reached(first))))
            first = failure;
    }
    if (first && error)
        *error = g_error_copy(first);
    return !first;
}

void dkr_file_write_not_reached(DkrFileWrite *file)
{
    spr_fail(&file->failure, SPR_E_CANCELLED, "not-reached", "%s: was not reached", file->path);
}

/* What a source said when it gave up is the answer for its file; what else ended the transfer, for
 * the first that was not reached. */
static void take_failures(DkrFileWrite *files, const SprFileWrite *asked, DkrFeed *feeds,
                          gsize count, const GError *why)
{
    bool told = !why;
    for (gsize i = 0; i < count; i++) {
        if (feeds[i].error)
            g_propagate_prefixed_error(&files[i].failure, g_steal_pointer(&feeds[i].error),
                                       "%s: ", files[i].path);
        told = told || files[i].failure;
    }
    for (gsize i = 0; i < count; i++) {
        if (files[i].failure || asked[i].errno_value == 0)
            continue;
        if (asked[i].errno_value != ECANCELED)
            spr_file_fail(&files[i].failure, asked[i].errno_value, files[i].path);
        else if (told)
            dkr_file_write_not_reached(&files[i]);
        else
            files[i].failure = g_error_copy(why);
        told = true;
    }
}

static bool write_supervised(const Call *call, DkrFileWrite *files, gsize count, GError **error)
{
    g_autofree SprFileWrite *asked = g_new0(SprFileWrite, count);
    g_autofree DkrFeed *feeds = g_new0(DkrFeed, count);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < count; i++) {
        g_ptr_array_add(paths, dkr_life_absolute(call->life, files[i].path));
        dkr_feed_init(&feeds[i], &files[i].source);
        asked[i] = (SprFileWrite){.path = paths->pdata[i],
                                  .mode = files[i].mode,
                                  .source = &feeds[i].adapted,
                                  .large = files[i].size >= LARGE_SIZE};
    }
    GError *why = NULL;
    bool ok = spr_files_write(call->supervisor, asked, count, call->wait, &why);
    if (!ok && spr_error_is(why, SPR_E_IO, "supervisor-lost")) {
        GError *lost = g_steal_pointer(&why);
        dkr_venue_fail_broken(&call->venue, lost, &why);
    }
    take_failures(files, asked, feeds, count, why);
    g_clear_error(&why);
    return judge(files, count, error);
}

bool dkr_files_write(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                     gsize count, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (count == 0)
        return true;
    if (!begin(&call, context, life, NULL, wait, error))
        return false;
    for (gsize i = 0; i < count; i++)
        dkr_file_write_clear(&files[i]);
    if (!call.supervisor) {
        dkr_file_write_batch(context, life, files, count, wait);
        return judge(files, count, error);
    }
    bool is_done = count == 1 && !call.is_own &&
                   dkr_file_write_large(context, life, call.supervisor, files, wait);
    call.is_clean =
        is_done ? judge(files, count, error) : write_supervised(&call, files, count, error);
    return call.is_clean;
}

/* -------------------------------------------------------------------------- stat and list */

typedef struct {
    DkrFileJsonFn emit;
    void *ctx;
    const char *path; /* as it was asked for; NULL: the entry's own */
} Look;

static const char *type_name(SprFileType type)
{
    return type == SPR_FILE_TYPE_FILE        ? "file"
           : type == SPR_FILE_TYPE_DIRECTORY ? "directory"
           : type == SPR_FILE_TYPE_LINK      ? "link"
                                             : "other";
}

/* JSON is UTF-8, names are not always: then the exact bytes stand beside. */
static void set_path(json_t *object, const char *key, const char *bytes_key, const char *path)
{
    gsize size = strlen(path);
    g_autofree char *text = g_utf8_make_valid(path, (gssize)size);
    json_object_set_new(object, key, json_string(text));
    if (g_utf8_validate(path, (gssize)size, NULL))
        return;
    g_autofree char *exact = g_base64_encode((const guchar *)path, size);
    json_object_set_new(object, bytes_key, json_string(exact));
}

static void set_time(json_t *object, gint64 ns)
{
    gint64 seconds = ns / 1000000000, rest = ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(seconds);
    g_autofree char *text = time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%S") : NULL;
    if (text)
        json_object_set_new(object, "mtime", json_sprintf("%s.%09dZ", text, (int)rest));
}

static bool emit_entry(void *ctx, const SprFileEntry *entry)
{
    Look *look = ctx;
    json_auto_t *object = json_object();
    set_path(object, "path", "pathBase64", look->path ? look->path : entry->path);
    json_object_set_new(object, "type", json_string(type_name(entry->type)));
    json_object_set_new(object, "size", json_integer((json_int_t)entry->size));
    json_object_set_new(object, "mode", json_integer((json_int_t)entry->mode));
    json_object_set_new(object, "uid", json_integer(entry->uid));
    json_object_set_new(object, "gid", json_integer(entry->gid));
    set_time(object, entry->mtime_ns);
    if (entry->type == SPR_FILE_TYPE_LINK)
        set_path(object, "target", "targetBase64", entry->target);
    char *text = json_dumps(object, JSON_COMPACT);
    look->emit(look->ctx, text ? text : "{}");
    free(text);
    return true;
}

/* With MISSING_OK, that there is nothing is no failure. */
static bool forgive(guint flags, GError **why)
{
    bool forgiven =
        (flags & DKR_FILES_MISSING_OK) && spr_error_is(*why, SPR_E_NOT_FOUND, "no-such-file");
    if (forgiven)
        g_clear_error(why);
    return forgiven;
}

static bool look_at(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                    Look *look, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, NULL, wait, error))
        return false;
    g_autofree char *absolute = dkr_life_absolute(life, path);
    guint passed = flags & (DKR_FILES_RECURSIVE | DKR_FILES_NO_FOLLOW);
    GError *why = NULL;
    bool ok = look->path
                  ? spr_files_stat(call.supervisor, absolute, passed, emit_entry, look, wait, &why)
                  : spr_files_list(call.supervisor, absolute, passed, emit_entry, look, wait, &why);
    return finish(&call, ok || forgive(flags, &why), why, error);
}

bool dkr_files_stat(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                    DkrFileJsonFn emit, void *ctx, const SprWait *wait, GError **error)
{
    Look look = {emit, ctx, path};
    return look_at(context, life, path, flags, &look, wait, error);
}

bool dkr_files_list(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                    DkrFileJsonFn emit, void *ctx, const SprWait *wait, GError **error)
{
    Look look = {emit, ctx, NULL};
    return look_at(context, life, path, flags, &look, wait, error);
}

/* ------------------------------------------------------------------------------- changes */

bool dkr_files_make_directory(const DkrContext *context, const DkrLife *life, const char *path,
                              guint mode, guint flags, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, NULL, wait, error))
        return false;
    g_autofree char *absolute = dkr_life_absolute(life, path);
    GError *why = NULL;
    bool ok = spr_files_make_directory(call.supervisor, absolute, mode, flags, wait, &why);
    return finish(&call, ok, why, error);
}

bool dkr_files_remove(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                      const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, NULL, wait, error))
        return false;
    g_autofree char *absolute = dkr_life_absolute(life, path);
    GError *why = NULL;
    bool ok = spr_files_remove(call.supervisor, absolute, flags & DKR_FILES_RECURSIVE, wait, &why);
    return finish(&call, ok || forgive(flags, &why), why, error);
}

bool dkr_files_rename(const DkrContext *context, const DkrLife *life, const char *from,
                      const char *to, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, NULL, wait, error))
        return false;
    g_autofree char *absolute_from = dkr_life_absolute(life, from);
    g_autofree char *absolute_to = dkr_life_absolute(life, to);
    GError *why = NULL;
    bool ok = spr_files_rename(call.supervisor, absolute_from, absolute_to, wait, &why);
    return finish(&call, ok, why, error);
}

/* ------------------------------------------------------------------------------ archives */

/* A root that may not change users: that user has a supervisor of its own, as for its commands. */
static bool become(Call *call, const char *user, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (!call->user || spr_files_check_user(call->supervisor, call->user, call->wait, &why))
        return true;
    if (!spr_error_is(why, SPR_E_UNSUPPORTED, "user-change")) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    g_clear_pointer(&call->supervisor, spr_supervisor_unref);
    call->user = NULL;
    return dkr_link_get(call->venue.link, user, call->wait, &call->supervisor, error);
}

bool dkr_files_put(const DkrContext *context, const DkrLife *life, const char *directory,
                   const char *user, const DkrSource *source, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, user, wait, error) || !become(&call, user, error))
        return false;
    g_autofree char *absolute = dkr_life_absolute(life, directory);
    g_autoptr(DkrUntar) untar = dkr_untar_new(source, wait);
    GError *why = NULL;
    bool ok =
        spr_files_put(call.supervisor, absolute, call.user, dkr_untar_source(untar), wait, &why);
    if (!ok && dkr_untar_error(untar)) {
        g_error_free(why);
        why = g_error_copy(dkr_untar_error(untar));
    }
    return finish(&call, ok, why, error);
}

bool dkr_files_get(const DkrContext *context, const DkrLife *life, const char *path,
                   const DkrSink *sink, const SprWait *wait, GError **error)
{
    g_auto(Call) call = {0};
    if (!begin_supervised(&call, context, life, NULL, wait, error))
        return false;
    g_autofree char *absolute = dkr_life_absolute(life, path);
    g_autoptr(DkrTar) tar = dkr_tar_new(sink);
    SprFileTaker taker = dkr_tar_taker(tar);
    GError *why = NULL;
    bool ok =
        spr_files_get(call.supervisor, absolute, &taker, wait, &why) && dkr_tar_finish(tar, &why);
    if (!ok && dkr_tar_error(tar)) {
        g_clear_error(&why);
        why = g_error_copy(dkr_tar_error(tar));
    }
    return finish(&call, ok, why, error);
}
