/*
 * host-sim: finds the command that argv names and runs it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "values.h"

static const HsCommand *const commands[] = {
    &hs_cmd_run,    &hs_cmd_start, &hs_cmd_clone,    &hs_cmd_exec,      &hs_cmd_stop,
    &hs_cmd_rm,     &hs_cmd_ls,    &hs_cmd_ps,       &hs_cmd_kill,      &hs_cmd_logs,
    &hs_cmd_attach, &hs_cmd_cp,    &hs_cmd_read,     &hs_cmd_write,     &hs_cmd_get,
    &hs_cmd_put,    &hs_cmd_build, &hs_cmd_template, &hs_cmd_templates, &hs_cmd_prune,
    &hs_cmd_info,   &hs_cmd_check, &hs_cmd_fuzz,
};

static const char help_head[] =
    "Usage:\n"
    "  host-sim COMMAND [OPTION...]\n"
    "\n"
    "Loads a sandbox provider and uses it as an agent runtime does: through the\n"
    "functions of sandbox_provider.h alone. The provider is docker unless --provider\n"
    "names another, by path or by a name that SANDBOX_PROVIDER_PATH leads to.\n"
    "\n"
    "Commands:\n";

static const char help_foot[] =
    "\n"
    "host-sim help COMMAND tells what it does, its options and its exit codes.\n"
    "\n"
    "Example:\n"
    "  host-sim run --options '{\"image\":\"debian:bookworm-slim\"}' -- uname -a\n";

static const HsCommand *find_command(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int show_help(void)
{
    g_autoptr(GString) text = g_string_new(help_head);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        g_string_append_printf(text, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    g_string_append(text, help_foot);
    return hs_cli_help(text->str);
}

static int unknown_command(const char *name)
{
    const char *names[G_N_ELEMENTS(commands) + 1] = {NULL};
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i]->name;
    const char *nearest = hs_nearest(name, names);
    g_autofree char *hint = nearest ? g_strdup_printf("; did you mean %s?", nearest) : g_strdup("");
    fprintf(stderr, "host-sim: unknown command %s%s (host-sim --help lists them)\n", name, hint);
    return HS_EXIT_USAGE;
}

/* A file that the provider opens must not become somebody's standard output. */
static void open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            _exit(HS_EXIT_FAILED);
    }
}

int main(int argc, char **argv)
{
    open_standard_streams();
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0)
        return hs_cli_help("host-sim " HS_VERSION "\n");
    bool asks_help =
        strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (asks_help && argc < 3)
        return show_help();
    if (argc < 2) {
        fputs("host-sim: no command (host-sim --help lists them)\n", stderr);
        return HS_EXIT_USAGE;
    }
    const HsCommand *command = find_command(asks_help ? argv[2] : name);
    if (!command)
        return unknown_command(asks_help ? argv[2] : name);
    char *help[] = {(char *)command->name, (char *)"--help", NULL};
    return command->run(command, asks_help ? help : argv + 1);
}
