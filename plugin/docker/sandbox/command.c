#include "sandbox/command.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/failure.h"
#include "sandbox/command_own.h"
#include "sandbox/kill.h"
#include "supervised/env.h"

static void run_clear(DkrCommandRun *run)
{
    dkr_output_free(run->output);
    dkr_hijack_free(run->hijack);
    dkr_command_drop_held(run);
    g_free(run->input);
    g_free(run->exec_id);
    g_free(run->token);
    g_clear_error(&run->source_error);
    g_clear_error(&run->input_error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DkrCommandRun, run_clear)

/* ------------------------------------------------------------------------- beginning */

static bool create_exec(DkrCommandRun *run, GError **error)
{
    const DkrCommand *c = run->command;
    g_autofree char *token = g_strdup_printf(DKR_KILL_VARIABLE "=%s", run->token);
    const char *const changes[] = {token, NULL};
    char **env = dkr_env_merge(c->env, changes);
    DkrExecSpec spec = {.argv = c->argv,
                        .env = (const char *const *)env,
                        .cwd = c->cwd,
                        .user = c->user,
                        .with_stdin = c->source.read != NULL,
                        .urgent = c->is_helper};
    bool ok = dkr_exec_create(run->context->client, run->container, &spec, run->wait, &run->exec_id,
                              error);
    dkr_env_free(env);
    return ok;
}

/* Without an answer of the engine nobody knows whether it started. */
static bool start_exec(DkrCommandRun *run, GError **error)
{
    const DkrExecSpec spec = {.urgent = run->command->is_helper};
    g_autoptr(GError) why = NULL;
    if (dkr_exec_start(run->context->client, run->exec_id, &spec, run->wait, &run->hijack, &why))
        return true;
    if (dkr_failure_status(why) == 0 &&
        (dkr_failure_is_in_doubt(why) || !spr_error_is(why, SPR_E_UNAVAILABLE, NULL)))
        dkr_command_end_lost(run);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool begin(DkrCommandRun *run, GError **error)
{
    const DkrCommand *c = run->command;
    if (!create_exec(run, error) || !spr_wait_check(run->wait, error) || !start_exec(run, error))
        return false;
    if (c->source.read && !dkr_hijack_is_upgraded(run->hijack)) {
        dkr_command_end_lost(run);
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-upgrade",
                        "a proxy before the engine does not support upgrades, so no standard "
                        "input can be sent: use the engine's own socket");
    }
    run->result->began = true;
    run->began_us = g_get_monotonic_time();
    run->run_deadline_us =
        c->run_timeout_ms > 0 ? spr_deadline_after(c->run_timeout_ms) : SPR_NEVER;
    dkr_command_note_move(run);
    run->input_ended = !c->source.read;
    run->input_again_fd = -1;
    run->input = c->source.read ? g_malloc(DKR_COMMAND_STDIN_SIZE) : NULL;
    return dkr_output_start(run->hijack, &run->output, error);
}

bool dkr_command_run(const DkrContext *context, const char *container, const DkrCommand *command,
                     const SprWait *wait, DkrCommandResult *ret_result, GError **error)
{
    g_auto(DkrCommandRun) run = {.context = context,
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
    dkr_command_pump(&run);
    bool ok = dkr_command_finish(&run, error);
    ret_result->duration_ms = (guint64)(g_get_monotonic_time() - run.began_us) / 1000;
    return ok;
}
