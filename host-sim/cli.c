#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "values.h"

#define MAX_ENTRIES 32

/* What the option parser stores as it is; values are made of it afterwards. */
typedef struct {
    gboolean help;
    char *provider, *config, *options, *timeout, *log_level;
} Raw;

typedef struct {
    guint when; /* HS_OPT_*, any of them; 0 for always */
    GOptionEntry entry;
} SharedEntry;

/* FILENAME stands for raw bytes: STRING would refuse what is not ASCII in the C locale. */
#define TEXT G_OPTION_ARG_FILENAME
#define LIST G_OPTION_ARG_FILENAME_ARRAY

static void collect(GOptionEntry *entries, HsCli *cli, Raw *raw, const HsCommand *command,
                    const GOptionEntry *extra)
{
    const SharedEntry shared[] = {
        {HS_OPT_PROVIDER,
         {"provider", 'p', 0, TEXT, &raw->provider,
          "path of a provider, or its name in SANDBOX_PROVIDER_PATH (docker)", "P"}},
        {HS_OPT_PROVIDER | HS_OPT_CONFIG,
         {"config", 0, 0, TEXT, &raw->config, "configuration of the provider", "JSON|@FILE"}},
        {HS_OPT_OPTIONS,
         {"options", 'o', 0, TEXT, &raw->options, "options of the sandbox", "JSON|@FILE"}},
        {HS_OPT_ID, {"id", 0, 0, LIST, &cli->ids, "the sandbox's id", "ID"}},
        {HS_OPT_IDS, {"id", 0, 0, LIST, &cli->ids, "a sandbox's id; may be repeated", "ID"}},
        {HS_OPT_COMMAND,
         {"command", 'c', 0, TEXT, &cli->command, "run by the sandbox's shell", "COMMAND"}},
        {HS_OPT_COMMAND,
         {"env", 'e', 0, LIST, &cli->env, "set a variable; NAME alone takes it away",
          "NAME=VALUE"}},
        {HS_OPT_COMMAND, {"cwd", 0, 0, TEXT, &cli->cwd, "folder to run in", "DIR"}},
        {HS_OPT_COMMAND, {"user", 'u', 0, TEXT, &cli->user, "user to run as", "USER"}},
        {HS_OPT_COMMAND,
         {"timeout", 't', 0, TEXT, &raw->timeout,
          "end it after so long, 0 for never (the options' \"timeout\")", "SECONDS"}},
        {HS_OPT_COMMAND | HS_OPT_SECRET,
         {"secret", 0, 0, LIST, &cli->secrets, "a value that no inspect and no image shows",
          "NAME=env:VAR|file:PATH"}},
        {HS_OPT_COMMAND | HS_OPT_SECRET,
         {"login", 0, 0, LIST, &cli->logins, "where USER:PASSWORD for a registry's images lies",
          "REGISTRY=env:VAR|file:PATH"}},
        {0,
         {"log-level", 0, 0, TEXT, &raw->log_level,
          "error, warning, info or debug (warning), on standard error", "LEVEL"}},
        {0, {"log-json", 0, 0, G_OPTION_ARG_NONE, &cli->log_json, "log JSON objects", NULL}},
        {0, {"help", 'h', 0, G_OPTION_ARG_NONE, &raw->help, "show this", NULL}},
    };
    guint n = 0;
    for (; extra && extra->long_name; extra++)
        entries[n++] = *extra;
    for (gsize i = 0; i < G_N_ELEMENTS(shared); i++) {
        if (!shared[i].when || (shared[i].when & command->options))
            entries[n++] = shared[i].entry;
    }
    entries[n] = (GOptionEntry){NULL};
}

static void raw_clear(Raw *raw)
{
    g_free(raw->provider);
    g_free(raw->config);
    g_free(raw->options);
    g_free(raw->timeout);
    g_free(raw->log_level);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Raw, raw_clear)

int hs_cli_misuse(const HsCommand *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = hs_one_line(text);
    fprintf(stderr, "host-sim %s: %s (host-sim %s --help tells more)\n", command->name, line,
            command->name);
    return command->usage_exit;
}

int hs_cli_help(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? HS_EXIT_FAILED : 0;
}

/* What the option parser says, and for "Unknown option --tiemout=3" the option that was meant. */
static char *explain(const GError *error, const GOptionEntry *entries)
{
    bool unknown = g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION);
    const char *dash = unknown ? strstr(error->message, "--") : NULL;
    if (!dash)
        return g_strdup(error->message);
    g_autofree char *word = g_strndup(dash + 2, strcspn(dash + 2, "="));
    const char *names[MAX_ENTRIES + 1] = {NULL};
    for (gsize i = 0; entries[i].long_name; i++)
        names[i] = entries[i].long_name;
    const char *nearest = hs_nearest(word, names);
    return nearest ? g_strdup_printf("Unknown option --%s; did you mean --%s?", word, nearest)
                   : g_strdup_printf("Unknown option --%s", word);
}

