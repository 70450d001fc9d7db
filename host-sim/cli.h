/*
 * The command line: the table entry every command fills, the options that commands share, help,
 * and the line about what is wrong with an argument. Used by main and by each cmd_*.c, on the
 * main thread before anything else happens.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "sandbox_provider.h"

enum {
    HS_EXIT_USAGE = 2,
    HS_EXIT_TIMED_OUT = 124,
    HS_EXIT_FAILED = 125,     /* the provider or its engine failed */
    HS_EXIT_READER_GONE = 141 /* as a shell tells SIGPIPE */
};

/* For the notes of a command that has no exit codes beyond the usual. */
#define HS_EXIT_CODES                                                                              \
    "Exit codes:\n"                                                                                \
    "  0    done\n"                                                                                \
    "  2    the command line is wrong\n"                                                           \
    "  125  it failed; one line on standard error says why\n"                                      \
    "  130  SIGINT (143 SIGTERM, 129 SIGHUP)\n"

/* Which of the shared options a command takes. --log-level, --log-json and --help all take. */
enum {
    HS_OPT_PROVIDER = 1u << 0, /* --provider --config */
    HS_OPT_CONFIG = 1u << 5,   /* --config alone */
    HS_OPT_OPTIONS = 1u << 1,  /* --options */
    HS_OPT_ID = 1u << 2,       /* --id */
    HS_OPT_IDS = 1u << 3,      /* --id more than once, and ids as plain arguments */
    HS_OPT_PLAIN = 1u << 6,    /* plain arguments may stand in place of the command */
    HS_OPT_SECRET = 1u << 7,   /* --secret --login */
    HS_OPT_COMMAND = 1u << 4 /* -c --env --cwd --user --timeout --secret --login, and -- ARGV... */
};

typedef struct HsCommand {
    const char *name;
    const char *usage;   /* what follows the name and "[OPTION...]" in the usage line */
    const char *summary; /* one line, for the list of commands */
    const char *about;   /* what it does, shown above the options */
    const char *notes;   /* exit codes and examples, shown below the options; or NULL */
    guint options;       /* HS_OPT_* */
    int usage_exit;      /* exit code for a wrong command line */
    int (*run)(const struct HsCommand *self, char **argv); /* argv[0] is the name */
} HsCommand;

typedef struct {
    char *provider;
    char *config;  /* checked JSON object, or NULL */
    char *options; /* the same */
    char **ids;
    char *command;
    char **argv; /* what follows "--", or NULL; with HS_OPT_COMMAND only */
    char **env;
    char *cwd;
    char *user;
    char **secrets;
    char **logins;
    gint64 timeout_ms; /* 0 when not given, -1 for no limit */
    sprov_log_level log_level;
    gboolean log_json;
    char **rest; /* plain arguments; never NULL */
} HsCli;

/* Reads argv for a command that has extra options of its own (NULL when none). False when the
 * command is over: help was printed, or a line about what is wrong; *ret_exit is its exit code. */
bool hs_cli_parse(HsCli *cli, const HsCommand *command, const GOptionEntry *extra, char **argv,
                  int *ret_exit);
void hs_cli_clear(HsCli *cli);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HsCli, hs_cli_clear)

/* Prints "host-sim COMMAND: text" and the way to its help; returns the exit code. */
int hs_cli_misuse(const HsCommand *command, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Text of help to standard output; returns the exit code. */
int hs_cli_help(const char *text);

/* The id that --id gave last, or NULL. */
const char *hs_cli_id(const HsCli *cli);
