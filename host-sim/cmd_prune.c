#include "commands.h"

#include "error.h"
#include "prune.h"

static int run(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_auto(HsPrune) prune = {0};
    g_autofree char *options = NULL;
    GError *error = NULL;
    HsSession session;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"older-than", 0, 0, G_OPTION_ARG_STRING, &prune.older_than,
         "and what is older: 90s, 30m, 12h, 7d", "AGE"},
        {"orphans", 0, 0, G_OPTION_ARG_NONE, &prune.orphans,
         "and sandboxes whose host is gone; with --older-than only those", NULL},
        {"label", 0, 0, G_OPTION_ARG_STRING_ARRAY, &prune.labels,
         "only sandboxes with this label; may be repeated", "NAME=VALUE"},
        {"only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &prune.only,
         "sandbox, helper, folder, volume or template; may be repeated", "KIND"},
        {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &prune.dry_run, "tell, and remove nothing", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &prune.as_json, "print one JSON object a line", NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (*cli.rest)
        return hs_cli_misuse(self, "what is \"%s\"? host-sim rm removes a sandbox by its id",
                             *cli.rest);
    if (!hs_prune_options(&prune, &options, &error)) {
        exit_code = hs_cli_misuse(self, "%s", error->message);
        g_error_free(error);
        return exit_code;
    }
    if (hs_session_open(&session, self, &cli, &error))
        hs_prune_run(&session, &prune, options, &error);
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_prune = {
    .name = "prune",
    .usage = "",
    .summary = "remove what nobody owns any more",
    .about =
        "Removes what the provider made on its engine and nobody owns any more, and tells each.\n"
        "By itself only what serves no sandbox: helpers, folders and volumes that were left over.\n"
        "With --orphans also sandboxes whose host is gone, with --older-than also sandboxes and\n"
        "templates of that age. What is in use, or whose host still runs, always stays, and so\n"
        "does what others made.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim prune --orphans --older-than 1d --dry-run",
    .options = HS_OPT_PROVIDER,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};