static int show_help(const HsCommand *command, GOptionContext *context)
{
    g_autofree char *text = g_option_context_get_help(context, TRUE, NULL);
    g_autoptr(GString) help = g_string_new(text);
    g_string_replace(help, "[OPTION…]", "[OPTION...]", 1);
    g_string_replace(help, "Application Options:", "Options:", 1);
    return hs_cli_help(help->str);
}

/* The option parser has its own idea of "--": what follows is cut off before it looks. */
static char **cut_at_separator(char **argv, char ***ret_behind)
{
    gsize n = 0;
    while (argv[n] && strcmp(argv[n], "--") != 0)
        n++;
    *ret_behind = argv[n] ? g_strdupv(argv + n + 1) : NULL;
    char **before = g_new0(char *, n + 1);
    for (gsize i = 0; i < n; i++)
        before[i] = g_strdup(argv[i]);
    return before;
}

/* With a command line of its own "--" begins that; elsewhere plain arguments go on behind it. */
static bool take_arguments(HsCli *cli, const HsCommand *command, char **plain, char **behind,
                           GError **error)
{
    g_autoptr(GStrvBuilder) rest = g_strv_builder_new();
    g_strv_builder_addv(rest, (const char **)plain);
    bool instead = *plain && command->options & HS_OPT_PLAIN && !cli->command && !behind;
    if (instead || !(command->options & HS_OPT_COMMAND)) {
        if (behind)
            g_strv_builder_addv(rest, (const char **)behind);
    } else if (*plain) {
        return hs_fail(error, HS_USAGE, "what is \"%s\"? Put -- before a command and its arguments",
                       *plain);
    } else if ((cli->command != NULL) == (behind && *behind)) {
        return hs_fail(error, HS_USAGE, "give one command: -c COMMAND, or -- and its arguments");
    } else if (behind && *behind) {
        cli->argv = g_strdupv(behind);
    }
    cli->rest = g_strv_builder_end(rest);
    return true;
}

static bool take_values(HsCli *cli, Raw *raw, GError **error)
{
    cli->provider = raw->provider ? g_steal_pointer(&raw->provider) : g_strdup("docker");
    cli->log_level = SPROV_LOG_WARNING;
    if (raw->log_level && !hs_parse_log_level(raw->log_level, &cli->log_level, error))
        return false;
    if (raw->timeout && !hs_parse_seconds(raw->timeout, &cli->timeout_ms, error)) {
        g_prefix_error_literal(error, "--timeout: ");
        return false;
    }
    if (raw->config && !hs_json_argument("--config", raw->config, &cli->config, error))
        return false;
    if (raw->options && !hs_json_argument("--options", raw->options, &cli->options, error))
        return false;
    return hs_check_env((const char *const *)cli->env, error);
}

bool hs_cli_parse(HsCli *cli, const HsCommand *command, const GOptionEntry *extra, char **argv,
                  int *ret_exit)
{
    g_auto(Raw) raw = {0};
    g_auto(GStrv) behind = NULL;
    g_auto(GStrv) before = cut_at_separator(argv, &behind);
    g_autoptr(GError) error = NULL;
    GOptionEntry entries[MAX_ENTRIES + 1];
    *cli = (HsCli){0};
    collect(entries, cli, &raw, command, extra);

    g_autofree char *name = g_strconcat("host-sim ", command->name, NULL);
    g_set_prgname(name);
    g_autoptr(GOptionContext) context = g_option_context_new(command->usage);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_summary(context, command->about);
    g_option_context_set_description(context, command->notes);
    g_option_context_add_main_entries(context, entries, NULL);

    if (!g_option_context_parse_strv(context, &before, &error)) {
        g_autofree char *text = explain(error, entries);
        *ret_exit = hs_cli_misuse(command, "%s", text);
    } else if (raw.help) {
        *ret_exit = show_help(command, context);
    } else if (!take_arguments(cli, command, before + 1, behind, &error) ||
               !take_values(cli, &raw, &error)) {
        *ret_exit = hs_cli_misuse(command, "%s", error->message);
    } else {
        return true;
    }
    hs_cli_clear(cli);
    return false;
}

const char *hs_cli_id(const HsCli *cli)
{
    guint n = cli->ids ? g_strv_length(cli->ids) : 0;
    return n ? cli->ids[n - 1] : NULL;
}

void hs_cli_clear(HsCli *cli)
{
    g_free(cli->provider);
    g_free(cli->config);
    g_free(cli->options);
    g_free(cli->command);
    g_free(cli->cwd);
    g_free(cli->user);
    g_strfreev(cli->ids);
    g_strfreev(cli->argv);
    g_strfreev(cli->env);
    g_strfreev(cli->secrets);
    g_strfreev(cli->logins);
    g_strfreev(cli->rest);
    *cli = (HsCli){0};
}
