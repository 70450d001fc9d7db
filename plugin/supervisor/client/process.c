#include "supervisor/client/process.h"

#include "base/error.h"
#include "supervisor/client/link.h"

#include <errno.h>
#include <stdlib.h>

#define ANSWER_MS 30000 /* for what the program answers at once */

/* ------------------------------------------------------------------------------- answers */

static bool fail_with(int errno_value, guint64 id, GError **error)
{
    switch (errno_value) {
    case ENOENT:
        return spr_fail(error, SPR_E_NOT_FOUND, "process-not-found",
                        "the sandbox has no process %" G_GUINT64_FORMAT
                        ": it was forgotten or never there",
                        id);
    case ESRCH:
        return spr_fail(error, SPR_E_NOT_FOUND, "process-ended",
                        "process %" G_GUINT64_FORMAT " has ended", id);
    case EAGAIN:
        return spr_fail(error, SPR_E_WOULD_BLOCK, "would-block",
                        "process %" G_GUINT64_FORMAT " is not that far", id);
    case EPIPE:
        return spr_fail(error, SPR_E_CONFLICT, "stdin-closed",
                        "nobody reads the input of process %" G_GUINT64_FORMAT, id);
    case EBUSY:
        return spr_fail(error, SPR_E_CONFLICT, "process-runs",
                        "process %" G_GUINT64_FORMAT " is still running: kill it first", id);
    case ENOTTY:
        return spr_fail(error, SPR_E_CONFLICT, "no-terminal",
                        "process %" G_GUINT64_FORMAT " is on no terminal, or has ended", id);
    case EPERM:
        return spr_fail(error, SPR_E_DENIED, "signal-denied",
                        "process %" G_GUINT64_FORMAT " may not be signalled", id);
    default:
        return spr_fail_errno(error, SPR_E_INTERNAL, errno_value, "process",
                              "process %" G_GUINT64_FORMAT, id);
    }
}

/* One request about one process, with its payload behind the number. */
typedef struct {
    SprSupervisor *supervisor;
    guint64 id;
    SprWireType type;
    guint8 stream;
    guint16 flags;
    guint8 payload[40];
    SprWireWriter w;
} Request;

static void begin(Request *request, SprSupervisor *supervisor, guint64 id, SprWireType type)
{
    *request = (Request){.supervisor = supervisor, .id = id, .type = type};
    request->w = (SprWireWriter){request->payload, sizeof request->payload, false};
    spr_wire_put(&request->w, id, 8);
}

/* Asks, and waits as long as the request may wait there; then `frame` is any answer but a failure.
 */
static bool ask(Request *request, SprChannel **ret_channel, const SprWait *wait,
                SprFrame *ret_frame, GError **error)
{
    g_autoptr(SprChannel) channel = spr_channel_new(request->supervisor, error);
    SprWait soon = spr_wait_for(ANSWER_MS);
    SprFrame frame;
    int errno_value = 0;
    guint64 value;
    if (!channel || !spr_channel_ask(channel, request->type, request->stream, request->flags,
                                     request->payload, sizeof request->payload - request->w.left,
                                     wait ? wait : &soon, &frame, error))
        return false;
    if (frame.header.type == SPR_WIRE_DONE) {
        if (!spr_codec_done(frame.payload, frame.header.size, &errno_value, &value))
            return spr_channel_break(channel, "its answer makes no sense", error);
        if (errno_value != 0)
            return fail_with(errno_value, request->id, error);
    }
    *ret_frame = frame;
    *ret_channel = g_steal_pointer(&channel);
    return true;
}

/* For requests that are answered by DONE. */
static bool ask_done(Request *request, const SprWait *wait, guint16 *ret_flags, guint64 *ret_value,
                     GError **error)
{
    int errno_value;
    guint64 value;
    g_autoptr(SprChannel) channel = NULL;
    SprFrame frame;
    if (!ask(request, &channel, wait, &frame, error))
        return false;
    if (frame.header.type != SPR_WIRE_DONE)
        return spr_channel_break(channel, "it answered what was not asked", error);
    spr_codec_done(frame.payload, frame.header.size, &errno_value, &value);
    if (ret_flags)
        *ret_flags = frame.header.flags;
    if (ret_value)
        *ret_value = value;
    return true;
}

