#include "commands.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "process.h"
#include "table.h"
#include "values.h"

/* What all of them need: one sandbox, and so many plain arguments. */
static bool parse(HsCli *cli, const HsCommand *self, const GOptionEntry *extra, guint least,
                  guint most, char **argv, int *ret_exit)
{
    if (!hs_cli_parse(cli, self, extra, argv, ret_exit))
        return false;
    guint n = g_strv_length(cli->rest);
    if (!hs_cli_id(cli))
        *ret_exit = hs_cli_misuse(self, "--id is missing; host-sim ls lists the sandboxes");
    else if (n < least)
        *ret_exit =
            hs_cli_misuse(self, "which process? host-sim ps --id %s lists them", hs_cli_id(cli));
    else if (n > most)
        *ret_exit = hs_cli_misuse(self, "what is \"%s\"?", cli->rest[most]);
    else
        return true;
    return false;
}

/* ------------------------------------------------------------------------- ps */

static const HsColumn columns[] = {{"PROCESS", "id"},      {"PID", "pid"},
                                   {"RUNNING", "running"}, {"EXIT", "exitCode"},
                                   {"COMMAND", "command"}, {NULL}};

static bool ps_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                    GError **error)
{
    const gboolean *as_json = data;
    if (!hs_session_check_there(session, sandbox, hs_cli_id(session->cli), error))
        return false;
    json_t *found = json_array();
    bool listed = hs_process_list(session, sandbox, found, error);
    g_autofree char *text = *as_json ? hs_table_lines(found) : hs_table(found, columns);
    json_decref(found);
    return listed && hs_print(text, error);
}

static int ps(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean as_json = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "print one JSON object a line", NULL},
        {NULL},
    };
    if (!parse(&cli, self, extra, 0, 0, argv, &exit_code))
        return exit_code;
    return hs_session_work(self, &cli, hs_cli_id(&cli), ps_work, &as_json);
}

const HsCommand hs_cmd_ps = {
    .name = "ps",
    .usage = "--id ID",
    .summary = "list the processes that were spawned in a sandbox",
    .about = "Lists the processes that exec --detach and attach have started in the sandbox, of\n"
             "this host or another, running or ended. The other commands take what PROCESS shows,\n"
             "or only what stands behind its last '-'. Never starts the sandbox.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim ps --id work",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = ps,
};

/* ----------------------------------------------------------------------- kill */

typedef struct {
    char *signal_name;
    int signal;
    gboolean tree, group, leader;
    char *grace;
    gint64 grace_ms;
} KillOptions;

static bool kill_one(HsSession *session, sprov_sandbox *sandbox, const char *name,
                     const KillOptions *options, GError **error)
{
    const sprov_ext_processes *api = session->lib->processes;
    sprov_process *process = NULL;
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = options->signal;
    request.grace_ms = options->grace_ms;
    request.scope = options->leader  ? SPROV_KILL_LEADER
                    : options->group ? SPROV_KILL_GROUP
                                     : SPROV_KILL_TREE;
    if (!hs_process_find(session, sandbox, name, &process, error))
        return false;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = api->kill(process, &request, &call, &failure);
    api->release(process);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

/* One that fails does not keep the others from their turn; the last failure is the answer. */
static bool kill_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                      GError **error)
{
    for (char **name = session->cli->rest; *name; name++) {
        if (*error) {
            hs_report(&session->services, *error);
            g_clear_error(error);
        }
        kill_one(session, sandbox, *name, data, error);
    }
    return *error == NULL;
}

static int kill_processes(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    KillOptions options = {.signal = SIGKILL};
    g_autoptr(GError) error = NULL;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"signal", 's', 0, G_OPTION_ARG_STRING, &options.signal_name,
         "signal to send, as TERM, SIGTERM or 15 (KILL)", "SIGNAL"},
        {"tree", 0, 0, G_OPTION_ARG_NONE, &options.tree,
         "to everything the command started (so it is)", NULL},
        {"group", 0, 0, G_OPTION_ARG_NONE, &options.group, "to its process group", NULL},
        {"leader", 0, 0, G_OPTION_ARG_NONE, &options.leader, "to the command's own process", NULL},
        {"grace", 0, 0, G_OPTION_ARG_STRING, &options.grace, "and SIGKILL after so long",
         "SECONDS"},
        {NULL},
    };
    bool parsed = parse(&cli, self, extra, 1, G_MAXUINT, argv, &exit_code);
    g_autofree char *grace = options.grace;
    g_autofree char *signal_name = options.signal_name;
    if (!parsed)
        return exit_code;
    if (signal_name && !hs_parse_signal(signal_name, &options.signal, &error))
        return hs_cli_misuse(self, "--signal: %s", error->message);
    if (options.tree + options.group + options.leader > 1)
        return hs_cli_misuse(self, "--tree, --group and --leader exclude each other");
    if (grace && !hs_parse_seconds(grace, &options.grace_ms, &error))
        return hs_cli_misuse(self, "--grace: %s", error->message);
    return hs_session_work(self, &cli, hs_cli_id(&cli), kill_work, &options);
}

const HsCommand hs_cmd_kill = {
    .name = "kill",
    .usage = "--id ID PROCESS...",
    .summary = "end processes of a sandbox, or send them a signal",
    .about = "Sends a signal to spawned processes. Without options each is killed with everything\n"
             "it started, and nothing of it is left when this returns.",
    .notes = HS_EXIT_CODES "\n"
                           "Examples:\n"
                           "  host-sim kill --id work 3\n"
                           "  host-sim kill --id work --signal TERM --grace 10 3",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = kill_processes,
};

/* ----------------------------------------------------------------------- logs */

typedef struct {
    gboolean follow, err;
} LogOptions;

static bool print_kept(HsSession *session, sprov_process *process, const LogOptions *options,
                       GError **error)
{
    HsSink sink;
    uint64_t offset = 0;
    bool end = false, again = false;
    hs_sink_init(&sink, STDOUT_FILENO, session->services.cancel.fd);
    while (!end && !again) {
        if (!hs_process_pass(session, process, options->err ? SPROV_STREAM_ERR : SPROV_STREAM_OUT,
                             &offset, options->follow ? 0 : SPROV_CALL_NOWAIT, &sink, &end, &again,
                             error))
            return false;
    }
    return true;
}

static bool logs_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                      GError **error)
{
    sprov_process *process = NULL;
    if (!hs_process_find(session, sandbox, session->cli->rest[0], &process, error))
        return false;
    bool printed = print_kept(session, process, data, error);
    session->lib->processes->release(process);
    return printed;
}

static int logs(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    LogOptions options = {0};
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"follow", 'f', 0, G_OPTION_ARG_NONE, &options.follow, "go on until it ends", NULL},
        {"stderr", 0, 0, G_OPTION_ARG_NONE, &options.err, "its error stream", NULL},
        {NULL},
    };
    if (!parse(&cli, self, extra, 1, 1, argv, &exit_code))
        return exit_code;
    return hs_session_work(self, &cli, hs_cli_id(&cli), logs_work, &options);
}

const HsCommand hs_cmd_logs = {
    .name = "logs",
    .usage = "--id ID PROCESS",
    .summary = "print what a process of a sandbox has printed",
    .about = "Prints the output of a spawned process from the oldest byte that is kept, 1 MiB\n"
             "unless it was spawned otherwise; how many were dropped before is told on standard\n"
             "error.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim logs --id work -f 3",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = logs,
};
