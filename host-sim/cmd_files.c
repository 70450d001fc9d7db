#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "session.h"
#include "streams.h"
#include "values.h"

typedef struct {
    const char *path;  /* in the sandbox */
    const char *local; /* on this side, or NULL for a standard stream */
    guint32 mode;
    bool archive; /* a directory as a tar archive, not a file */
    const char *user;
} Transfer;

static bool need_archive(const HsSession *session, GError **error)
{
    return session->lib->archive ||
           hs_fail(error, SPROV_E_UNSUPPORTED, "the provider has no " SPROV_EXT_ARCHIVE);
}

/* Both commands name one sandbox and one path in it. */
static bool take_path(const HsCommand *self, const HsCli *cli, Transfer *transfer, int *ret_exit)
{
    const char *problem = NULL;
    if (!hs_cli_id(cli))
        problem = "--id is missing; host-sim ls lists the sandboxes";
    else if (!cli->rest[0])
        problem = "the PATH in the sandbox is missing";
    else if (cli->rest[1])
        problem = "one PATH at a time";
    if (problem)
        *ret_exit = hs_cli_misuse(self, "%s", problem);
    else
        transfer->path = cli->rest[0];
    return !problem;
}

/* ----------------------------------------------------------------------- read */

static sprov_status fetch(HsSession *session, sprov_sandbox *sandbox, const Transfer *transfer,
                          const sprov_sink *sink, sprov_error *failure)
{
    sprov_call call = hs_session_call(session, SPROV_CALL_NO_CREATE);
    sprov_read_request file = SPROV_INIT(sprov_read_request);
    sprov_get_request tree = SPROV_INIT(sprov_get_request);
    file.path = tree.path = transfer->path;
    file.sink = tree.tar = sink;
    return transfer->archive ? session->lib->archive->get(sandbox, &tree, &call, failure)
                             : session->lib->api->read_file(sandbox, &file, &call, NULL, failure);
}

static bool read_into(HsSession *session, sprov_sandbox *sandbox, const Transfer *transfer, int fd,
                      const char *name, GError **error)
{
    HsSink sink;
    if (transfer->archive && !need_archive(session, error))
        return false;
    hs_sink_init(&sink, fd, session->services.cancel.fd);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = fetch(session, sandbox, transfer, &sink.sink, &failure);
    if (status == SPROV_E_REFUSED && sink.failure)
        return hs_fail_write(error, name, sink.failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

/* Where a file of this name really lies, so that a link to it stays one, and the permissions it
 * has or is to get. */
static bool resolve_target(const char *local, char **ret_target, int *ret_mode, GError **error)
{
    struct stat st = {.st_mode = S_IFREG | 0666};
    if (stat(local, &st) == 0 && !S_ISREG(st.st_mode))
        return hs_fail(error, HS_USAGE, "--to %s is no regular file%s", local,
                       S_ISDIR(st.st_mode) ? "; name a file in it" : "; use > instead");
    char *real = realpath(local, NULL);
    *ret_target = real ? real : g_strdup(local);
    *ret_mode = st.st_mode & 0777;
    return true;
}

/* Only a whole file gets the name. */
static bool read_to_file(HsSession *session, sprov_sandbox *sandbox, const Transfer *transfer,
                         GError **error)
{
    g_autofree char *target = NULL;
    int mode = 0;
    if (!resolve_target(transfer->local, &target, &mode, error))
        return false;
    g_autofree char *partial = g_strconcat(target, ".XXXXXX", NULL);
    int fd = g_mkstemp_full(partial, O_WRONLY | O_CLOEXEC, mode);
    if (fd < 0)
        return hs_fail(error, SPROV_E_IO, "--to %s: %s", transfer->local, g_strerror(errno));
    bool done = read_into(session, sandbox, transfer, fd, transfer->local, error);
    int close_failed = close(fd);
    if (done && (close_failed != 0 || rename(partial, target) != 0))
        done = hs_fail(error, SPROV_E_IO, "--to %s: %s", transfer->local, g_strerror(errno));
    if (!done)
        unlink(partial);
    return done;
}

static bool read_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                      GError **error)
{
    const Transfer *transfer = data;
    if (transfer->local)
        return read_to_file(session, sandbox, transfer, error);
    return read_into(session, sandbox, transfer, STDOUT_FILENO, "standard output", error);
}

static int run_read(const HsCommand *self, char **argv, bool archive)
{
    g_auto(HsCli) cli = {0};
    g_autofree char *to = NULL;
    Transfer transfer = {.archive = archive};
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"to", 0, 0, G_OPTION_ARG_FILENAME, &to, "write FILE instead of standard output", "FILE"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code) ||
        !take_path(self, &cli, &transfer, &exit_code))
        return exit_code;
    transfer.local = to;
    return hs_session_work(self, &cli, hs_cli_id(&cli), read_work, &transfer);
}

static int read_command(const HsCommand *self, char **argv)
{
    return run_read(self, argv, false);
}

static int get_command(const HsCommand *self, char **argv)
{
    return run_read(self, argv, true);
}