/* -------------------------------------------------------------------------------- spawn */

static bool on_start_answer(SprChannel *channel, const SprSpawn *spawn, const SprFrame *frame,
                            guint64 *ret_id, GError **error)
{
    SprWireReader r = {frame->payload, frame->header.size, false};
    int errno_value;
    guint step;
    if (frame->header.type == SPR_WIRE_STARTED) {
        guint64 id = spr_wire_get(&r, 8);
        if (id == 0)
            return spr_channel_break(channel, "its process has no number", error);
        *ret_id = id;
        return true;
    }
    if (frame->header.type != SPR_WIRE_START_FAILED ||
        !spr_codec_start_failed(frame->payload, frame->header.size, &errno_value, &step))
        return spr_channel_break(channel, "it answered what was not asked", error);
    spr_codec_start_error(spawn->command, errno_value, step, error);
    return false;
}

bool spr_process_spawn(SprSupervisor *supervisor, const SprSpawn *spawn, const SprWait *wait,
                       guint64 *ret_id, GError **error)
{
    g_autoptr(SprChannel) channel = NULL;
    SprRunOptions options = {.flags = SPR_WIRE_RUN_DETACHED};
    if (spawn->feeds_stdin)
        options.flags |= SPR_WIRE_RUN_STDIN;
    if (spawn->holds)
        options.flags |= SPR_WIRE_RUN_HOLD;
    if (spawn->retain_bytes == SPR_RETAIN_NONE)
        options.flags |= SPR_WIRE_RUN_KEEP_NOTHING;
    else
        options.retain = spawn->retain_bytes;
    if (!spr_wait_check(wait, error) || !(channel = spr_channel_new(supervisor, error)))
        return false;
    gsize size;
    guint8 *frames = spr_codec_run(spawn->command, &options, spr_channel_id(channel), &size, error);
    if (!frames)
        return false;
    bool sent = spr_channel_send_secret(channel, frames, size, error);
    explicit_bzero(frames, size);
    g_free(frames);
    SprFrame frame;
    return sent && spr_channel_next(channel, wait, NULL, 0, SPR_NEVER, &frame, error) &&
           on_start_answer(channel, spawn, &frame, ret_id, error);
}

/* --------------------------------------------------------------------------------- names */

char *spr_process_name(SprSupervisor *supervisor, guint64 id)
{
    return g_strdup_printf("%s-%" G_GUINT64_FORMAT, spr_supervisor_info(supervisor)->instance, id);
}

bool spr_process_parse_name(SprSupervisor *supervisor, const char *name, guint64 *ret_id,
                            GError **error)
{
    const char *instance = spr_supervisor_info(supervisor)->instance;
    gsize size = strlen(instance);
    guint64 id = 0;
    if (strncmp(name, instance, size) == 0 && name[size] == '-')
        g_ascii_string_to_unsigned(name + size + 1, 10, 1, G_MAXUINT64, &id, NULL);
    if (id == 0)
        return spr_fail(error, SPR_E_NOT_FOUND, "process-not-found",
                        "the sandbox has no process \"%s\": it ended with an earlier life of it",
                        name);
    *ret_id = id;
    return true;
}

bool spr_process_find(SprSupervisor *supervisor, guint64 id, const SprWait *wait,
                      SprProcessInfo *ret_info, GError **error)
{
    g_autoptr(SprChannel) channel = NULL;
    Request request;
    SprFrame frame;
    begin(&request, supervisor, id, SPR_WIRE_FIND);
    if (!ask(&request, &channel, wait, &frame, error))
        return false;
    SprProcessInfo info;
    if (frame.header.type != SPR_WIRE_PROCESS ||
        !spr_codec_process(frame.payload, frame.header.size, &info) || info.id != id)
        return spr_channel_break(channel, "its answer makes no sense", error);
    *ret_info = info;
    return true;
}

