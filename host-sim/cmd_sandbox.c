#include "commands.h"

#include <stdio.h>

#include "error.h"
#include "process.h"
#include "session.h"
#include "streams.h"
#include "values.h"

/* ---------------------------------------------------------------------- start */

static const char *outcome_name(sprov_start_outcome outcome)
{
    switch (outcome) {
    case SPROV_START_CREATED:
        return "created";
    case SPROV_START_CONNECTED:
        return "connected";
    default:
        return "ready";
    }
}

/* data: not NULL where one that was there already will not do. */
static bool start_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                       GError **error)
{
    sprov_start_result started = SPROV_INIT(sprov_start_result);
    if (!hs_session_start(session, sandbox, &started, error))
        return false;
    if (data && started.outcome == SPROV_START_CONNECTED)
        return hs_fail(
            error, SPROV_E_EXISTS,
            "there was a sandbox %s already: --id is that of the clone, and --options are "
            "those of the sandbox that is cloned",
            started.id);
    g_autofree char *line = g_strconcat(started.id, "\n", NULL);
    fprintf(stderr, "%s\n", outcome_name(started.outcome));
    return hs_print(line, error);
}

static int start(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    int exit_code = 0;
    if (!hs_cli_parse(&cli, self, NULL, argv, &exit_code))
        return exit_code;
    if (*cli.rest)
        return hs_cli_misuse(self, "what is \"%s\"? An id is given as --id", *cli.rest);
    return hs_session_work(self, &cli, hs_cli_id(&cli), start_work, NULL);
}

const HsCommand hs_cmd_start = {
    .name = "start",
    .usage = "",
    .summary = "start a sandbox and print its id",
    .about = "Makes a sandbox ready: connects to the one with this id, starts it again when it\n"
             "is stopped, or creates it. Prints its id on standard output, and \"created\" or\n"
             "\"connected\" on standard error.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim start --id work --options '{\"memory\":536870912}'",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID | HS_OPT_SECRET,
    .usage_exit = HS_EXIT_USAGE,
    .run = start,
};

/* ---------------------------------------------------------------------- clone */

