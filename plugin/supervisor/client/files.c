#include "supervisor/client/files.h"

#include "base/error.h"
#include "supervisor/client/fileitems.h"

#include <errno.h>

#define STALL_MS (30 * 1000)

bool spr_files_are_served(const SprSupervisor *supervisor)
{
    return spr_supervisor_info(supervisor)->features & SPR_WIRE_FEATURE_FILES;
}

/* One request on its way. */
typedef struct {
    const char *shown; /* the path, for messages */
    SprFileDecoder decoder;
    bool one_file; /* its last byte is the end */
    bool much_input;
    bool has_entry;
    int errno_value;
    char *failed; /* below `shown`, or NULL */
} Ask;

static void ask_clear(Ask *ask)
{
    g_free(ask->failed);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ask, ask_clear)

static bool is_answered(const Ask *ask)
{
    const SprFileDecoder *decoder = &ask->decoder;
    return decoder->ended || ask->errno_value != 0 ||
           (ask->one_file && ask->has_entry && decoder->left == 0);
}

static SprFlow take_output(void *ctx, const void *data, gsize size)
{
    Ask *ask = ctx;
    bool more = spr_file_decode(&ask->decoder, data, size);
    if (is_answered(ask))
        return SPR_FLOW_ENOUGH;
    return more ? SPR_FLOW_CONTINUE : SPR_FLOW_STOP;
}

/* A failure that stands for the whole request. */
static bool take_failure(Ask *ask, int errno_value, const char *path)
{
    ask->errno_value = errno_value ? errno_value : EPROTO;
    g_free(ask->failed);
    ask->failed = *path ? g_strdup(path) : NULL;
    return false;
}

static bool fail_ask(const Ask *ask, int errno_value, GError **error)
{
    g_autofree char *path =
        ask->failed ? g_build_filename(ask->shown, ask->failed, NULL) : g_strdup(ask->shown);
    return spr_file_fail(error, errno_value, path);
}

/* What the stream's end and the exit code say where no record did. */
static bool judge_end(const Ask *ask, const SprExit *exit, GError **error)
{
    bool endless = ask->one_file && ask->decoder.left == SPR_FILE_UNKNOWN;
    if (exit->flags & SPR_EXIT_TIMED_OUT)
        return spr_fail(error, SPR_E_TIMEOUT, "stalled", "%s: no byte moved for %d s", ask->shown,
                        STALL_MS / 1000);
    if (exit->flags & SPR_EXIT_KILLED)
        return spr_fail(error, SPR_E_CANCELLED, "cancelled", "%s: cancelled by the caller",
                        ask->shown);
    if (exit->exit_code != 0)
        return fail_ask(ask, exit->exit_code, error);
    return (endless && ask->has_entry) ||
           spr_fail(error, SPR_E_IO, "bad-answer", "%s: the supervisor's answer ended early",
                    ask->shown);
}

static bool run(Ask *ask, SprSupervisor *supervisor, const char *const *argv, const char *user,
                const SprSource *source, const SprWait *wait, GError **error)
{
    SprCommand command = {.argv = argv,
                          .user = user,
                          .files = true,
                          .much_input = ask->much_input,
                          .stall_ms = STALL_MS};
    SprSink sink = {ask, take_output};
    SprExit exit = {0};
    GError *why = NULL;
    bool ok = spr_supervisor_exec(supervisor, &command, source, &sink, NULL, wait, &exit, &why);
    if (ask->decoder.broken) {
        g_clear_error(&why);
        return spr_fail(error, SPR_E_IO, "bad-answer", "%s: the supervisor's answer makes no sense",
                        ask->shown);
    }
    if (!ok) {
        g_propagate_prefixed_error(error, why, "%s: ", ask->shown);
        return false;
    }
    if (ask->errno_value != 0)
        return fail_ask(ask, ask->errno_value, error);
    return is_answered(ask) || judge_end(ask, &exit, error);
}

/* ---------------------------------------------------------------------------------- read */

typedef struct {
    Ask ask;
    const SprSink *sink;
    SprFileEntry entry;
    guint64 count;
} Read;

static bool read_entry(void *ctx, const SprFileEntry *entry)
{
    Read *read = ctx;
    if (read->ask.has_entry)
        return false;
    read->ask.has_entry = true;
    read->entry = *entry;
    read->entry.path = read->entry.target = NULL;
    return true;
}

static bool read_bytes(void *ctx, const void *bytes, gsize size)
{
    Read *read = ctx;
    read->count += size;
    return read->sink->write(read->sink->ctx, bytes, size) == SPR_FLOW_CONTINUE;
}

static bool read_status(void *ctx, int errno_value, guint32 number, const char *path)
{
    return take_failure(&((Read *)ctx)->ask, errno_value, path);
}

