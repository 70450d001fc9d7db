/*
 * host-sim check: reads its command line and hands over to the suite, as its runner or as the
 * process of one case.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "commands.h"
#include "values.h"

typedef struct {
    int level, seed, shuffle, jobs, repeat, result_fd;
    gint64 command_ms;
    double time_scale;
    gboolean list, as_json, in_process, compare;
    char **include, **exclude;
    char *profile, *known, *hooks;
    char *json, *junit, *html, *write_profile;
    char *run_one, *ledger, *run, *shared_id, *subject;
} CheckArgs;

static void args_clear(CheckArgs *args)
{
    g_strfreev(args->include);
    g_strfreev(args->exclude);
    char *texts[] = {args->profile, args->known,         args->hooks,   args->json,
                     args->junit,   args->html,          args->run_one, args->ledger,
                     args->run,     args->write_profile, args->subject, args->shared_id};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CheckArgs, args_clear)

#define HIDDEN G_OPTION_FLAG_HIDDEN
#define TEXT G_OPTION_ARG_FILENAME
#define LIST G_OPTION_ARG_FILENAME_ARRAY

/* False, with a line about it, when a number is out of its range. */
static bool are_sound(const HsCommand *self, const HsCli *cli, const CheckArgs *args)
{
    if (args->level < 1 || args->level > 4)
        return !hs_cli_misuse(
            self, "--level %d: levels are 1 smoke, 2 standard, 3 strict, 4 stress", args->level);
    if (args->jobs < 1 || args->jobs > 16)
        return !hs_cli_misuse(self, "--jobs %d: give 1 to 16", args->jobs);
    if (args->repeat < 1 || args->repeat > 100)
        return !hs_cli_misuse(self, "--repeat-calls %d: give 1 to 100", args->repeat);
    if (args->seed < 0)
        return !hs_cli_misuse(self, "--seed %d: give 0 or more", args->seed);
    if (args->shuffle < 0)
        return !hs_cli_misuse(self, "--shuffle %d: give 0 or more", args->shuffle);
    if (!(args->time_scale > 0 && args->time_scale <= 1000))
        return !hs_cli_misuse(self, "--time-scale: give a number above 0, such as 3");
    if (cli->log_json)
        return !hs_cli_misuse(self, "--log-json: the report is TAP; --log-level adds to it");
    if (!args->compare && g_strv_length(cli->rest) > 1)
        return !hs_cli_misuse(self, "one provider at a time: what is \"%s\"?", cli->rest[1]);
    return true;
}

static CheckSetup make_setup(const HsCli *cli, const CheckArgs *args)
{
    return (CheckSetup){
        .provider = cli->rest[0],
        .config = cli->config,
        .options = cli->options,
        .level = args->level,
        .include = args->include,
        .exclude = args->exclude,
        .seed = (guint32)args->seed,
        .shuffle = (guint32)args->shuffle,
        .time_scale = args->time_scale,
        .jobs = args->in_process ? 1 : args->jobs,
        .repeat = args->repeat,
        .in_process = args->in_process,
        .hooks = args->hooks,
        .profile = args->profile,
        .known = args->known,
        .json = args->json,
        .junit = args->junit,
        .html = args->html,
        .write_profile = args->write_profile,
        .log_level = cli->log_level,
        .run_one = args->run_one,
        .result_fd = args->result_fd,
        .ledger = args->ledger,
        .run = args->run,
        .shared_id = args->shared_id,
        .subject = args->subject,
        .command_ms = args->command_ms,
    };
}

static int run_suite(const HsCommand *self, CheckSetup *setup)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    g_auto(GStrv) folders = hs_provider_folders();
    char *only[] = {(char *)setup->run_one, NULL};
    if (setup->run_one && !check_find(setup->run_one))
        return hs_cli_misuse(self, "--run-one %s: there is no such case (host-sim check --list)",
                             setup->run_one);
    if (setup->run_one) {
        setup->level = 4;
        setup->include = only;
        setup->in_process = true;
    }
    if (!hs_provider_find(setup->provider, (const char *const *)folders, &path, &error))
        return hs_cli_misuse(self, "%s", error->message);
    setup->provider = path;
    return check_run(setup);
}

static int check(const HsCommand *self, const HsCli *cli, CheckArgs *args)
{
    if (!are_sound(self, cli, args))
        return HS_EXIT_USAGE;
    CheckSetup setup = make_setup(cli, args);
    if (args->compare && (!args->html || !setup.provider))
        return hs_cli_misuse(self, "--compare: give --html FILE and reports that --json wrote");
    if (args->compare)
        return check_compare(cli->rest, args->html);
    if (args->list || args->as_json)
        return check_list(&setup, args->as_json);
    if (!setup.provider)
        return hs_cli_misuse(self, "name the provider: host-sim check ./provider.so");
    if (setup.run_one && setup.result_fd >= 0)
        return check_run_one(&setup);
    return run_suite(self, &setup);
}