static int clone_options(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    char *with = NULL;
    int exit_code = 0;
    g_autofree char *changes = NULL;
    GError *error = NULL;
    const GOptionEntry extra[] = {
        {"with", 0, 0, G_OPTION_ARG_STRING, &with, "options in place of the first one's", "JSON"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    g_autofree char *given = with;
    if (*cli.rest)
        return hs_cli_misuse(self, "what is \"%s\"? An id is given as --id", *cli.rest);
    if (given && !hs_json_argument("--with", given, &changes, &error)) {
        exit_code = hs_cli_misuse(self, "%s", error->message);
        g_error_free(error);
        return exit_code;
    }
    char *options = hs_options_clone(cli.options, changes);
    g_free(cli.options);
    cli.options = options;
    return hs_session_work(self, &cli, hs_cli_id(&cli), start_work, options);
}

const HsCommand hs_cmd_clone = {
    .name = "clone",
    .usage = "",
    .summary = "start a sandbox with the options of another",
    .about =
        "Starts a sandbox with the options of another, as --options, without its id and name,\n"
        "and prints the new id, which --id may choose. Nothing of the other's files is copied.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim clone --options @box.json --with '{\"env\":{\"A\":\"2\"}}'",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = clone_options,
};

/* ----------------------------------------------------------------------- exec */

static bool exec_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                      GError **error)
{
    const gboolean *detach = data;
    if (*detach)
        return hs_process_detach(session, sandbox, error);
    return hs_session_exec(session, sandbox, SPROV_CALL_NO_CREATE, ret_exit, error);
}

static int exec(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean detach = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"detach", 'd', 0, G_OPTION_ARG_NONE, &detach, "leave it running and print its process id",
         NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (!hs_cli_id(&cli))
        return hs_cli_misuse(self, "--id is missing; host-sim ls lists the sandboxes");
    return hs_session_work(self, &cli, hs_cli_id(&cli), exec_work, &detach);
}

const HsCommand hs_cmd_exec = {
    .name = "exec",
    .usage = "--id ID (-c COMMAND | -- ARGV...)",
    .summary = "run a command in a sandbox that is there",
    .about = "Runs a command in the sandbox with this id, which is started again when it is\n"
             "stopped, but never created. Streams and exit codes are those of host-sim run.\n"
             "With --detach it goes on by itself: see ps, logs, attach and kill. Its input stays\n"
             "open for attach.",
    .notes = "Exit codes:\n"
             "  the command's own; 126 when it is not executable, 127 when it is missing\n"
             "  124  its timeout passed and it was ended\n"
             "  125  the provider or its engine failed, or the command line is wrong\n"
             "  130  SIGINT (143 SIGTERM, 129 SIGHUP): it was ended; the sandbox goes on\n"
             "  141  nobody reads its output any more\n"
             "\n"
             "Example:\n"
             "  host-sim exec --id work --timeout 60 -- make test",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID | HS_OPT_COMMAND,
    .usage_exit = HS_EXIT_FAILED,
    .run = exec,
};

/* --------------------------------------------------------------------- stop, rm */

typedef bool (*EachFn)(HsSession *session, sprov_sandbox *sandbox, const char *id, GError **error);

static bool with_handle(HsSession *session, const char *id, EachFn each, GError **error)
{
    sprov_sandbox *sandbox = NULL;
    if (!hs_session_create(session, id, &sandbox, error))
        return false;
    bool done = each(session, sandbox, id, error);
    session->lib->api->release(sandbox);
    return done;
}

/* One that fails does not keep the others from their turn; the last failure ends the session. */
static void each_of(HsSession *session, char **ids, EachFn each, GError **error)
{
    for (char **id = ids; id && *id && !hs_signal_caught(); id++) {
        if (*error) {
            hs_report(&session->services, *error);
            g_clear_error(error);
        }
        with_handle(session, *id, each, error);
    }
}

static bool stop_one(HsSession *session, sprov_sandbox *sandbox, const char *id, GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_session_check_there(session, sandbox, id, error))
        return false;
    sprov_status status = session->lib->lifecycle->stop(sandbox, &call, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static bool stop_all(HsSession *session, char **ids, GError **error)
{
    if (!hs_session_need_lifecycle(session, error))
        return false;
    each_of(session, ids, stop_one, error);
    return *error == NULL;
}

static bool remove_all(HsSession *session, char **ids, GError **error)
{
    each_of(session, ids, hs_session_destroy, error);
    return *error == NULL;
}

static int with_ids(const HsCommand *self, char **argv,
                    bool (*work)(HsSession *session, char **ids, GError **error))
{
    g_auto(HsCli) cli = {0};
    int exit_code = 0;
    if (!hs_cli_parse(&cli, self, NULL, argv, &exit_code))
        return exit_code;
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    if (cli.ids)
        g_strv_builder_addv(builder, (const char **)cli.ids);
    g_strv_builder_addv(builder, (const char **)cli.rest);
    g_auto(GStrv) ids = g_strv_builder_end(builder);
    if (!*ids)
        return hs_cli_misuse(self, "--id is missing; host-sim ls lists the sandboxes");
    HsSession session;
    GError *error = NULL;
    if (hs_session_open(&session, self, &cli, &error))
        work(&session, ids, &error);
    return hs_session_end(&session, exit_code, error);
}

static int stop(const HsCommand *self, char **argv)
{
    return with_ids(self, argv, stop_all);
}

const HsCommand hs_cmd_stop = {
    .name = "stop",
    .usage = "--id ID...",
    .summary = "stop sandboxes and keep their files",
    .about = "Stops the sandboxes with these ids and keeps their state: start, exec, read and\n"
             "write start them again.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim stop --id work --id other",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_IDS,
    .usage_exit = HS_EXIT_USAGE,
    .run = stop,
};

static int rm(const HsCommand *self, char **argv)
{
    return with_ids(self, argv, remove_all);
}

const HsCommand hs_cmd_rm = {
    .name = "rm",
    .usage = "--id ID...",
    .summary = "remove sandboxes for good",
    .about = "Removes the sandboxes with these ids and all that is in them, running or not. One\n"
             "that is gone already is no error.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim rm --id work --id other",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_IDS,
    .usage_exit = HS_EXIT_USAGE,
    .run = rm,
};
