#include "sandbox/command.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/containers.h"
#include "engine/execs.h"
#include "engine/failure.h"
#include "supervised/env.h"
#include "sandbox/kill.h"
#include "sandbox/output.h"
#include "sandbox/startfail.h"

#include <signal.h>
#include <string.h>

#define STDIN_SIZE (64u << 10)
/* For the kill of a command and for what it still printed, behind its own time and its grace. An
 * engine may answer pings and be stuck all the same. */
#define ENDING_LIMIT_MS (8 * 1000)
#define LOOK_AGAIN_MS 100
/* The stream of what was killed ends at once, or 2 s later where others hold it open, too. */
#define END_LIMIT_MS 3000
/* How long beyond the call's deadline the engine may take to tell how a command ended. */
#define RECORD_LIMIT_MS 2000
/* How long an exit code that is not recorded yet, or a process not there yet, is waited for. */
#define LATE_LIMIT_MS 1000
/* An engine's text about a failed start is one short chunk that ends in CR LF. */
#define HELD_MOST (8u << 10)
#define HELD_STEP_US (100 * 1000)
#define SIGNALS_MOST 64
#define NOTICE_LIMIT_MS (5 * 1000)

/* Why the provider itself ended a command. */
typedef enum {
    END_NONE = 0,
    END_RUN_TIMEOUT,
    END_CALL_TIMEOUT,
    END_CANCELLED,
    END_REFUSED,
    END_OVERFLOW,
    END_GONE
} EndReason;

typedef struct {
    const DkrContext *context;
    const char *container;
    const DkrCommand *command;
    const SprWait *wait;
    DkrCommandResult *result;

    char *token;
    char *exec_id;
    DkrHijack *hijack;
    DkrOutput *output;
    gint64 began_us;
    gint64 run_deadline_us;

    guint8 *input; /* read from the source, not yet taken by the engine */
    gsize input_size, input_used;
    bool input_ended;
    int input_again_fd;

    DkrChunk *held; /* the first output, while it may be the engine's own text */
    gint64 held_step_us;
    bool any_output;
    bool over;
    EndReason end;
    SprWait ending; /* once it is being ended; deadline 0 before */
    GError *source_error;
} Run;