bool spr_files_read(SprSupervisor *supervisor, const SprFileRange *range, const SprSink *sink,
                    const SprWait *wait, SprFileEntry *ret_entry, GError **error)
{
    Read read = {.ask = {.shown = range->path, .one_file = true}, .sink = sink};
    read.ask.decoder.taker = (SprFileTaker){read_entry, read_bytes, read_status, &read};
    g_autofree char *offset = g_strdup_printf("%" G_GUINT64_FORMAT, range->offset);
    g_autofree char *most = g_strdup_printf("%" G_GUINT64_FORMAT, range->most);
    const char *argv[] = {"read", range->path, offset, most, NULL};
    bool ok = run(&read.ask, supervisor, argv, NULL, NULL, wait, error);
    ask_clear(&read.ask);
    if (ok) {
        *ret_entry = read.entry;
        ret_entry->length = read.count;
    }
    return ok;
}

/* --------------------------------------------------------------------------------- write */

typedef struct {
    Ask ask;
    SprFileWrite *files;
    gsize count, at; /* at: whose bytes are being sent */
    gsize answered;
    bool in_file;
    SprItems items;
} Write;

static SprSourceStatus next_item(void *ctx, guint8 *to, gsize room, gsize *ret_count)
{
    Write *write = ctx;
    SprFileWrite *file = &write->files[write->at];
    if (!write->in_file && write->at == write->count) {
        spr_items_end(&write->items);
        return SPR_SOURCE_OK;
    }
    if (!write->in_file) {
        write->in_file = true;
        spr_file_put_item(write->items.pending, SPR_FILE_FILE, file->mode, SPR_FILE_NO_TIME,
                          file->path, "");
        return SPR_SOURCE_OK;
    }
    gsize n = 0;
    SprSourceStatus status = file->source->read(file->source->ctx, to + 4, room - 4, &n);
    write->items.source.fd = file->source->fd;
    if (status != SPR_SOURCE_OK || n > room - 4)
        return status == SPR_SOURCE_OK ? SPR_SOURCE_GIVE_UP : status;
    spr_file_put_chunk(to, n);
    *ret_count = n + 4;
    write->in_file = n > 0;
    write->at += n == 0;
    return SPR_SOURCE_OK;
}

static bool write_status(void *ctx, int errno_value, guint32 number, const char *path)
{
    Write *write = ctx;
    if (number != write->answered || number >= write->count) {
        write->ask.decoder.broken = true;
        return false;
    }
    write->files[write->answered++].errno_value = errno_value;
    return true;
}

static bool first_failure(const Write *write, GError **error)
{
    for (gsize i = 0; i < write->count; i++) {
        if (write->files[i].errno_value != 0)
            return spr_file_fail(error, write->files[i].errno_value, write->files[i].path);
    }
    return true;
}

bool spr_files_write(SprSupervisor *supervisor, SprFileWrite *files, gsize count,
                     const SprWait *wait, GError **error)
{
    Write write = {.ask = {.shown = files[0].path}, .files = files, .count = count};
    write.ask.decoder.taker = (SprFileTaker){.status = write_status, .ctx = &write};
    for (gsize i = 0; i < count; i++) {
        files[i].errno_value = ECANCELED;
        write.ask.much_input |= files[i].large;
        if (strlen(files[i].path) >= SPR_FILE_MAX_PATH)
            return spr_file_fail(error, ENAMETOOLONG, files[i].path);
    }
    spr_items_init(&write.items, next_item, &write);
    const char *argv[] = {"write", NULL};
    g_autoptr(GError) why = NULL;
    bool ok = run(&write.ask, supervisor, argv, NULL, &write.items.source, wait, &why);
    spr_items_clear(&write.items);
    ask_clear(&write.ask);
    if (ok && write.answered < count)
        ok = spr_fail(&why, SPR_E_IO, "bad-answer", "%s: the supervisor did not answer for it",
                      files[write.answered].path);
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&why));
    return ok && first_failure(&write, error);
}

/* ------------------------------------------------------------------------ stat and others */

typedef struct {
    Ask ask;
    SprFileEntryFn take;
    void *ctx;
} Look;

static bool look_entry(void *ctx, const SprFileEntry *entry)
{
    Look *look = ctx;
    return entry->length == 0 && look->take(look->ctx, entry);
}

static bool look_status(void *ctx, int errno_value, guint32 number, const char *path)
{
    return take_failure(&((Look *)ctx)->ask, errno_value, path);
}

static bool ask_plainly(SprSupervisor *supervisor, const char *const *argv, const char *user,
                        const SprSource *source, SprFileEntryFn take, void *ctx,
                        const SprWait *wait, GError **error)
{
    Look look = {.ask = {.shown = argv[1], .much_input = source != NULL}, .take = take, .ctx = ctx};
    look.ask.decoder.taker =
        (SprFileTaker){.entry = take ? look_entry : NULL, .status = look_status, .ctx = &look};
    bool ok = run(&look.ask, supervisor, argv, user, source, wait, error);
    ask_clear(&look.ask);
    return ok;
}

bool spr_files_stat(SprSupervisor *supervisor, const char *path, guint flags, SprFileEntryFn take,
                    void *ctx, const SprWait *wait, GError **error)
{
    g_autofree char *number = g_strdup_printf("%u", flags);
    const char *argv[] = {"stat", path, number, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, take, ctx, wait, error);
}

