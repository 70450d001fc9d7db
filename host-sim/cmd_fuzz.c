/*
 * host-sim fuzz: reads its command line and hands over to the fuzzer, as the parent or as the
 * process of one script.
 */
#include <errno.h>
#include <unistd.h>

#include "commands.h"
#include "error.h"
#include "fuzz/fuzz.h"

typedef struct {
    int seed, scripts, lanes, length, times, result_fd;
    gint64 time_s, shrink_s;
    double limit_s, time_scale;
    char *folder, *replay, *script, *errand, *word;
} FuzzArgs;

static void args_clear(FuzzArgs *args)
{
    g_free(args->folder);
    g_free(args->replay);
    g_free(args->script);
    g_free(args->errand);
    g_free(args->word);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(FuzzArgs, args_clear)

/* False, with a line about it, when a number is out of its range. */
static bool are_sound(const HsCommand *self, const HsCli *cli, const FuzzArgs *args)
{
    if (args->lanes < 1 || args->lanes > FUZZ_LANES)
        return !hs_cli_misuse(self, "--threads %d: give 1 to %d", args->lanes, FUZZ_LANES);
    if (args->length < 1 || args->length > 200)
        return !hs_cli_misuse(self, "--length %d: give 1 to 200", args->length);
    if (args->scripts < 1 || args->times < 1 || args->time_s < 1)
        return !hs_cli_misuse(self, "--scripts, --times, --time: give 1 or more");
    if (args->seed < 0)
        return !hs_cli_misuse(self, "--seed %d: give 0 or more", args->seed);
    if (args->shrink_s < 0)
        return !hs_cli_misuse(self, "--shrink: give 0 or more seconds");
    if (!(args->limit_s > 0 && args->time_scale > 0 && args->time_scale <= 1000))
        return !hs_cli_misuse(self, "--limit, --time-scale: give a number above 0, such as 3");
    if (cli->log_json)
        return !hs_cli_misuse(self, "--log-json: there is no log here");
    if (cli->rest[0])
        return !hs_cli_misuse(self, "what is \"%s\"?", cli->rest[0]);
    return true;
}

/* Before the first script: a finding would be lost. */
static bool can_keep(const char *folder, GError **error)
{
    g_autofree char *probe = g_build_filename(folder, "fuzz-XXXXXX", NULL);
    int fd = g_mkstemp(probe);
    if (fd < 0)
        return hs_fail(error, HS_USAGE, "--folder %s cannot be written: %s", folder,
                       g_strerror(errno));
    close(fd);
    unlink(probe);
    return true;
}

static int fuzz(const HsCommand *self, const HsCli *cli, const FuzzArgs *args)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    g_auto(GStrv) folders = hs_provider_folders();
    if (!are_sound(self, cli, args))
        return HS_EXIT_USAGE;
    if (!hs_provider_find(cli->provider, (const char *const *)folders, &path, &error))
        return hs_cli_misuse(self, "%s", error->message);
    const FuzzSetup setup = {
        .provider = path,
        .config = cli->config,
        .options = cli->options,
        .seed = (guint32)args->seed,
        .time_s = args->time_s,
        .scripts = (guint)args->scripts,
        .lanes = (guint)args->lanes,
        .length = (guint)args->length,
        .limit_s = args->limit_s,
        .shrink_s = args->shrink_s,
        .time_scale = args->time_scale,
        .folder = args->folder ? args->folder : ".",
        .replay = args->replay,
        .times = (guint)args->times,
        .script = args->script,
        .errand = args->errand,
        .word = args->word,
        .result_fd = args->result_fd,
    };
    if (setup.result_fd >= 0)
        return fuzz_child(&setup);
    if (setup.replay)
        return fuzz_run_replay(&setup);
    return can_keep(setup.folder, &error) ? fuzz_run(&setup)
                                          : hs_cli_misuse(self, "%s", error->message);
}

#define HIDDEN G_OPTION_FLAG_HIDDEN
#define TEXT G_OPTION_ARG_FILENAME

static int run(const HsCommand *self, char **argv)
{
    g_auto(FuzzArgs) args = {.seed = (int)(g_random_int() & G_MAXINT32),
                             .scripts = G_MAXINT,
                             .lanes = 3,
                             .length = 60,
                             .times = 1,
                             .result_fd = -1,
                             .time_s = 60,
                             .shrink_s = 120,
                             .limit_s = 60,
                             .time_scale = 1};
    const GOptionEntry extra[] = {
        {"seed", 0, 0, G_OPTION_ARG_INT, &args.seed, "of the first script; the next has the next",
         "N"},
        {"time", 0, 0, G_OPTION_ARG_INT64, &args.time_s, "begin no script after that (60)",
         "SECONDS"},
        {"scripts", 0, 0, G_OPTION_ARG_INT, &args.scripts, "no more than so many", "N"},
        {"threads", 0, 0, G_OPTION_ARG_INT, &args.lanes, "that call at the same time (3)", "N"},
        {"length", 0, 0, G_OPTION_ARG_INT, &args.length, "calls of a script, about (60)", "N"},
        {"limit", 0, 0, G_OPTION_ARG_DOUBLE, &args.limit_s, "a call that takes longer hangs (60)",
         "SECONDS"},
        {"time-scale", 0, 0, G_OPTION_ARG_DOUBLE, &args.time_scale,
         "stretch all limits, for a slow machine (1)", "X"},
        {"shrink", 0, 0, G_OPTION_ARG_INT64, &args.shrink_s,
         "how long a script that failed is made shorter (120)", "SECONDS"},
        {"folder", 0, 0, TEXT, &args.folder, "where the script that failed is kept (.)", "DIR"},
        {"replay", 0, 0, TEXT, &args.replay, "run this script and show every answer", "FILE"},
        {"times", 0, 0, G_OPTION_ARG_INT, &args.times, "replay it so often (1)", "N"},
        {"script", 0, HIDDEN, TEXT, &args.script, "", "PATH"},
        {"errand", 0, HIDDEN, TEXT, &args.errand, "", "NAME"},
        {"word", 0, HIDDEN, TEXT, &args.word, "", "WORD"},
        {"result-fd", 0, HIDDEN, G_OPTION_ARG_INT, &args.result_fd, "", "N"},
        {NULL},
    };
    g_auto(HsCli) cli = {0};
    int exit_code;
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    return fuzz(self, &cli, &args);
}

const HsCommand hs_cmd_fuzz = {
    .name = "fuzz",
    .usage = "",
    .summary = "look for calls that a provider answers wrongly",
    .about =
        "Makes random calls from several threads and compares each answer with a model of\n"
        "sandboxes, files and processes. Each script of calls runs in a process of its own, so\n"
        "crashes and calls that hang are found, too. A script that fails is made as short as\n"
        "can be, and kept. The same seed makes the same scripts.",
    .notes = "Exit codes:\n"
             "  0  nothing was found\n"
             "  1  a script failed\n"
             "  2  the command line is wrong\n"
             "  3  the provider or the script cannot be used\n"
             "  130  SIGINT (143 SIGTERM, 129 SIGHUP)\n"
             "\n"
             "Examples:\n"
             "  host-sim fuzz --provider docker --seed 7 --time 300\n"
             "  host-sim fuzz --provider docker --replay fuzz-12.script --times 5\n",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};
