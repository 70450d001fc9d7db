#include "commands.h"

#include <stdio.h>

#include "session.h"

static const char about[] =
    "Starts a sandbox, runs one command in it and removes the sandbox. The command's\n"
    "two streams become those of host-sim; standard input is passed on unless it is a\n"
    "terminal. It removes only a sandbox that it made: one that was there before (an id of\n"
    "yours) is used and kept.";

static const char notes[] =
    "Exit codes:\n"
    "  the command's own; 126 when it is not executable, 127 when it is missing\n"
    "  124  its timeout passed and it was ended\n"
    "  125  the provider or its engine failed, or the command line is wrong\n"
    "  130  SIGINT (143 SIGTERM, 129 SIGHUP): it was ended, and a sandbox that it made removed\n"
    "  141  nobody reads its output any more\n"
    "\n"
    "Examples:\n"
    "  host-sim run -c 'node --version'\n"
    "  echo hello | host-sim run -o '{\"image\":\"debian:bookworm-slim\"}' -- tr a-z A-Z\n"
    "  host-sim run --secret TOKEN=env:GITHUB_TOKEN -c 'git clone ...'";

/* Ends the sandbox's life, or says that it goes on. */
static bool finish(HsSession *session, sprov_sandbox *sandbox, const sprov_start_result *started,
                   bool keep, GError **error)
{
    if (keep) {
        fprintf(stderr, "kept %s\n", started->id);
        return true;
    }
    if (started->outcome == SPROV_START_CONNECTED) {
        hs_log(&session->services, SPROV_LOG_WARNING,
               "sandbox %s was there before and is kept; host-sim rm --id %s removes it",
               started->id, started->id);
        return true;
    }
    return hs_session_destroy(session, sandbox, started->id, error);
}

/* A start that fails leaves nothing behind, so there is something to finish only after it. */
static bool work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                 GError **error)
{
    const gboolean *keep = data;
    g_autoptr(GError) cleanup = NULL;
    sprov_start_result started = SPROV_INIT(sprov_start_result);
    if (!hs_session_start(session, sandbox, &started, error))
        return false;
    bool ran = hs_session_exec(session, sandbox, 0, ret_exit, error);
    if (finish(session, sandbox, &started, *keep, &cleanup))
        return ran;
    if (ran)
        g_propagate_error(error, g_steal_pointer(&cleanup));
    else
        hs_report(&session->services, cleanup);
    return false;
}

static int run(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean keep = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"keep", 'k', 0, G_OPTION_ARG_NONE, &keep, "leave the sandbox and tell its id", NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    return hs_session_work(self, &cli, hs_cli_id(&cli), work, &keep);
}

const HsCommand hs_cmd_run = {
    .name = "run",
    .usage = "(-c COMMAND | -- ARGV...)",
    .summary = "run a command in a new sandbox and remove it",
    .about = about,
    .notes = notes,
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID | HS_OPT_COMMAND,
    .usage_exit = HS_EXIT_FAILED,
    .run = run,
};