static void run_clear(Run *run)
{
    dkr_output_free(run->output);
    dkr_hijack_free(run->hijack);
    g_free(run->held);
    g_free(run->input);
    g_free(run->exec_id);
    g_free(run->token);
    g_clear_error(&run->source_error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

/* Its time begins anew with every byte, where it has no other. */
static void note_move(Run *run)
{
    if (run->command->stall_ms > 0)
        run->run_deadline_us = spr_deadline_after(run->command->stall_ms);
}

/* --------------------------------------------------------------------------- output */

static void deliver(Run *run, int stream, const guint8 *data, gsize size)
{
    bool is_err = stream != DKR_STREAM_OUT;
    const DkrSink *sink = is_err ? &run->command->err : &run->command->out;
    *(is_err ? &run->result->err_bytes : &run->result->out_bytes) += size;
    run->any_output = true;
    if (run->end == END_REFUSED || !sink->write)
        return;
    if (!sink->write(sink->ctx, data, size))
        run->end = END_REFUSED;
}

static void deliver_held(Run *run)
{
    g_autofree DkrChunk *held = g_steal_pointer(&run->held);
    if (held)
        deliver(run, held->stream, held->data, held->size);
}

static bool may_be_engine_text(const Run *run, const DkrChunk *chunk)
{
    return !run->any_output && !run->held && chunk->stream == DKR_STREAM_OUT && chunk->size >= 2 &&
           chunk->size <= HELD_MOST && memcmp(chunk->data + chunk->size - 2, "\r\n", 2) == 0;
}

static void take_output(Run *run)
{
    bool end = false;
    for (DkrChunk *chunk; (chunk = dkr_output_take(run->output, &end));) {
        note_move(run);
        if (may_be_engine_text(run, chunk)) {
            run->held = chunk;
            run->held_step_us = g_get_monotonic_time() + HELD_STEP_US;
            continue;
        }
        deliver_held(run);
        deliver(run, chunk->stream, chunk->data, chunk->size);
        g_free(chunk);
        /* An endless writer must not keep the other ends from being seen. */
        if (run->end == END_NONE &&
            (spr_wait_is_cancelled(run->wait) || g_get_monotonic_time() >= run->run_deadline_us))
            break;
    }
    run->over = end;
    if (run->end == END_NONE && dkr_output_has_overflowed(run->output))
        run->end = END_OVERFLOW;
}

/* A program that printed one line with CR LF and goes on has a pid; a failed start has none. */
static void settle_held(Run *run)
{
    DkrExecState state;
    if (!run->held || run->over || g_get_monotonic_time() < run->held_step_us)
        return;
    SprWait wait = spr_wait_within(run->wait, 1000);
    run->held_step_us += HELD_STEP_US;
    if (dkr_exec_inspect(run->context->client, run->exec_id, &wait, &state, NULL) && state.pid > 0)
        deliver_held(run);
}

/* ---------------------------------------------------------------------------- input */

/* The engine takes what it can now. False: it takes no more for the moment, or for good. */
static bool push_input(Run *run)
{
    gsize n = 0;
    if (!dkr_hijack_write(run->hijack, run->input + run->input_used,
                          run->input_size - run->input_used, &n, NULL)) {
        run->input_ended = true; /* the command is gone; its output tells the rest */
        return false;
    }
    run->input_used += n;
    if (n > 0)
        note_move(run);
    return n > 0;
}

/* The next bytes of the source. False: none now. */
static bool pull_input(Run *run)
{
    gsize got = 0;
    run->input_again_fd = -1;
    if (!run->command->source.read(run->command->source.ctx, run->input, STDIN_SIZE, &got,
                                   &run->input_again_fd, &run->source_error)) {
        run->end = END_REFUSED;
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

static void feed_input(Run *run)
{
    bool moving = true;
    while (moving && !run->input_ended && run->end == END_NONE)
        moving = run->input_used < run->input_size ? push_input(run) : pull_input(run);
}

/* --------------------------------------------------------------------- the poll loop */

static void note_time(Run *run)
{
    if (run->end != END_NONE)
        return;
    if (spr_wait_is_cancelled(run->wait))
        run->end = END_CANCELLED;
    else if (spr_wait_is_gone(run->wait))
        run->end = END_GONE;
    else if (spr_wait_is_over(run->wait))
        run->end = END_CALL_TIMEOUT;
    else if (g_get_monotonic_time() >= run->run_deadline_us)
        run->end = END_RUN_TIMEOUT;
}

static void poll_once(Run *run)
{
    struct pollfd fds[2] = {{.fd = dkr_output_fd(run->output), .events = POLLIN}};
    guint n = 1;
    bool pending = run->input_used < run->input_size;
    bool for_source = !run->input_ended && !pending && run->input_again_fd >= 0;
    if (for_source)
        note_move(run);
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
        note_move(run);
}

static void pump(Run *run)
{
    for (;;) {
        take_output(run);
        if (run->over || run->end != END_NONE)
            return;
        feed_input(run);
        settle_held(run);
        note_time(run);
        if (run->end != END_NONE)
            return;
        poll_once(run);
    }
}

/* Goes on delivering until the stream is over; false when the wait ended first. */
static bool pump_to_end(Run *run, SprWait wait)
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

/* --------------------------------------------------------------------------- endings */

/* All the time that ending it may take; it begins with the first call. */
static const SprWait *ending(Run *run)
{
    if (run->ending.deadline_us == 0)
        run->ending = spr_wait_to_tidy(run->wait, ENDING_LIMIT_MS);
    return &run->ending;
}

static bool kill_tree(Run *run, int signal, guint *ret_found, guint *ret_left, GError **error)
{
    return dkr_kill_tree(run->context, run->container, run->command->user, run->token, signal,
                         ending(run), ret_found, ret_left, error);
}

/* Whether the engine has it that the command has ended. */
static bool has_ended(Run *run)
{
    SprWait wait = spr_wait_within(ending(run), RECORD_LIMIT_MS);
    DkrExecState state;
    return dkr_exec_inspect(run->context->client, run->exec_id, &wait, &state, NULL) &&
           state.has_exit_code && !state.running;
}

/* Until something was found or it is over: the engine answers a start before the command's first
 * process bears its token. */
static bool kill_until_found(Run *run, guint *ret_found, guint *ret_left, GError **error)
{
    do {
        if (!kill_tree(run, SIGKILL, ret_found, ret_left, error))
            return false;
    } while (*ret_found == 0 && !pump_to_end(run, spr_wait_for(LOOK_AGAIN_MS)) && !has_ended(run) &&
             !spr_wait_is_over(ending(run)));
    return true;
}

/* SIGTERM, and the time that the command may take over it. */
static guint ask_to_end(Run *run)
{
    guint asked = 0, left = 0;
    if (run->command->grace_ms <= 0 || !kill_tree(run, SIGTERM, &asked, &left, NULL) || asked == 0)
        return asked;
    run->result->flags |= left > 0 ? DKR_COMMAND_UNCONFIRMED : 0u;
    gint64 since_us = g_get_monotonic_time();
    pump_to_end(run, spr_wait_for(run->command->grace_ms));
    run->ending.deadline_us += g_get_monotonic_time() - since_us;
    return asked;
}

/* Ends the tree. False when nothing of it was there any more: it had ended by itself. */
static bool end_tree(Run *run)
{
    guint asked = ask_to_end(run), found = 0, left = 0;
    g_autoptr(GError) error = NULL;
    if (!kill_until_found(run, &found, &left, &error)) {
        spr_log(&run->context->log, SPR_LOG_WARNING, "exec", "a command could not be ended: %s",
                error->message);
        found = left = 1;
    }
    if (left > 0 || !pump_to_end(run, spr_wait_within(ending(run), END_LIMIT_MS)))
        run->result->flags |= DKR_COMMAND_UNCONFIRMED;
    return asked + found > 0;
}

/* The connection is lost, and the command runs or is about to: nothing of a call that failed
 * does. */
static void end_lost(Run *run)
{
    gint64 until_us = spr_deadline_after(LATE_LIMIT_MS);
    guint found = 0, left;
    if (run->command->is_helper)
        return;
    while (kill_tree(run, SIGKILL, &found, &left, NULL) && found == 0 && !has_ended(run) &&
           g_get_monotonic_time() < until_us)
        g_usleep(LOOK_AGAIN_MS * 1000);
}

static void set_killed(Run *run)
{
    run->result->flags |= DKR_COMMAND_KILLED;
    if (run->end == END_RUN_TIMEOUT)
        run->result->flags |= DKR_COMMAND_TIMED_OUT;
    run->result->exit_code = 128 + SIGKILL;
    run->result->term_signal = SIGKILL;
}

static bool fail_gone(const char *why, GError **error)
{
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the sandbox ended while the command ran (%s): start it again", why);
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
    return false;
}

/* That another command starts proves that the container outlived this one. */
static bool is_alive(Run *run, const SprWait *wait)
{
    static const char *const probe_argv[] = {"/bin/sh", "-c", "exit 0", NULL};
    const DkrCommand probe = {
        .argv = probe_argv, .cwd = "/", .user = run->command->user, .is_helper = true};
    DkrCommandResult result;
    return dkr_command_run(run->context, run->container, &probe, wait, &result, NULL) &&
           result.exit_code == 0;
}

/* Killed by its own container's end, or by itself? Asked only for codes that could be either. An
 * engine that still calls the container running may only not have noticed yet. */
static bool check_container(Run *run, bool doubtful, const SprWait *wait, GError **error)
{
    json_auto_t *inspect = NULL;
    bool ended = false;
    g_autoptr(GError) why = NULL;
    if (!dkr_container_inspect(run->context->client, run->container, wait, &inspect, &why))
        return dkr_failure_status(why) != 404 || fail_gone("removed", error);
    json_t *state = json_object_get(inspect, "State");
    if (!json_is_true(json_object_get(state, "Running")))
        return fail_gone(json_string_value(json_object_get(state, "Status")) ?: "stopped", error);
    if (!doubtful || run->command->is_helper || is_alive(run, wait))
        return true;
    if (!dkr_container_has_ended(run->context->client, run->container, NOTICE_LIMIT_MS, wait,
                                 &ended, &why))
        return dkr_failure_status(why) != 404 || fail_gone("removed", error);
    return !ended || fail_gone("stopped", error);
}

/* The start failed: the held text is the engine's, not the program's. */
static bool finish_unstarted(Run *run, const SprWait *wait, GError **error)
{
    const DkrCommand *c = run->command;
    g_autofree char *line = NULL;
    g_autofree char *text =
        run->held ? g_strndup((const char *)run->held->data, run->held->size) : g_strdup("");
    GError *why = NULL;
    int exit_code;
    bool was_read = c->source.read && (run->input_size > 0 || run->input_ended);
    if (!dkr_start_failure(text, c->argv[0], c->cwd, c->user, &exit_code, &line, &why)) {
        bool doubtful = spr_error_is(why, SPR_E_INTERNAL, NULL);
        run->result->began = false;
        if (check_container(run, doubtful, wait, error)) {
            run->result->was_cut = dkr_start_was_cut(text) && !was_read;
            g_propagate_error(error, why);
        } else {
            g_error_free(why);
        }
        return false;
    }
    deliver(run, DKR_STREAM_ERR, (const guint8 *)line, strlen(line));
    run->result->exit_code = exit_code;
    return true;
}

/* The call's own time; a little more where that is over, so that what has happened is told. */
static SprWait record_wait(const Run *run)
{
    SprWait wait = spr_wait_for(DKR_REQUEST_LIMIT_MS);
    SprWait tidy = spr_wait_to_tidy(run->wait, RECORD_LIMIT_MS);
    gint64 least_us = run->command->is_helper ? 0 : tidy.deadline_us;
    wait.deadline_us = MIN(wait.deadline_us, MAX(run->wait->deadline_us, least_us));
    return wait;
}

static bool finish_broken(Run *run, GError *broken, GError **error)
{
    SprWait wait = record_wait(run);
    deliver_held(run);
    if (check_container(run, false, &wait, error)) {
        end_lost(run);
        g_propagate_error(error, broken);
    } else {
        g_error_free(broken);
    }
    return false;
}

/* The engine's record, asked after the end of the stream. */
static bool read_record(Run *run, const SprWait *wait, DkrExecState *ret_state, GError **error)
{
    GError *why = NULL;
    if (dkr_exec_outcome(run->context->client, run->exec_id, LATE_LIMIT_MS, wait, ret_state, &why))
        return true;
    deliver_held(run);
    if (dkr_failure_status(why) == 404) {
        g_error_free(why);
        return fail_gone("removed", error);
    }
    if (why->code == SPR_E_IO)
        end_lost(run);
    g_propagate_error(error, why);
    return false;
}

/* The stream may have ended between two frames, with the connection and not with the command. */
static bool was_lost(Run *run, const SprWait *wait)
{
    guint found = 0, left;
    int told = dkr_exec_told(run->context->client, run->container, run->exec_id, wait);
    if (told >= 0)
        return told != DKR_EXEC_CODE_OF_LOST;
    return kill_tree(run, SIGKILL, &found, &left, NULL) && found > 0;
}

static bool finish_natural(Run *run, GError **error)
{
    SprWait wait = record_wait(run);
    DkrExecState state = {0};
    GError *why = NULL;
    if (!dkr_output_check(run->output, &why))
        return finish_broken(run, why, error);
    if (!read_record(run, &wait, &state, error))
        return false;
    if (state.pid == 0)
        return finish_unstarted(run, &wait, error);
    deliver_held(run);
    if (state.exit_code == DKR_EXEC_CODE_OF_LOST && !run->command->is_helper &&
        was_lost(run, &wait))
        return spr_fail(error, SPR_E_IO, "connection-broken",
                        "the connection to the engine broke while the command ran");
    bool was_killed = state.exit_code == 128 + SIGKILL;
    if (state.exit_code > 128 && !check_container(run, was_killed, &wait, error))
        return false;
    run->result->exit_code = state.exit_code;
    if (state.exit_code > 128 && state.exit_code <= 128 + SIGNALS_MOST)
        run->result->term_signal = state.exit_code - 128;
    return true;
}

static bool finish_ended(Run *run, GError **error)
{
    if (run->end == END_GONE) { /* and the command with it */
        deliver_held(run);
        return spr_wait_check(run->wait, error);
    }
    if (run->command->is_helper)
        return spr_fail(error, SPR_E_TIMEOUT, "engine-silent",
                        "the engine did not run a helper command in time");
    if (!end_tree(run) && run->over && run->end != END_REFUSED && run->end != END_OVERFLOW)
        return finish_natural(run, error);
    deliver_held(run);
    set_killed(run);
    switch (run->end) {
    case END_CALL_TIMEOUT:
        return spr_fail(error, SPR_E_TIMEOUT, "deadline",
                        "the call's deadline passed; the command was killed");
    case END_REFUSED:
        if (run->source_error) {
            g_propagate_error(error, g_steal_pointer(&run->source_error));
            return false;
        }
        return spr_fail(error, SPR_E_REFUSED, "sink-stopped",
                        "the output's taker asked to stop; the command was killed");
    case END_OVERFLOW:
        return spr_fail(error, SPR_E_EXHAUSTED, "slow-sink",
                        "the output's taker took nothing for more than a second while %u MiB "
                        "waited; the command was killed",
                        DKR_OUTPUT_MOST >> 20);
    default:
        return true;
    }
}

/* ------------------------------------------------------------------------- beginning */

static bool create_exec(Run *run, GError **error)
{
    const DkrCommand *c = run->command;
    g_autofree char *token = g_strdup_printf(DKR_KILL_VARIABLE "=%s", run->token);
    const char *const changes[] = {token, NULL};
    char **env = dkr_env_merge(c->env, changes);
    DkrExecSpec spec = {.argv = c->argv,
                        .env = (const char *const *)env,
                        .cwd = c->cwd,
                        .user = c->user,
                        .with_stdin = c->source.read != NULL};
    bool ok = dkr_exec_create(run->context->client, run->container, &spec, run->wait, &run->exec_id,
                              error);
    dkr_env_free(env);
    return ok;
}

/* Without an answer of the engine nobody knows whether it started. */
static bool start_exec(Run *run, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (dkr_exec_start(run->context->client, run->exec_id, run->wait, &run->hijack, &why))
        return true;
    if (dkr_failure_status(why) == 0 && !spr_error_is(why, SPR_E_UNAVAILABLE, NULL))
        end_lost(run);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool begin(Run *run, GError **error)
{
    const DkrCommand *c = run->command;
    if (!create_exec(run, error) || !spr_wait_check(run->wait, error) || !start_exec(run, error))
        return false;
    if (c->source.read && !dkr_hijack_is_upgraded(run->hijack)) {
        end_lost(run);
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-upgrade",
                        "a proxy before the engine does not support upgrades, so no standard "
                        "input can be sent: use the engine's own socket");
    }
    run->result->began = true;
    run->began_us = g_get_monotonic_time();
    run->run_deadline_us =
        c->run_timeout_ms > 0 ? spr_deadline_after(c->run_timeout_ms) : SPR_NEVER;
    note_move(run);
    run->input_ended = !c->source.read;
    run->input_again_fd = -1;
    run->input = c->source.read ? g_malloc(STDIN_SIZE) : NULL;
    return dkr_output_start(run->hijack, &run->output, error);
}

bool dkr_command_run(const DkrContext *context, const char *container, const DkrCommand *command,
                     const SprWait *wait, DkrCommandResult *ret_result, GError **error)
{
    g_auto(Run) run = {.context = context,
                       .container = container,
                       .command = command,
                       .wait = wait,
                       .result = ret_result,
                       .token = spr_random_hex(16)};
    *ret_result = (DkrCommandResult){0};
    if (command->wait_background)
        return spr_fail(error, SPR_E_UNSUPPORTED, "needs-supervisor",
                        "an engine exec cannot wait for background children: let the command "
                        "itself wait for them");
    if (!begin(&run, error))
        return false;
    pump(&run);
    bool ok = run.end == END_NONE ? finish_natural(&run, error) : finish_ended(&run, error);
    ret_result->duration_ms = (guint64)(g_get_monotonic_time() - run.began_us) / 1000;
    return ok;
}
