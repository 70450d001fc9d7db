#include "sandbox/command_own.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

/* An engine's text about a failed start is one short frame that ends in CR LF. */
#define HELD_MOST (8u << 10)
#define HELD_STEP_US (100 * 1000)
#define HELD_LIMIT_MS 1000
#define RECORD_STEP_US (20 * 1000)

void dkr_command_drop_held(DkrCommandRun *run)
{
    g_clear_pointer(&run->held, g_byte_array_unref);
}

void dkr_command_note_move(DkrCommandRun *run)
{
    if (run->command->stall_ms > 0)
        run->run_deadline_us = spr_deadline_after(run->command->stall_ms);
}

/* --------------------------------------------------------------------------- output */

void dkr_command_deliver(DkrCommandRun *run, int stream, const guint8 *data, gsize size)
{
    bool is_err = stream != DKR_STREAM_OUT;
    const DkrSink *sink = is_err ? &run->command->err : &run->command->out;
    *(is_err ? &run->result->err_bytes : &run->result->out_bytes) += size;
    run->any_output = true;
    if (run->end == DKR_END_REFUSED || !sink->write)
        return;
    if (!sink->write(sink->ctx, data, size))
        run->end = DKR_END_REFUSED;
}

void dkr_command_deliver_held(DkrCommandRun *run)
{
    GByteArray *held = g_steal_pointer(&run->held);
    if (!held)
        return;
    dkr_command_deliver(run, DKR_STREAM_OUT, held->data, held->len);
    g_byte_array_unref(held);
}

static bool may_be_engine_text(const GByteArray *frame)
{
    return frame->len >= 2 && memcmp(frame->data + frame->len - 2, "\r\n", 2) == 0;
}

/* Keeps the first frame back until it is whole, and then as long as it may be the engine's text. */
static bool hold_back(DkrCommandRun *run, const DkrChunk *chunk)
{
    bool begins = !run->held && !run->any_output && chunk->stream == DKR_STREAM_OUT &&
                  chunk->size + chunk->rest <= HELD_MOST;
    if (!begins && (!run->held || run->held_rest == 0))
        return false;
    if (begins)
        run->held = g_byte_array_new();
    g_byte_array_append(run->held, chunk->data, (guint)chunk->size);
    run->held_rest = chunk->rest;
    run->held_step_us = g_get_monotonic_time() + HELD_STEP_US;
    if (run->held_rest == 0 && !may_be_engine_text(run->held))
        dkr_command_deliver_held(run);
    return true;
}

static void take_output(DkrCommandRun *run)
{
    bool end = false;
    for (DkrChunk *chunk; (chunk = dkr_output_take(run->output, &end));) {
        dkr_command_note_move(run);
        if (!hold_back(run, chunk)) {
            dkr_command_deliver_held(run);
            dkr_command_deliver(run, chunk->stream, chunk->data, chunk->size);
        }
        g_free(chunk);
        /* An endless writer must not keep the other ends from being seen. */
        if (run->end == DKR_END_NONE &&
            (spr_wait_is_cancelled(run->wait) || g_get_monotonic_time() >= run->run_deadline_us))
            break;
    }
    run->over = end;
    if (run->end == DKR_END_NONE && dkr_output_has_overflowed(run->output))
        run->end = DKR_END_OVERFLOW;
}

/* A program that printed has a pid, be it a moment after its first output; a failed start has none,
 * and an exit code. *ret_known: the engine's record tells by now which of the two it is. */
static bool is_of_program(DkrCommandRun *run, const SprWait *wait, bool *ret_known)
{
    DkrExecState state;
    bool asked = dkr_exec_inspect(run->context->client, run->exec_id, wait, &state, NULL);
    *ret_known = !asked || state.pid > 0 || state.has_exit_code;
    return asked && state.pid > 0;
}

/* For a program that goes on. */
static void settle_held(DkrCommandRun *run)
{
    if (!run->held || run->over || g_get_monotonic_time() < run->held_step_us)
        return;
    run->held_step_us += HELD_STEP_US;
    SprWait limited = spr_wait_within(run->wait, HELD_LIMIT_MS);
    bool known;
    if (is_of_program(run, &limited, &known))
        dkr_command_deliver_held(run);
}

void dkr_command_settle_held(DkrCommandRun *run, const SprWait *wait)
{
    SprWait limited = spr_wait_within(wait, DKR_COMMAND_RECORD_LIMIT_MS);
    bool known = false;
    int ready;
    while (run->held && !known) {
        if (is_of_program(run, &limited, &known))
            dkr_command_deliver_held(run);
        else if (!known && !spr_wait_poll(&limited, NULL, 0,
                                          g_get_monotonic_time() + RECORD_STEP_US, &ready, NULL))
            break;
    }
    dkr_command_drop_held(run);
}

