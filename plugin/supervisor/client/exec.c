#include "supervisor/client/link.h"

#include "base/error.h"

#include <errno.h>
#include <signal.h>

#define WINDOW (512u * 1024) /* credit for each stream */
#define CREDIT_STEP (WINDOW / 4)
#define CONFIRM_MS 4000 /* the program's own patience with a tree is 2 s */

/* One command on its way. */
typedef struct {
    const SprCommand *command;
    const SprSource *source; /* NULL once it ended */
    const SprSink *sinks[3]; /* by stream */
    SprChannel *channel;
    guint64 taken[3], uncredited[3];
    guint64 stdin_credit;
    bool source_waits; /* it said AGAIN */
    bool done;
    bool lost;
    SprExit result;

    const SprWait *wait; /* the caller's */
    SprWait limit;       /* and not longer than a program that keeps its deadlines needs */

    /* Why it is being ended, once it is: what the call answers then. */
    bool ending;
    GError *reason; /* NULL: a cancelled or overdue command is a result, not an error */
} Exec;

/* ms and the time the program needs to end a tree; -1 for never. */
static gint64 with_confirmation(gint64 ms)
{
    return ms > SPR_NEVER / 4 ? -1 : ms + CONFIRM_MS;
}

/* Asks for the end of the tree, once. */
static void end_tree(Exec *exec, GError *reason)
{
    if (exec->ending) {
        g_clear_error(&reason);
        return;
    }
    gint64 grace_ms = MAX(exec->command->grace_ms, 0);
    guint8 payload[24];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, 0, 8);
    spr_wire_put(&w, grace_ms > 0 ? SIGTERM : SIGKILL, 4);
    spr_wire_put(&w, SPR_WIRE_TREE, 4);
    spr_wire_put(&w, (guint64)grace_ms, 8);
    spr_channel_send(exec->channel, SPR_WIRE_KILL, SPR_WIRE_IN, 0, payload, sizeof payload, NULL);
    exec->ending = true;
    exec->reason = reason;
    exec->source = NULL;
    exec->limit = spr_wait_for(with_confirmation(grace_ms));
}

static void refuse(Exec *exec, const char *who)
{
    GError *reason = NULL;
    spr_fail(&reason, SPR_E_REFUSED, "refused", "the caller's %s asked to stop", who);
    end_tree(exec, reason);
    exec->sinks[SPR_WIRE_OUT] = exec->sinks[SPR_WIRE_ERR] = NULL;
}

static bool give_credit(Exec *exec, SprWireStream stream, gsize size, GError **error)
{
    exec->uncredited[stream] += size;
    if (exec->uncredited[stream] < CREDIT_STEP)
        return true;
    guint8 payload[4];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, exec->uncredited[stream], 4);
    exec->uncredited[stream] = 0;
    return spr_channel_send(exec->channel, SPR_WIRE_CREDIT, stream, 0, payload, sizeof payload,
                            error);
}

static bool on_output(Exec *exec, const SprFrame *frame, GError **error)
{
    SprWireStream stream = (SprWireStream)frame->header.stream;
    SprWireReader r = {frame->payload, frame->header.size, false};
    guint64 offset = spr_wire_get(&r, 8);
    if (offset != exec->taken[stream] || exec->uncredited[stream] + r.left > WINDOW)
        return spr_channel_break(exec->channel, "its output has a gap", error);
    exec->taken[stream] += r.left;
    const SprSink *sink = exec->sinks[stream];
    if (sink && r.left > 0 && sink->write(sink->ctx, r.at, r.left) != SPR_FLOW_CONTINUE)
        refuse(exec, "sink");
    return give_credit(exec, stream, r.left, error);
}

