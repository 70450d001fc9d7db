#include "supervisor/client/inlet.h"
#include "supervisor/client/link.h"
#include "supervisor/client/tap.h"

#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* Credit for each stream. What a step gives back travels through the whole engine, which at 128 KiB
 * took a tenth of its time for a command that prints much. */
#define WINDOW (1024u * 1024)
#define CREDIT_STEP (WINDOW / 2)
#define CONFIRM_MS 4000 /* the program's own patience with a tree is 2 s */
#define SILENT_MS 100   /* before the program is asked whether it has the command, */
#define ANSWER_MS 2000  /* and how long it has for that */
#define OVERDUE_MS 500  /* behind its end, before a command that should be over is asked about */
#define DRAIN_MS 100    /* for children that keep a pipe open */
#define FIRST_READ 4096
#define LARGE_READ (128 * 1024)
#define READS_A_STEP 4
#define PIPE_OF_COPIES (256 * 1024) /* what a cache holds: more makes it slower again */
#define PIPE_OF_PAGES (1024 * 1024) /* of files, which nobody copies into it */

/* One command on its way. */
typedef struct {
    const SprCommand *command;
    const SprSource *source; /* NULL once it ended */
    const SprSink *sinks[3]; /* by stream */
    SprChannel *channel;
    GByteArray *first; /* frames that travel together, until they are sent */
    guint64 taken[3], uncredited[3];
    guint64 stdin_credit, stdin_window;
    bool had_source;
    bool source_waits;  /* it said AGAIN */
    bool by_pipes;      /* output comes through these, else in frames */
    SprTap taps[3];     /* by stream */
    SprInlet inlet;     /* where the source's bytes go, if not into frames */
    guint8 *large;      /* LARGE_READ, made for who writes much */
    bool heard, pinged; /* the program took the command up; it was asked whether it did */
    gint64 silent_at_us, overdue_at_us;
    gint64 moved_us; /* when something last came or went */
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

/* When a command is asked about that should have ended ms and its grace ago. */
static gint64 overdue_behind(gint64 ms, gint64 grace_ms)
{
    gint64 all_ms = MIN(ms, SPR_NEVER / 4) + CLAMP(grace_ms, 0, SPR_NEVER / 4);
    return all_ms > SPR_NEVER / 4 ? SPR_NEVER : spr_deadline_after(all_ms + OVERDUE_MS);
}

static void note_movement(Exec *exec)
{
    exec->moved_us = g_get_monotonic_time();
}

/* Behind RUN, also while that one is not sent yet. */
static bool send_frame(Exec *exec, SprWireType type, const void *bytes, gsize size, GError **error)
{
    if (!exec->first)
        return spr_channel_send(exec->channel, type, SPR_WIRE_IN, 0, bytes, size, error);
    guint8 header[SPR_WIRE_HEADER];
    spr_wire_put_header(header, (SprWireHeader){.size = (guint32)size,
                                                .channel = spr_channel_id(exec->channel),
                                                .type = (guint8)type});
    g_byte_array_append(exec->first, header, sizeof header);
    g_byte_array_append(exec->first, bytes, (guint)size);
    return true;
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
    send_frame(exec, SPR_WIRE_KILL, payload, sizeof payload, NULL);
    /* What reads files hears of it by its pipe. */
    if (exec->command->files && !exec->had_source)
        spr_tap_close(&exec->taps[SPR_WIRE_OUT]);
    spr_inlet_close(&exec->inlet);
    exec->ending = true;
    exec->reason = reason;
    exec->source = NULL;
    exec->limit = spr_wait_for(with_confirmation(grace_ms));
    exec->overdue_at_us = overdue_behind(0, grace_ms);
}

static void refuse(Exec *exec, const char *who)
{
    GError *reason = NULL;
    spr_fail(&reason, SPR_E_REFUSED, "refused", "the caller's %s asked to stop", who);
    end_tree(exec, reason);
    if (!exec->command->files) /* it tells yet how far it came */
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

static void hand_out(Exec *exec, SprWireStream stream, const guint8 *data, gsize size)
{
    const SprSink *sink = exec->sinks[stream];
    SprFlow flow = SPR_FLOW_CONTINUE;
    exec->taken[stream] += size;
    if (sink && size > 0)
        flow = sink->write(sink->ctx, data, size);
    if (size > 0)
        note_movement(exec);
    if (flow == SPR_FLOW_ENOUGH)
        exec->done = true;
    else if (flow != SPR_FLOW_CONTINUE)
        refuse(exec, "sink");
}

static bool on_output(Exec *exec, const SprFrame *frame, GError **error)
{
    SprWireStream stream = (SprWireStream)frame->header.stream;
    SprWireReader r = {frame->payload, frame->header.size, false};
    guint64 offset = spr_wire_get(&r, 8);
    if (exec->by_pipes || offset != exec->taken[stream] ||
        exec->uncredited[stream] + r.left > WINDOW)
        return spr_channel_break(exec->channel, "its output has a gap", error);
    hand_out(exec, stream, r.at, r.left);
    return exec->done || give_credit(exec, stream, r.left, error);
}

/* ----------------------------------------------------------------------------- own pipes */

/* Passes on what is in a pipe, a few pieces at most: how many bytes. */
static gsize pump(Exec *exec, SprWireStream stream)
{
    SprTap *tap = &exec->taps[stream];
    guint8 first[FIRST_READ];
    gsize sum = 0;
    for (int i = 0; i < READS_A_STEP && tap->fd >= 0 && !exec->done; i++) {
        gsize room = exec->large ? LARGE_READ : sizeof first;
        guint8 *into = exec->large ? exec->large : first;
        gsize n = spr_tap_read(tap, into, room);
        hand_out(exec, stream, into, n);
        sum += n;
        if (n < room)
            break;
        if (!exec->large)
            exec->large = g_try_malloc(LARGE_READ);
    }
    return sum;
}

/* Children of the command that go on writing must find a reader: the program is one. */
static void leave_pipes(Exec *exec)
{
    guint8 frame[SPR_WIRE_HEADER];
    int fds[2];
    guint n = 0;
    for (int i = SPR_WIRE_OUT; i <= SPR_WIRE_ERR; i++) {
        if (exec->taps[i].fd >= 0)
            fds[n++] = exec->taps[i].fd;
    }
    spr_wire_put_header(frame, (SprWireHeader){.type = SPR_WIRE_DISCARD});
    if (n > 0)
        spr_channel_send_with(exec->channel, frame, sizeof frame, fds, n, NULL);
}

/* The command has ended: what it had written then is passed on, and the pipes' end is waited for a
 * moment. None of it waits for the sandbox longer than that. */
static void drain(Exec *exec)
{
    SprWait plain = spr_wait_for(-1);
    SprTap *out = &exec->taps[SPR_WIRE_OUT], *err = &exec->taps[SPR_WIRE_ERR];
    gint64 until_us = spr_deadline_after(DRAIN_MS);
    spr_tap_mark(out);
    spr_tap_mark(err);
    for (;;) {
        gsize got = pump(exec, SPR_WIRE_OUT) + pump(exec, SPR_WIRE_ERR);
        if (exec->done) /* its reader has enough, and leaves what is in the pipes */
            return;
        bool late = g_get_monotonic_time() >= until_us;
        if ((out->fd < 0 && err->fd < 0) || (late && (got == 0 || out->owed + err->owed == 0)))
            break;
        struct pollfd fds[2] = {{.fd = out->fd, .events = POLLIN},
                                {.fd = err->fd, .events = POLLIN}};
        int ready;
        if (got == 0 && !spr_wait_poll(&plain, fds, 2, until_us, &ready, NULL))
            break;
    }
    leave_pipes(exec);
}

static bool on_exited(Exec *exec, const SprFrame *frame, GError **error)
{
    if (!spr_codec_exited(frame->payload, frame->header.size, &exec->result, &exec->lost) ||
        (!exec->by_pipes && (exec->result.out_bytes < exec->taken[SPR_WIRE_OUT] ||
                             exec->result.err_bytes < exec->taken[SPR_WIRE_ERR])))
        return spr_channel_break(exec->channel, "its result makes no sense", error);
    if (exec->by_pipes)
        drain(exec);
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
    int code = spr_wire_start_exit_code(errno_value, (SprWireStep)step);
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
    exec->heard = true;
    switch (frame->header.type) {
    case SPR_WIRE_OUTPUT:
        return on_output(exec, frame, error);
    case SPR_WIRE_EXITED:
        return on_exited(exec, frame, error);
    case SPR_WIRE_START_FAILED:
        return on_start_failed(exec, frame, error);
    case SPR_WIRE_CREDIT:
        exec->stdin_credit += spr_wire_get(&r, 4);
        if (exec->stdin_credit > exec->stdin_window)
            return spr_channel_break(exec->channel, "it gave more credit than it has", error);
        return true;
    case SPR_WIRE_STDIN_GONE:
        exec->source = NULL;
        return true;
    case SPR_WIRE_DONE:
        return exec->pinged ||
               spr_channel_break(exec->channel, "it answered what was not asked", error);
    default:
        return spr_channel_break(exec->channel, "it answered what was not asked", error);
    }
}

/* One piece of the source; none at its end. False when it has none now, or gave up. */
static bool take_piece(Exec *exec, guint8 *piece, gsize room, gsize *ret_count)
{
    *ret_count = 0;
    SprSourceStatus status = exec->source->read(exec->source->ctx, piece, room, ret_count);
    note_movement(exec);
    exec->source_waits = status == SPR_SOURCE_AGAIN;
    if (exec->source_waits)
        return false;
    if (status != SPR_SOURCE_OK || *ret_count > room) {
        refuse(exec, "source");
        return false;
    }
    if (*ret_count == 0)
        exec->source = NULL;
    return true;
}

/* Whether a pipe of ours is as full as it gets. */
static bool is_full(const Exec *exec)
{
    return exec->inlet.at < exec->inlet.end;
}

static bool feed_inlet(Exec *exec, GError **error)
{
    SprInlet *inlet = &exec->inlet;
    gsize count;
    if (!is_full(exec)) {
        if (!take_piece(exec, inlet->bytes, SPR_INLET_ROOM, &count))
            return true;
        inlet->end = count;
    }
    gsize before = inlet->at;
    if (!spr_inlet_push(inlet))
        return spr_channel_break(exec->channel, "it shut the way of its input", error);
    if (inlet->at != before)
        note_movement(exec);
    if (!exec->source)
        spr_inlet_close(inlet);
    return true;
}

/* Passes on one piece of the source. */
static bool feed(Exec *exec, GError **error)
{
    guint8 piece[32768];
    gsize count;
    if (exec->inlet.fd >= 0)
        return feed_inlet(exec, error);
    if (!take_piece(exec, piece, (gsize)MIN(sizeof piece, exec->stdin_credit), &count))
        return true;
    if (count == 0)
        return send_frame(exec, SPR_WIRE_STDIN_CLOSE, piece, 0, error);
    exec->stdin_credit -= count;
    return send_frame(exec, SPR_WIRE_STDIN, piece, count, error);
}

static bool can_feed(const Exec *exec)
{
    return exec->source && exec->stdin_credit > 0;
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

/* A PING behind the RUN is answered when that was taken up. */
static bool on_silence(Exec *exec, GError **error)
{
    void *ctx;
    SprSilenceFn ask = spr_channel_on_silence(exec->channel, &ctx);
    exec->silent_at_us = spr_deadline_after(ANSWER_MS);
    if (!exec->pinged) {
        exec->pinged = true;
        return spr_channel_send(exec->channel, SPR_WIRE_PING, SPR_WIRE_IN, 0, NULL, 0, error);
    }
    g_autoptr(GError) why = NULL;
    if (ask(ctx, &why) || !spr_error_is(why, SPR_E_NOT_READY, NULL))
        return true;
    end_tree(exec, NULL);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* A program that cannot answer, or whose answers nobody carries, is not waited for. */
static void on_overdue(Exec *exec)
{
    void *ctx;
    SprSilenceFn ask = spr_channel_on_silence(exec->channel, &ctx);
    bool by_its_deadline = !exec->ending;
    exec->overdue_at_us = SPR_NEVER;
    if (!ask || ask(ctx, NULL))
        return;
    end_tree(exec, NULL);
    give_up(exec, by_its_deadline ? SPR_EXIT_TIMED_OUT : 0);
}

/* One step: feeds the source if it can, then waits for what comes first. */
static bool step(Exec *exec, GError **error)
{
    if (can_feed(exec) && !exec->source_waits && !feed(exec, error))
        return false;
    struct pollfd input = {.fd = -1};
    if (can_feed(exec) && is_full(exec))
        input = (struct pollfd){.fd = exec->inlet.fd, .events = POLLOUT};
    else if (can_feed(exec) && exec->source_waits)
        input = (struct pollfd){.fd = exec->source->fd, .events = POLLIN};
    struct pollfd ready[] = {input,
                             {.fd = exec->taps[SPR_WIRE_OUT].fd, .events = POLLIN},
                             {.fd = exec->taps[SPR_WIRE_ERR].fd, .events = POLLIN}};
    gint64 until = MIN(exec->heard ? SPR_NEVER : exec->silent_at_us, exec->overdue_at_us);
    if (can_feed(exec) && !exec->source_waits && !is_full(exec))
        until = 0;
    SprFrame frame;
    GError *why = NULL;
    SprWait limit = exec->limit;
    if (exec->command->stall_ms > 0 && !exec->source_waits && !exec->ending)
        limit.deadline_us = MIN(limit.deadline_us, exec->moved_us + exec->command->stall_ms * 1000);
    if (!spr_channel_next(exec->channel, &limit, ready, G_N_ELEMENTS(ready), until, &frame, &why))
        return on_wait_over(exec, why, error);
    if (ready[SPR_WIRE_IN].revents)
        exec->source_waits = false;
    for (int i = SPR_WIRE_OUT; i <= SPR_WIRE_ERR; i++) {
        if (ready[i].revents && pump(exec, (SprWireStream)i) > 0)
            exec->heard = true;
    }
    if (frame.header.type != 0) {
        note_movement(exec);
        if (!on_frame(exec, &frame, error))
            return false;
        /* While there are frames nobody waits, however long their taker takes. */
        return exec->done || spr_wait_check(exec->ending ? &exec->limit : exec->wait, &why) ||
               on_wait_over(exec, why, error);
    }
    gint64 now_us = g_get_monotonic_time();
    if (!exec->heard && now_us >= exec->silent_at_us)
        return on_silence(exec, error);
    if (now_us >= exec->overdue_at_us)
        on_overdue(exec);
    return true;
}

/* Without descriptors left the output comes in frames. A request about files has no errors: it gets
 * the same end twice. */
static void open_pipes(Exec *exec, int ends[3])
{
    bool files = exec->command->files;
    gsize wide = files ? PIPE_OF_PAGES : PIPE_OF_COPIES;
    if (!spr_channel_passes_descriptors(exec->channel) || exec->command->rows > 0 ||
        !spr_tap_open(&exec->taps[SPR_WIRE_OUT], wide, &ends[0]))
        return;
    ends[1] = ends[0];
    exec->by_pipes = files || spr_tap_open(&exec->taps[SPR_WIRE_ERR], wide, &ends[1]);
    if (!exec->by_pipes) {
        spr_tap_close(&exec->taps[SPR_WIRE_OUT]);
        close(ends[0]);
        return;
    }
    if (exec->source && exec->command->much_input && spr_channel_passes_input(exec->channel) &&
        spr_inlet_open(&exec->inlet))
        ends[2] = exec->inlet.read_end;
}

static bool send_run(Exec *exec, GError **error)
{
    SprRunOptions options = {.credit = WINDOW, .flags = exec->source ? SPR_WIRE_RUN_STDIN : 0};
    int ends[3];
    gsize size;
    open_pipes(exec, ends);
    bool by_inlet = exec->inlet.fd >= 0;
    if (by_inlet)
        options.flags = SPR_WIRE_RUN_INPUT;
    if (exec->by_pipes)
        options = (SprRunOptions){.flags = options.flags | SPR_WIRE_RUN_PIPES};
    guint8 *frame =
        spr_codec_run(exec->command, &options, spr_channel_id(exec->channel), &size, error);
    bool ok = frame != NULL;
    exec->first = ok ? g_byte_array_new_take(frame, size) : g_byte_array_new();
    /* What a file gets is there at once, or soon; a command must not wait for its input. */
    bool early = exec->command->files && !by_inlet;
    for (int i = 0; i < 2 && ok && early && exec->source && !exec->source_waits; i++)
        ok = feed(exec, error);
    g_autoptr(GByteArray) first = g_steal_pointer(&exec->first);
    if (ok && exec->by_pipes)
        ok = spr_channel_send_with(exec->channel, first->data, first->len, ends, by_inlet ? 3 : 2,
                                   error);
    else if (ok)
        ok = spr_channel_send_secret(exec->channel, first->data, first->len, error);
    if (exec->by_pipes)
        close(ends[0]);
    if (exec->by_pipes && ends[1] != ends[0])
        close(ends[1]);
    if (first->len > 0)
        explicit_bzero(first->data, first->len);
    return ok;
}

static void close_pipes(Exec *exec)
{
    spr_tap_close(&exec->taps[SPR_WIRE_OUT]);
    spr_tap_close(&exec->taps[SPR_WIRE_ERR]);
    spr_inlet_close(&exec->inlet);
    g_free(exec->large);
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
    void *silence_ctx;
    gint64 limit_ms = -1, overdue_at_us = SPR_NEVER;
    if (command->deadline_ms > 0 && command->deadline_ms < SPR_NEVER / 4) {
        limit_ms =
            with_confirmation(command->deadline_ms + CLAMP(command->grace_ms, 0, SPR_NEVER / 4));
        overdue_at_us = overdue_behind(command->deadline_ms, command->grace_ms);
    }
    Exec exec = {.command = command,
                 .wait = wait,
                 .limit = spr_wait_within(wait, limit_ms),
                 .source = source,
                 .had_source = source != NULL,
                 .sinks = {NULL, out, err},
                 .taps = {{.fd = -1}, {.fd = -1}, {.fd = -1}},
                 .inlet = {.fd = -1},
                 .channel = channel,
                 .heard = !spr_channel_on_silence(channel, &silence_ctx),
                 .silent_at_us = spr_deadline_after(SILENT_MS),
                 .overdue_at_us = overdue_at_us,
                 .moved_us = g_get_monotonic_time(),
                 .stdin_window = SPR_WIRE_STDIN_WINDOW};
    if (command->files)
        exec.stdin_window = SPR_WIRE_FILES_WINDOW;
    exec.stdin_credit = exec.stdin_window;
    bool ok = send_run(&exec, error);
    bool sent = ok;
    while (ok && !exec.done)
        ok = step(&exec, error);
    close_pipes(&exec);
    if (ok)
        return finish(&exec, ret_exit, error);
    g_clear_error(&exec.reason);
    if (sent) {
        exec.result.out_bytes = exec.taken[SPR_WIRE_OUT];
        exec.result.err_bytes = exec.taken[SPR_WIRE_ERR];
        *ret_exit = exec.result;
    }
    return false;
}