/* Pages of the list until one says that it is the last. */
bool spr_process_list(SprSupervisor *supervisor,
                      bool (*each)(void *ctx, const SprProcessInfo *info), void *ctx,
                      const SprWait *wait, GError **error)
{
    guint64 after = 0;
    for (;;) {
        g_autoptr(SprChannel) channel = NULL;
        Request request;
        SprFrame frame;
        begin(&request, supervisor, after, SPR_WIRE_LIST);
        if (!ask(&request, &channel, wait, &frame, error))
            return false;
        while (frame.header.type == SPR_WIRE_PROCESS) {
            SprProcessInfo info;
            if (!spr_codec_process(frame.payload, frame.header.size, &info) || info.id <= after)
                return spr_channel_break(channel, "its list makes no sense", error);
            after = info.id;
            if (!each(ctx, &info))
                return true;
            if (!spr_channel_next(channel, wait, NULL, 0, SPR_NEVER, &frame, error))
                return false;
        }
        if (frame.header.type != SPR_WIRE_DONE)
            return spr_channel_break(channel, "it answered what was not asked", error);
        if (!(frame.header.flags & SPR_WIRE_MORE))
            return true;
    }
}

/* --------------------------------------------------------------------------- while it runs */

bool spr_process_wait(SprSupervisor *supervisor, guint64 id, const SprWait *wait, SprExit *ret_exit,
                      GError **error)
{
    g_autoptr(SprChannel) channel = NULL;
    Request request;
    SprFrame frame;
    bool lost;
    begin(&request, supervisor, id, SPR_WIRE_WAIT);
    request.flags = wait ? SPR_WIRE_WAIT_FOR_IT : 0;
    if (!ask(&request, &channel, wait, &frame, error))
        return false;
    if (frame.header.type != SPR_WIRE_EXITED ||
        !spr_codec_exited(frame.payload, frame.header.size, ret_exit, &lost))
        return spr_channel_break(channel, "its result makes no sense", error);
    return true;
}

bool spr_process_kill(SprSupervisor *supervisor, guint64 id, int signal, SprScope scope,
                      gint64 grace_ms, const SprWait *wait, bool *ret_confirmed, GError **error)
{
    Request request;
    guint16 flags;
    if (signal < 0 || signal > 64)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "signal", "%d is no signal", signal);
    begin(&request, supervisor, id, SPR_WIRE_KILL);
    spr_wire_put(&request.w, (guint64)signal, 4);
    spr_wire_put(&request.w, scope, 4);
    spr_wire_put(&request.w, (guint64)MAX(grace_ms, 0), 8);
    if (!ask_done(&request, wait, &flags, NULL, error))
        return false;
    *ret_confirmed = !(flags & SPR_WIRE_UNSURE);
    return true;
}

bool spr_process_read(SprSupervisor *supervisor, guint64 id, SprStream stream, bool take,
                      guint64 *offset, void *buffer, gsize room, gsize *ret_count,
                      const SprWait *wait, GError **error)
{
    g_autoptr(SprChannel) channel = NULL;
    Request request;
    SprFrame frame;
    gsize most = MIN(room, SPR_WIRE_MAX_DATA);
    if (most == 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "buffer", "the buffer has no room");
    begin(&request, supervisor, id, SPR_WIRE_READ);
    spr_wire_put(&request.w, *offset, 8);
    spr_wire_put(&request.w, most, 4);
    request.stream = (guint8)stream;
    request.flags = (wait ? SPR_WIRE_WAIT_FOR_IT : 0) | (take ? SPR_WIRE_TAKE : 0);
    if (!ask(&request, &channel, wait, &frame, error))
        return false;
    SprWireReader r = {frame.payload, frame.header.size, false};
    guint64 at = spr_wire_get(&r, 8);
    bool is_end = r.left == 0;
    if (frame.header.type != SPR_WIRE_OUTPUT || frame.header.stream != stream || r.left > most ||
        (at < *offset && !is_end) || is_end != !!(frame.header.flags & SPR_WIRE_END))
        return spr_channel_break(channel, "its output makes no sense", error);
    memcpy(buffer, r.at, r.left);
    *offset = MAX(*offset, at + r.left);
    *ret_count = r.left;
    return true;
}