bool spr_files_list(SprSupervisor *supervisor, const char *path, guint flags, SprFileEntryFn take,
                    void *ctx, const SprWait *wait, GError **error)
{
    g_autofree char *number = g_strdup_printf("%u", flags);
    const char *argv[] = {"list", path, number, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, take, ctx, wait, error);
}

bool spr_files_make_directory(SprSupervisor *supervisor, const char *path, guint mode, guint flags,
                              const SprWait *wait, GError **error)
{
    g_autofree char *number = g_strdup_printf("%u", flags);
    g_autofree char *mode_text = g_strdup_printf("%u", mode ? mode : 0755);
    const char *argv[] = {"mkdir", path, mode_text, number, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, NULL, NULL, wait, error);
}

bool spr_files_remove(SprSupervisor *supervisor, const char *path, guint flags, const SprWait *wait,
                      GError **error)
{
    g_autofree char *number = g_strdup_printf("%u", flags);
    const char *argv[] = {"remove", path, number, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, NULL, NULL, wait, error);
}

bool spr_files_rename(SprSupervisor *supervisor, const char *from, const char *to,
                      const SprWait *wait, GError **error)
{
    const char *argv[] = {"rename", from, to, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, NULL, NULL, wait, error);
}

bool spr_files_can_replace(SprSupervisor *supervisor)
{
    return spr_supervisor_info(supervisor)->features & SPR_WIRE_FEATURE_REPLACE;
}

bool spr_files_locate(SprSupervisor *supervisor, const char *path, SprFileEntryFn take, void *ctx,
                      const SprWait *wait, GError **error)
{
    const char *argv[] = {"locate", path, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, take, ctx, wait, error);
}

bool spr_files_replace(SprSupervisor *supervisor, const char *path, const char *name, guint64 size,
                       const SprWait *wait, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, size);
    const char *argv[] = {"replace", path, name, text, NULL};
    return ask_plainly(supervisor, argv, NULL, NULL, NULL, NULL, wait, error);
}

static bool take_nothing(void *ctx, const SprFileEntry *entry)
{
    return true;
}

bool spr_files_check_user(SprSupervisor *supervisor, const char *user, const SprWait *wait,
                          GError **error)
{
    const char *argv[] = {"stat", "/", "0", NULL};
    return ask_plainly(supervisor, argv, user, NULL, take_nothing, NULL, wait, error);
}

/* ------------------------------------------------------------------------------ archives */

bool spr_files_put(SprSupervisor *supervisor, const char *directory, const char *user,
                   const SprSource *items, const SprWait *wait, GError **error)
{
    const char *argv[] = {"put", directory, NULL};
    return ask_plainly(supervisor, argv, user, items, NULL, NULL, wait, error);
}

typedef struct {
    Ask ask;
    const SprFileTaker *taker;
    const char *name; /* that all begin with */
} Get;

/* Names come from the sandbox and end up in an archive that others unpack. */
static bool is_below(const char *path, const char *name)
{
    gsize size = strlen(name);
    if (strncmp(path, name, size) != 0 || (path[size] != '\0' && path[size] != '/'))
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

static bool get_entry(void *ctx, const SprFileEntry *entry)
{
    Get *get = ctx;
    bool hard = entry->type == SPR_FILE_TYPE_HARD_LINK;
    if (!is_below(entry->path, get->name) || (hard && !is_below(entry->target, get->name)) ||
        entry->length == SPR_FILE_UNKNOWN || entry->length > G_MAXINT64) {
        get->ask.decoder.broken = true;
        return false;
    }
    return get->taker->entry(get->taker->ctx, entry);
}

static bool get_bytes(void *ctx, const void *bytes, gsize size)
{
    Get *get = ctx;
    return get->taker->bytes(get->taker->ctx, bytes, size);
}

static bool get_status(void *ctx, int errno_value, guint32 number, const char *path)
{
    Get *get = ctx;
    gsize size = strlen(get->name);
    bool below = strncmp(path, get->name, size) == 0 && path[size] == '/';
    return take_failure(&get->ask, errno_value, below ? path + size + 1 : "");
}

static char *last_part(const char *path)
{
    g_autofree char *trimmed = g_strdup(path);
    for (gsize size = strlen(trimmed); size > 0 && trimmed[size - 1] == '/'; size--)
        trimmed[size - 1] = '\0';
    const char *slash = strrchr(trimmed, '/'), *name = slash ? slash + 1 : trimmed;
    bool nameless = *name == '\0' || strcmp(name, "..") == 0;
    return g_strdup(nameless ? "." : name);
}

bool spr_files_get(SprSupervisor *supervisor, const char *path, const SprFileTaker *taker,
                   const SprWait *wait, GError **error)
{
    g_autofree char *name = last_part(path);
    Get get = {.ask = {.shown = path}, .taker = taker, .name = name};
    get.ask.decoder.taker = (SprFileTaker){get_entry, get_bytes, get_status, &get};
    const char *argv[] = {"get", path, NULL};
    bool ok = run(&get.ask, supervisor, argv, NULL, NULL, wait, error);
    ask_clear(&get.ask);
    return ok;
}
