#include "sandbox/command_own.h"

#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "sandbox/kill.h"
#include "sandbox/startfail.h"
#include "supervised/own.h"

#include <signal.h>
#include <string.h>

/* For the kill of a command and for what it still printed, behind its own time and its grace. An
 * engine may answer pings and be stuck all the same. */
#define ENDING_LIMIT_MS (8 * 1000)
#define LOOK_AGAIN_MS 100
/* The stream of what was killed ends at once, or 2 s later where others hold it open, too. */
#define END_LIMIT_MS 3000
/* How long an exit code that is not recorded yet, or a process not there yet, is waited for. */
#define LATE_LIMIT_MS 1000
#define SIGNALS_MOST 64
#define NOTICE_LIMIT_MS (5 * 1000)
#define CUT_LIMIT_MS 1000

/* ------------------------------------------------------------------- ending its tree */

/* All the time that ending it may take; it begins with the first call. */
static const SprWait *ending(DkrCommandRun *run)
{
    if (run->ending.deadline_us == 0)
        run->ending = spr_wait_to_tidy(run->wait, ENDING_LIMIT_MS);
    return &run->ending;
}

static bool kill_tree(DkrCommandRun *run, int signal, guint *ret_found, guint *ret_left,
                      GError **error)
{
    return dkr_kill_tree(run->context, run->container, run->command->user, run->token, signal,
                         ending(run), ret_found, ret_left, error);
}

/* Whether the engine has it that the command has ended. */
static bool has_ended(DkrCommandRun *run)
{
    SprWait wait = spr_wait_within(ending(run), DKR_COMMAND_RECORD_LIMIT_MS);
    DkrExecState state;
    return dkr_exec_inspect(run->context->client, run->exec_id, &wait, &state, NULL) &&
           state.has_exit_code && !state.running;
}

/* Until something was found or it is over: the engine answers a start before the command's first
 * process bears its token. */
static bool kill_until_found(DkrCommandRun *run, guint *ret_found, guint *ret_left, GError **error)
{
    do {
        if (!kill_tree(run, SIGKILL, ret_found, ret_left, error))
            return false;
    } while (*ret_found == 0 && !dkr_command_pump_to_end(run, spr_wait_for(LOOK_AGAIN_MS)) &&
             !has_ended(run) && !spr_wait_is_over(ending(run)));
    return true;
}

/* SIGTERM, and the time that the command may take over it. */
static guint ask_to_end(DkrCommandRun *run)
{
    guint asked = 0, left = 0;
    if (run->command->grace_ms <= 0 || !kill_tree(run, SIGTERM, &asked, &left, NULL) || asked == 0)
        return asked;
    run->result->flags |= left > 0 ? DKR_COMMAND_UNCONFIRMED : 0u;
    gint64 since_us = g_get_monotonic_time();
    dkr_command_pump_to_end(run, spr_wait_for(run->command->grace_ms));
    run->ending.deadline_us += g_get_monotonic_time() - since_us;
    return asked;
}

/* Ends the tree. False when nothing of it was there any more: it had ended by itself. */
static bool end_tree(DkrCommandRun *run)
{
    guint asked = ask_to_end(run), found = 0, left = 0;
    g_autoptr(GError) error = NULL;
    if (!kill_until_found(run, &found, &left, &error)) {
        spr_log(&run->context->log, SPR_LOG_WARNING, "exec", "a command could not be ended: %s",
                error->message);
        found = left = 1;
    }
    if (left > 0 || !dkr_command_pump_to_end(run, spr_wait_within(ending(run), END_LIMIT_MS)))
        run->result->flags |= DKR_COMMAND_UNCONFIRMED;
    return asked + found > 0;
}

/* An engine, or a proxy before it, that is only being replaced takes connections in a moment. */
static bool was_refused(const GError *why)
{
    return why->code == SPR_E_IO || spr_error_is(why, SPR_E_UNAVAILABLE, "engine-unreachable");
}

void dkr_command_end_lost(DkrCommandRun *run)
{
    gint64 until_us = spr_deadline_after(LATE_LIMIT_MS);
    bool again = !run->command->is_helper;
    while (again && g_get_monotonic_time() < until_us) {
        guint found = 0, left;
        g_autoptr(GError) why = NULL;
        again = kill_tree(run, SIGKILL, &found, &left, &why) ? found == 0 && !has_ended(run)
                                                             : was_refused(why);
        if (again)
            g_usleep(LOOK_AGAIN_MS * 1000);
    }
}