/* ---------------------------------------------------------------------------- input */

/* To the command a connection that broke is the end of its input, which it may end well with. An
 * engine that is done ends its side first, and then it is EPIPE; a unix socket does not tell the
 * two apart. */
static bool was_reset(const DkrCommandRun *run, const GError *why)
{
    int native = spr_error_extra(why)->native;
    return dkr_client_endpoint(run->context->client)->via == DKR_VIA_TCP && native != 0 &&
           native != EPIPE;
}

/* The engine takes what it can now. False: it takes no more for the moment, or for good. */
static bool push_input(DkrCommandRun *run)
{
    gsize n = 0;
    g_autoptr(GError) why = NULL;
    if (!dkr_hijack_write(run->hijack, run->input + run->input_used,
                          run->input_size - run->input_used, &n, &why)) {
        run->input_ended = true; /* the command is gone; its output tells the rest */
        if (was_reset(run, why))
            run->input_error = g_steal_pointer(&why);
        return false;
    }
    run->input_used += n;
    if (n > 0)
        dkr_command_note_move(run);
    return n > 0;
}

/* The next bytes of the source. False: none now. */
static bool pull_input(DkrCommandRun *run)
{
    gsize got = 0;
    run->input_again_fd = -1;
    if (!run->command->source.read(run->command->source.ctx, run->input, DKR_COMMAND_STDIN_SIZE,
                                   &got, &run->input_again_fd, &run->source_error)) {
        run->end = DKR_END_REFUSED;
        return false;
    }
    run->input_size = got;
    run->input_used = 0;
    if (got == 0 && run->input_again_fd < 0) {
        dkr_hijack_half_close(run->hijack);
        run->input_ended = true;
    }
    return got > 0;
}

static void feed_input(DkrCommandRun *run)
{
    bool moving = true;
    while (moving && !run->input_ended && run->end == DKR_END_NONE)
        moving = run->input_used < run->input_size ? push_input(run) : pull_input(run);
}

/* --------------------------------------------------------------------- the poll loop */

static void note_time(DkrCommandRun *run)
{
    if (run->end != DKR_END_NONE)
        return;
    if (spr_wait_is_cancelled(run->wait))
        run->end = DKR_END_CANCELLED;
    else if (spr_wait_is_gone(run->wait))
        run->end = DKR_END_GONE;
    else if (spr_wait_is_over(run->wait))
        run->end = DKR_END_CALL_TIMEOUT;
    else if (g_get_monotonic_time() >= run->run_deadline_us)
        run->end = DKR_END_RUN_TIMEOUT;
}

static void poll_once(DkrCommandRun *run)
{
    struct pollfd fds[2] = {{.fd = dkr_output_fd(run->output), .events = POLLIN}};
    guint n = 1;
    bool pending = run->input_used < run->input_size;
    bool for_source = !run->input_ended && !pending && run->input_again_fd >= 0;
    if (for_source)
        dkr_command_note_move(run);
    if (!run->input_ended) {
        fds[n++] = (struct pollfd){.fd = pending ? dkr_hijack_fd(run->hijack) : run->input_again_fd,
                                   .events = pending ? POLLOUT : POLLIN};
    }
    int ready;
    gint64 step_us =
        run->held ? MIN(run->run_deadline_us, run->held_step_us) : run->run_deadline_us;
    g_autoptr(GError) ignored = NULL; /* note_time() tells which of the two it was */
    spr_wait_poll(run->wait, fds, n, step_us, &ready, &ignored);
    if (for_source)
        dkr_command_note_move(run);
}

void dkr_command_pump(DkrCommandRun *run)
{
    for (;;) {
        take_output(run);
        if (run->over || run->end != DKR_END_NONE)
            return;
        feed_input(run);
        settle_held(run);
        note_time(run);
        if (run->end != DKR_END_NONE)
            return;
        poll_once(run);
    }
}

bool dkr_command_pump_to_end(DkrCommandRun *run, SprWait wait)
{
    while (!run->over) {
        struct pollfd p = {.fd = dkr_output_fd(run->output), .events = POLLIN};
        int ready;
        take_output(run);
        if (!run->over && !spr_wait_poll(&wait, &p, 1, SPR_NEVER, &ready, NULL))
            return false;
    }
    return true;
}