static int run(const HsCommand *self, char **argv)
{
    g_auto(CheckArgs) args = {.level = 2,
                              .seed = (int)(g_random_int() & G_MAXINT32),
                              .time_scale = 1,
                              .jobs = 2,
                              .repeat = 1,
                              .result_fd = -1};
    const GOptionEntry extra[] = {
        {"level", 0, 0, G_OPTION_ARG_INT, &args.level,
         "1 smoke, 2 standard, 3 strict, 4 stress (2)", "N"},
        {"include", 0, 0, LIST, &args.include, "only cases with such an id: 'EXE-*'", "GLOB"},
        {"exclude", 0, 0, LIST, &args.exclude, "no cases with such an id", "GLOB"},
        {"list", 0, 0, G_OPTION_ARG_NONE, &args.list, "show the cases and run none", NULL},
        {"list-json", 0, 0, G_OPTION_ARG_NONE, &args.as_json, "the same as JSON", NULL},
        {"profile", 0, 0, TEXT, &args.profile, "what has to be there: a skip of it fails",
         "NAME|FILE"},
        {"write-profile", 0, 0, TEXT, &args.write_profile, "write what was there", "FILE"},
        {"known-failures", 0, 0, TEXT, &args.known, "cases that may fail, and must", "FILE"},
        {"hooks", 0, 0, TEXT, &args.hooks, "commands for what only the outside can do", "FILE"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &args.seed, "repeat the tokens and sizes of a run", "N"},
        {"shuffle", 0, 0, G_OPTION_ARG_INT, &args.shuffle, "another order for each number", "N"},
        {"repeat-calls", 0, 0, G_OPTION_ARG_INT, &args.repeat,
         "make every idempotent call so often (1)", "N"},
        {"time-scale", 0, 0, G_OPTION_ARG_DOUBLE, &args.time_scale,
         "stretch all limits, for a slow machine (1)", "X"},
        {"jobs", 0, 0, G_OPTION_ARG_INT, &args.jobs, "cases at the same time (2)", "N"},
        {"in-process", 0, 0, G_OPTION_ARG_NONE, &args.in_process,
         "no process per case, for debuggers; ends with the first failure", NULL},
        {"run-one", 0, 0, TEXT, &args.run_one, "this case alone, in this process", "ID"},
        {"json", 0, 0, TEXT, &args.json, "write a report as JSON", "FILE"},
        {"junit", 0, 0, TEXT, &args.junit, "write a report for CI servers", "FILE"},
        {"html", 0, 0, TEXT, &args.html, "write a report as one page", "FILE"},
        {"compare", 0, 0, G_OPTION_ARG_NONE, &args.compare,
         "run nothing: the arguments are --json reports, for one --html page", NULL},
        {"result-fd", 0, HIDDEN, G_OPTION_ARG_INT, &args.result_fd, "", "N"},
        {"ledger", 0, HIDDEN, TEXT, &args.ledger, "", "PATH"},
        {"run", 0, HIDDEN, TEXT, &args.run, "", "WORD"},
        {"shared-id", 0, HIDDEN, TEXT, &args.shared_id, "", "ID"},
        {"subject", 0, HIDDEN, TEXT, &args.subject, "", "ID"},
        {"command-ms", 0, HIDDEN, G_OPTION_ARG_INT64, &args.command_ms, "", "MS"},
        {NULL},
    };
    g_auto(HsCli) cli = {0};
    int exit_code;
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    return check(self, &cli, &args);
}

const HsCommand hs_cmd_check = {
    .name = "check",
    .usage = "PROVIDER",
    .summary = "run the conformance suite on a provider",
    .about =
        "Runs the conformance suite on a provider and prints TAP. Each case runs in a process\n"
        "of its own, so whatever the provider does, the run goes on to its end, and every\n"
        "sandbox that was made is removed. The last line counts; crashes, timeouts and errors\n"
        "of the suite count as failed.",
    .notes = "Exit codes:\n"
             "  0  all passed\n"
             "  1  something failed\n"
             "  2  the command line is wrong\n"
             "  3  nothing was selected, or all of it was skipped\n"
             "  130  SIGINT (143 SIGTERM, 129 SIGHUP)\n"
             "\n"
             "Example:\n"
             "  host-sim check docker --level 1 --options '{\"image\":\"debian:bookworm-slim\"}'\n",
    .options = HS_OPT_CONFIG | HS_OPT_OPTIONS,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};