bool spr_process_watch(SprSupervisor *supervisor, guint64 id, guint wanted, guint64 out_offset,
                       guint64 err_offset, const SprWait *wait, guint *ret_ready, GError **error)
{
    Request request;
    guint64 ready;
    begin(&request, supervisor, id, SPR_WIRE_WATCH);
    spr_wire_put(&request.w, out_offset, 8);
    spr_wire_put(&request.w, err_offset, 8);
    spr_wire_put(&request.w, wanted, 4);
    request.flags = wait ? SPR_WIRE_WAIT_FOR_IT : 0;
    if (!ask_done(&request, wait, NULL, &ready, error))
        return false;
    *ret_ready = (guint)ready & wanted;
    return true;
}

/* ---------------------------------------------------------------------------------- input */

/* One frame's worth; *ret_taken may be 0 when it was full. */
static bool write_piece(SprSupervisor *supervisor, guint64 id, guint16 flags, const void *data,
                        gsize size, const SprWait *wait, gsize *ret_taken, GError **error)
{
    g_autoptr(SprChannel) channel = spr_channel_new(supervisor, error);
    g_autofree guint8 *payload = g_malloc(8 + size);
    SprWireWriter w = {payload, 8 + size, false};
    SprWait soon = spr_wait_for(ANSWER_MS);
    SprFrame frame;
    int errno_value;
    guint64 taken;
    spr_wire_put(&w, id, 8);
    spr_wire_put_bytes(&w, data, size);
    flags |= wait ? SPR_WIRE_WAIT_FOR_IT : 0;
    if (!channel || !spr_channel_ask(channel, SPR_WIRE_WRITE, SPR_WIRE_IN, flags, payload, 8 + size,
                                     wait ? wait : &soon, &frame, error))
        return false;
    if (frame.header.type != SPR_WIRE_DONE ||
        !spr_codec_done(frame.payload, frame.header.size, &errno_value, &taken) || taken > size)
        return spr_channel_break(channel, "its answer makes no sense", error);
    if (errno_value != 0 && errno_value != EAGAIN)
        return fail_with(errno_value, id, error);
    *ret_taken = (gsize)taken;
    return true;
}

bool spr_process_write(SprSupervisor *supervisor, guint64 id, const void *data, gsize size,
                       gsize *ret_written, const SprWait *wait, GError **error)
{
    gsize done = 0;
    *ret_written = 0;
    do {
        gsize taken = 0, piece = MIN(size - done, SPR_WIRE_MAX_DATA);
        if (!write_piece(supervisor, id, 0, (const guint8 *)data + done, piece, wait, &taken,
                         error))
            return false;
        done += taken;
        *ret_written = done;
        if (!wait && taken < piece)
            return done > 0 || fail_with(EAGAIN, id, error);
    } while (done < size);
    return true;
}

bool spr_process_close_stdin(SprSupervisor *supervisor, guint64 id, const SprWait *wait,
                             GError **error)
{
    gsize taken;
    return write_piece(supervisor, id, SPR_WIRE_CLOSE, "", 0, wait, &taken, error);
}

bool spr_process_resize(SprSupervisor *supervisor, guint64 id, guint16 rows, guint16 columns,
                        const SprWait *wait, GError **error)
{
    Request request;
    begin(&request, supervisor, id, SPR_WIRE_RESIZE);
    spr_wire_put(&request.w, rows, 2);
    spr_wire_put(&request.w, columns, 2);
    return ask_done(&request, wait, NULL, NULL, error);
}

bool spr_process_forget(SprSupervisor *supervisor, guint64 id, const SprWait *wait, GError **error)
{
    Request request;
    begin(&request, supervisor, id, SPR_WIRE_FORGET);
    return ask_done(&request, wait, NULL, NULL, error);
}