static void set_killed(DkrCommandRun *run)
{
    run->result->flags |= DKR_COMMAND_KILLED;
    if (run->end == DKR_END_RUN_TIMEOUT)
        run->result->flags |= DKR_COMMAND_TIMED_OUT;
    run->result->exit_code = 128 + SIGKILL;
    run->result->term_signal = SIGKILL;
}

/* ------------------------------------------------------------------ how it has ended */

static bool fail_gone(const char *why, GError **error)
{
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the sandbox ended before the command did (%s): start it again", why);
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
    return false;
}

/* That another command starts proves that the container outlived this one. */
static bool is_alive(DkrCommandRun *run, const SprWait *wait)
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
static bool check_container(DkrCommandRun *run, bool doubtful, const SprWait *wait, GError **error)
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

/* A start that broke off may be the first that is seen of the container's end. */
static bool check_cut(DkrCommandRun *run, const SprWait *wait, GError **error)
{
    bool ended = false;
    return !dkr_container_has_ended(run->context->client, run->container, CUT_LIMIT_MS, wait,
                                    &ended, NULL) ||
           !ended || fail_gone("stopped", error);
}

/* An engine passes over what it may not run, where execvp() goes on and tells of it in the end. So
 * a shell looks along the path that the command has, with its eyes. Without a shell it stays
 * unknown. */
static bool stands_in_path(DkrCommandRun *run, const SprWait *wait)
{
    static const char script[] = "PATH=$PATH: IFS=:; set -f\n"
                                 "for d in $PATH; do [ -e \"${d:-.}/$1\" ] && exit 0; done\n"
                                 "exit 1\n";
    const DkrCommand *c = run->command;
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", c->argv[0], NULL};
    const DkrCommand look = {
        .argv = argv, .env = c->env, .cwd = c->cwd, .user = c->user, .is_helper = true};
    const DkrVenue venue = {.context = run->context, .container = run->container};
    DkrCommandResult result;
    return !c->is_helper && *c->argv[0] && !strchr(c->argv[0], '/') &&
           dkr_run_unsupervised(&venue, &look, wait, &result, NULL) && result.exit_code == 0;
}

/* The start failed: the held text is the engine's, not the program's. */
static bool finish_unstarted(DkrCommandRun *run, const SprWait *wait, GError **error)
{
    const DkrCommand *c = run->command;
    g_autofree char *line = NULL;
    g_autofree char *text =
        run->held ? g_strndup((const char *)run->held->data, run->held->len) : g_strdup("");
    GError *why = NULL;
    int exit_code;
    bool was_read = c->source.read && (run->input_size > 0 || run->input_ended);
    if (!dkr_start_failure(text, c->argv[0], c->cwd, c->user, &exit_code, &line, &why)) {
        bool doubtful = spr_error_is(why, SPR_E_INTERNAL, NULL);
        bool cut = dkr_start_was_cut(text);
        run->result->began = false;
        if (check_container(run, doubtful, wait, error) && (!cut || check_cut(run, wait, error))) {
            run->result->was_cut = cut && !was_read;
            g_propagate_error(error, why);
        } else {
            g_error_free(why);
        }
        return false;
    }
    if (exit_code == 127 && stands_in_path(run, wait)) {
        g_free(line);
        line = g_strdup_printf("%s: permission denied\n", c->argv[0]);
        exit_code = 126;
    }
    dkr_command_deliver(run, DKR_STREAM_ERR, (const guint8 *)line, strlen(line));
    run->result->exit_code = exit_code;
    return true;
}

/* The call's own time; a little more where that is over, so that what has happened is told. */
static SprWait record_wait(const DkrCommandRun *run)
{
    SprWait wait = spr_wait_for(DKR_REQUEST_LIMIT_MS);
    SprWait tidy = spr_wait_to_tidy(run->wait, DKR_COMMAND_RECORD_LIMIT_MS);
    gint64 least_us = run->command->is_helper ? 0 : tidy.deadline_us;
    wait.deadline_us = MIN(wait.deadline_us, MAX(run->wait->deadline_us, least_us));
    return wait;
}