const HsCommand hs_cmd_read = {
    .name = "read",
    .usage = "--id ID PATH",
    .summary = "copy a file out of a sandbox",
    .about =
        "Copies one file out of the sandbox, byte for byte, to standard output or to FILE,\n"
        "which appears only when it is whole. A sandbox that is stopped is started again; none\n"
        "is created.",
    .notes = HS_EXIT_CODES "  141  nobody reads the output any more\n"
                           "\n"
                           "Example:\n"
                           "  host-sim read --id work out/report.html --to report.html",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = read_command,
};

const HsCommand hs_cmd_get = {
    .name = "get",
    .usage = "--id ID PATH",
    .summary = "copy a directory out of a sandbox, as a tar archive",
    .about =
        "Packs a directory of the sandbox with all below it, or one file, as a tar archive on\n"
        "standard output or in FILE, which appears only when it is whole. Names begin with the\n"
        "last part of PATH. A sandbox that is stopped is started again; none is created.",
    .notes = HS_EXIT_CODES "  141  nobody reads the output any more\n"
                           "\n"
                           "Example:\n"
                           "  host-sim get --id work project/out | tar x",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = get_command,
};

/* ---------------------------------------------------------------------- write */

static sprov_status send(HsSession *session, sprov_sandbox *sandbox, const Transfer *transfer,
                         const sprov_source *source, sprov_error *failure)
{
    sprov_call call = hs_session_call(session, SPROV_CALL_NO_CREATE);
    sprov_write_request file = SPROV_INIT(sprov_write_request);
    sprov_put_request tree = SPROV_INIT(sprov_put_request);
    file.path = tree.directory = transfer->path;
    file.mode = transfer->mode;
    file.source = tree.tar = source;
    tree.user = transfer->user;
    return transfer->archive ? session->lib->archive->put(sandbox, &tree, &call, failure)
                             : session->lib->api->write_file(sandbox, &file, &call, failure);
}

static bool write_from(HsSession *session, sprov_sandbox *sandbox, const Transfer *transfer, int fd,
                       GError **error)
{
    HsSource source;
    if (transfer->archive && !need_archive(session, error))
        return false;
    hs_source_init(&source, fd, true);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = send(session, sandbox, transfer, &source.source, &failure);
    if (status == SPROV_E_REFUSED && source.failure)
        return hs_fail(error, SPROV_E_IO, "cannot read %s: %s",
                       transfer->local ? transfer->local : "standard input",
                       g_strerror(source.failure));
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static bool write_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                       GError **error)
{
    const Transfer *transfer = data;
    if (!transfer->local)
        return write_from(session, sandbox, transfer, STDIN_FILENO, error);
    int fd = open(transfer->local, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hs_fail(error, HS_USAGE, "--from %s: %s", transfer->local, g_strerror(errno));
    bool done = write_from(session, sandbox, transfer, fd, error);
    close(fd);
    return done;
}

static int write_command(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_autofree char *from = NULL;
    g_autofree char *mode = NULL;
    g_autoptr(GError) error = NULL;
    Transfer transfer = {0};
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"from", 0, 0, G_OPTION_ARG_FILENAME, &from, "read FILE instead of standard input", "FILE"},
        {"mode", 'm', 0, G_OPTION_ARG_FILENAME, &mode,
         "permission bits (as they were, 0644 for a new file)", "0755"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code) ||
        !take_path(self, &cli, &transfer, &exit_code))
        return exit_code;
    if (mode && !hs_parse_mode(mode, &transfer.mode, &error))
        return hs_cli_misuse(self, "--mode: %s", error->message);
    transfer.local = from;
    return hs_session_work(self, &cli, hs_cli_id(&cli), write_work, &transfer);
}

const HsCommand hs_cmd_write = {
    .name = "write",
    .usage = "--id ID PATH",
    .summary = "copy a file into a sandbox",
    .about = "Copies standard input, or FILE, into one file of the sandbox; folders above it are\n"
             "made. Readers see the old file or the whole new one. A sandbox that is stopped is\n"
             "started again; none is created.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim write --id work bin/tool --from tool --mode 0755",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = write_command,
};

static int put_command(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_autofree char *from = NULL;
    g_autofree char *user = NULL;
    Transfer transfer = {.archive = true};
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"from", 0, 0, G_OPTION_ARG_FILENAME, &from, "read FILE instead of standard input", "FILE"},
        {"user", 'u', 0, G_OPTION_ARG_STRING, &user, "who makes and owns it", "USER[:GROUP]"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code) ||
        !take_path(self, &cli, &transfer, &exit_code))
        return exit_code;
    transfer.local = from;
    transfer.user = user;
    return hs_session_work(self, &cli, hs_cli_id(&cli), write_work, &transfer);
}

const HsCommand hs_cmd_put = {
    .name = "put",
    .usage = "--id ID DIRECTORY",
    .summary = "unpack a tar archive in a sandbox",
    .about =
        "Unpacks the tar archive on standard input, or in FILE, into a directory of the sandbox,\n"
        "which is made if need be. An archive with a name or link that leads out of it is\n"
        "refused there. A sandbox that is stopped is started again; none is created.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  tar c src Makefile | host-sim put --id work project",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = put_command,
};