static bool on_exited(Exec *exec, const SprFrame *frame, GError **error)
{
    if (!spr_codec_exited(frame->payload, frame->header.size, &exec->result, &exec->lost) ||
        exec->result.out_bytes < exec->taken[SPR_WIRE_OUT] ||
        exec->result.err_bytes < exec->taken[SPR_WIRE_ERR])
        return spr_channel_break(exec->channel, "its result makes no sense", error);
    exec->result.out_bytes = exec->taken[SPR_WIRE_OUT];
    exec->result.err_bytes = exec->taken[SPR_WIRE_ERR];
    exec->done = true;
    return true;
}

/* As a shell would say it: the command ran into its own absence. */
static bool on_start_failed(Exec *exec, const SprFrame *frame, GError **error)
{
    int errno_value;
    guint step;
    if (!spr_codec_start_failed(frame->payload, frame->header.size, &errno_value, &step))
        return spr_channel_break(exec->channel, "its failure makes no sense", error);
    int code = spr_codec_start_exit_code(errno_value, step);
    if (code == 0) {
        spr_codec_start_error(exec->command, errno_value, step, error);
        return false;
    }
    g_autofree char *text =
        g_strdup_printf("sprov: %s: %s\n", exec->command->argv[0], g_strerror(errno_value));
    const SprSink *sink = exec->sinks[SPR_WIRE_ERR];
    exec->result = (SprExit){.exit_code = code, .err_bytes = strlen(text)};
    if (sink && sink->write(sink->ctx, text, strlen(text)) != SPR_FLOW_CONTINUE)
        return spr_fail(error, SPR_E_REFUSED, "refused", "the caller's sink asked to stop");
    exec->done = true;
    return true;
}

static bool on_frame(Exec *exec, const SprFrame *frame, GError **error)
{
    SprWireReader r = {frame->payload, frame->header.size, false};
    switch (frame->header.type) {
    case SPR_WIRE_OUTPUT:
        return on_output(exec, frame, error);
    case SPR_WIRE_EXITED:
        return on_exited(exec, frame, error);
    case SPR_WIRE_START_FAILED:
        return on_start_failed(exec, frame, error);
    case SPR_WIRE_CREDIT:
        exec->stdin_credit += spr_wire_get(&r, 4);
        if (exec->stdin_credit > SPR_WIRE_STDIN_WINDOW)
            return spr_channel_break(exec->channel, "it gave more credit than it has", error);
        return true;
    case SPR_WIRE_STDIN_GONE:
        exec->source = NULL;
        return true;
    default:
        return spr_channel_break(exec->channel, "it answered what was not asked", error);
    }
}

/* Passes on one piece of the source. */
static bool feed(Exec *exec, GError **error)
{
    guint8 piece[32768];
    gsize room = (gsize)MIN(sizeof piece, exec->stdin_credit), count = 0;
    SprSourceStatus status = exec->source->read(exec->source->ctx, piece, room, &count);
    if (status == SPR_SOURCE_AGAIN) {
        exec->source_waits = true;
        return true;
    }
    if (status != SPR_SOURCE_OK || count > room) {
        refuse(exec, "source");
        return true;
    }
    if (count == 0) {
        exec->source = NULL;
        return spr_channel_send(exec->channel, SPR_WIRE_STDIN_CLOSE, SPR_WIRE_IN, 0, NULL, 0,
                                error);
    }
    exec->stdin_credit -= count;
    return spr_channel_send(exec->channel, SPR_WIRE_STDIN, SPR_WIRE_IN, 0, piece, count, error);
}

/* It could not be confirmed, and nobody waits longer. */
static void give_up(Exec *exec, guint flags)
{
    exec->result = (SprExit){.flags = flags | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED,
                             .exit_code = 128 + SIGKILL,
                             .term_signal = SIGKILL,
                             .out_bytes = exec->taken[SPR_WIRE_OUT],
                             .err_bytes = exec->taken[SPR_WIRE_ERR]};
    exec->done = true;
}