/* Where the engine went away with the connection, nothing more can be had. */
static bool finish_broken(DkrCommandRun *run, GError *broken, GError **error)
{
    SprWait wait = record_wait(run);
    g_autoptr(GError) why = NULL;
    if (!dkr_client_answers(run->context->client, &wait, &why)) {
        if (was_refused(why))
            dkr_command_end_lost(run);
        g_propagate_error(error, broken);
        return false;
    }
    dkr_command_settle_held(run, &wait);
    if (check_container(run, false, &wait, error)) {
        dkr_command_end_lost(run);
        g_propagate_error(error, broken);
    } else {
        g_error_free(broken);
    }
    return false;
}

/* The engine's record, asked after the end of the stream. An exec whose container ended before it
 * has none of an exit; then only the text tells. */
static bool read_record(DkrCommandRun *run, const SprWait *wait, DkrExecState *ret_state,
                        GError **error)
{
    GError *why = NULL;
    if (dkr_exec_outcome(run->context->client, run->exec_id, LATE_LIMIT_MS, wait, ret_state, &why))
        return true;
    bool was_started = ret_state->running || ret_state->pid > 0;
    if (run->held && run->held_rest == 0 && !was_started &&
        spr_error_is(why, SPR_E_IO, "no-exit-code")) {
        g_error_free(why);
        return true;
    }
    if (was_started)
        dkr_command_deliver_held(run);
    if (dkr_failure_status(why) == 404) {
        g_error_free(why);
        return fail_gone("removed", error);
    }
    if (was_refused(why))
        dkr_command_end_lost(run);
    g_propagate_error(error, why);
    return false;
}

/* The stream may have ended between two frames, with the connection and not with the command. */
static bool was_lost(DkrCommandRun *run, const SprWait *wait)
{
    guint found = 0, left;
    int told = dkr_exec_told(run->context->client, run->container, run->exec_id, wait);
    if (told >= 0)
        return told != DKR_EXEC_CODE_OF_LOST;
    return kill_tree(run, SIGKILL, &found, &left, NULL) && found > 0;
}

static bool finish_natural(DkrCommandRun *run, GError **error)
{
    SprWait wait = record_wait(run);
    DkrExecState state = {0};
    GError *why = g_steal_pointer(&run->input_error);
    if (why || !dkr_output_check(run->output, &why))
        return finish_broken(run, why, error);
    if (!read_record(run, &wait, &state, error))
        return false;
    if (state.pid == 0)
        return finish_unstarted(run, &wait, error);
    dkr_command_deliver_held(run);
    if (state.exit_code == DKR_EXEC_CODE_OF_LOST && !run->command->is_helper &&
        was_lost(run, &wait))
        return dkr_failure_broken(error,
                                  "the connection to the engine broke while the command ran");
    bool was_killed = state.exit_code == 128 + SIGKILL;
    if (state.exit_code > 128 && !check_container(run, was_killed, &wait, error))
        return false;
    run->result->exit_code = state.exit_code;
    if (state.exit_code > 128 && state.exit_code <= 128 + SIGNALS_MOST)
        run->result->term_signal = state.exit_code - 128;
    return true;
}

static bool finish_ended(DkrCommandRun *run, GError **error)
{
    if (run->end == DKR_END_GONE) /* and the command with it */
        return spr_wait_check(run->wait, error);
    if (run->command->is_helper)
        return spr_fail(error, SPR_E_TIMEOUT, "engine-silent",
                        "the engine did not run a helper command in time");
    if (!end_tree(run) && run->over && run->end != DKR_END_REFUSED && run->end != DKR_END_OVERFLOW)
        return finish_natural(run, error);
    dkr_command_settle_held(run, ending(run));
    set_killed(run);
    switch (run->end) {
    case DKR_END_CALL_TIMEOUT:
        return spr_fail(error, SPR_E_TIMEOUT, "deadline",
                        "the call's deadline passed; the command was killed");
    case DKR_END_REFUSED:
        if (run->source_error) {
            g_propagate_error(error, g_steal_pointer(&run->source_error));
            return false;
        }
        return spr_fail(error, SPR_E_REFUSED, "sink-stopped",
                        "the output's taker asked to stop; the command was killed");
    case DKR_END_OVERFLOW:
        return spr_fail(error, SPR_E_EXHAUSTED, "slow-sink",
                        "the output's taker took nothing for more than a second while %u MiB "
                        "waited; the command was killed",
                        DKR_OUTPUT_MOST >> 20);
    default:
        return true;
    }
}

bool dkr_command_finish(DkrCommandRun *run, GError **error)
{
    return run->end == DKR_END_NONE ? finish_natural(run, error) : finish_ended(run, error);
}