/* The caller's wait ended, or the program was silent long beyond the deadline. */
static bool on_wait_over(Exec *exec, GError *why, GError **error)
{
    bool cancelled = spr_error_is(why, SPR_E_CANCELLED, NULL);
    if (!cancelled && !spr_error_is(why, SPR_E_TIMEOUT, NULL)) {
        end_tree(exec, NULL); /* whose end nobody waits for */
        exec->result.flags |= SPR_EXIT_UNCONFIRMED;
        g_propagate_error(error, why);
        return false;
    }
    if (exec->ending) {
        g_error_free(why);
        give_up(exec, 0);
    } else if (cancelled) {
        g_error_free(why);
        end_tree(exec, NULL);
    } else if (spr_wait_is_over(exec->wait)) {
        end_tree(exec, why);
    } else {
        g_error_free(why);
        end_tree(exec, NULL);
        give_up(exec, SPR_EXIT_TIMED_OUT);
    }
    return true;
}

/* One step: feeds the source if it can, then waits for what comes first. */
static bool step(Exec *exec, GError **error)
{
    bool can_feed = exec->source && exec->stdin_credit > 0;
    if (can_feed && !exec->source_waits && !feed(exec, error))
        return false;
    can_feed = exec->source && exec->stdin_credit > 0;
    struct pollfd ready = {.fd = can_feed && exec->source_waits ? exec->source->fd : -1,
                           .events = POLLIN};
    gint64 until = can_feed && !exec->source_waits ? 0 : SPR_NEVER;
    SprFrame frame;
    GError *why = NULL;
    if (!spr_channel_next(exec->channel, &exec->limit, &ready, until, &frame, &why))
        return on_wait_over(exec, why, error);
    if (ready.revents)
        exec->source_waits = false;
    return frame.header.type == 0 || on_frame(exec, &frame, error);
}

static bool send_run(Exec *exec, GError **error)
{
    SprRunOptions options = {.credit = WINDOW, .flags = exec->source ? SPR_WIRE_RUN_STDIN : 0};
    gsize size;
    guint8 *frame =
        spr_codec_run(exec->command, &options, spr_channel_id(exec->channel), &size, error);
    if (!frame)
        return false;
    bool sent = spr_channel_send_secret(exec->channel, frame, size, error);
    explicit_bzero(frame, size);
    g_free(frame);
    return sent;
}

static bool finish(Exec *exec, SprExit *ret_exit, GError **error)
{
    *ret_exit = exec->result;
    if (exec->lost)
        return spr_fail(error, SPR_E_IO, "keeper-lost",
                        "the command was lost: its keeper was killed inside the sandbox");
    if (exec->reason) {
        g_propagate_error(error, g_steal_pointer(&exec->reason));
        return false;
    }
    return true;
}

bool spr_supervisor_exec(SprSupervisor *supervisor, const SprCommand *command,
                         const SprSource *source, const SprSink *out, const SprSink *err,
                         const SprWait *wait, SprExit *ret_exit, GError **error)
{
    if (!spr_wait_check(wait, error))
        return false;
    g_autoptr(SprChannel) channel = spr_channel_new(supervisor, error);
    if (!channel)
        return false;
    gint64 limit_ms = -1;
    if (command->deadline_ms > 0 && command->deadline_ms < SPR_NEVER / 4)
        limit_ms =
            with_confirmation(command->deadline_ms + CLAMP(command->grace_ms, 0, SPR_NEVER / 4));
    Exec exec = {.command = command,
                 .wait = wait,
                 .limit = spr_wait_within(wait, limit_ms),
                 .source = source,
                 .sinks = {NULL, out, err},
                 .channel = channel,
                 .stdin_credit = SPR_WIRE_STDIN_WINDOW};
    if (!send_run(&exec, error))
        return false;
    while (!exec.done) {
        if (!step(&exec, error)) {
            g_clear_error(&exec.reason);
            exec.result.out_bytes = exec.taken[SPR_WIRE_OUT];
            exec.result.err_bytes = exec.taken[SPR_WIRE_ERR];
            *ret_exit = exec.result;
            return false;
        }
    }
    return finish(&exec, ret_exit, error);
}
