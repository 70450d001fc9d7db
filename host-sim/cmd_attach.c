#include "commands.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "process.h"
#include "terminal.h"

#define DETACH_KEY 0x1d /* Ctrl-] */
#define RETRY_MS 20     /* until input that was not taken is offered again */

typedef struct {
    HsSession *session;
    const sprov_ext_processes *api;
    sprov_process *process;
    HsSink out, err;
    bool on_terminal;
    bool out_open, err_open, in_open;
    bool detached;
    char input[4096];
    size_t at, size; /* of input that was read and not yet taken */
} Attach;

/* --------------------------------------------------------------------- input */

static void read_input(Attach *a)
{
    ssize_t n = read(STDIN_FILENO, a->input, sizeof a->input);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    const char *key = n > 0 && a->on_terminal ? memchr(a->input, DETACH_KEY, (size_t)n) : NULL;
    a->detached = key != NULL;
    a->at = 0;
    a->size = key ? (size_t)(key - a->input) : (size_t)MAX(n, 0);
    if (n > 0)
        return;
    sprov_call call = hs_session_call(a->session, 0);
    a->in_open = false;
    a->api->close_stdin(a->process, &call, NULL);
}

static bool pass_input(Attach *a, GError **error)
{
    size_t written = 0;
    sprov_call call = hs_session_call(a->session, SPROV_CALL_NOWAIT);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = a->api->write_stdin(a->process, a->input + a->at, a->size - a->at,
                                              &written, &call, &failure);
    a->at += written;
    if (status == SPROV_E_CONFLICT) {
        a->in_open = false;
        a->at = a->size;
    } else if (status != SPROV_OK && status != SPROV_E_WOULD_BLOCK)
        return hs_fail_call(error, status, &failure);
    return true;
}

/* ---------------------------------------------------------------------- loop */

static bool pass_output(Attach *a, sprov_stream stream, HsSink *sink, bool *open, GError **error)
{
    bool end, again;
    if (!hs_process_pass(a->session, a->process, stream, NULL, SPROV_CALL_NOWAIT, sink, &end,
                         &again, error))
        return false;
    *open = !end;
    return true;
}

static void tell_size(Attach *a)
{
    guint16 rows, columns;
    if (hs_terminal_size(&rows, &columns))
        a->api->resize(a->process, rows, columns, NULL, NULL);
}

static bool step(Attach *a, GError **error)
{
    bool pending = a->at < a->size;
    struct pollfd fds[] = {
        {.fd = a->session->services.cancel.fd, .events = POLLIN},
        {.fd = a->out_open ? a->api->fd(a->process, SPROV_STREAM_OUT) : -1, .events = POLLIN},
        {.fd = a->err_open ? a->api->fd(a->process, SPROV_STREAM_ERR) : -1, .events = POLLIN},
        {.fd = a->in_open && !pending ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = a->on_terminal ? hs_terminal_size_fd() : -1, .events = POLLIN},
    };
    if (poll(fds, G_N_ELEMENTS(fds), pending ? RETRY_MS : -1) < 0)
        return errno == EINTR || hs_fail(error, SPROV_E_IO, "cannot wait: %s", g_strerror(errno));
    if (fds[0].revents)
        return hs_fail(error, SPROV_E_CANCELLED, "detached by a signal");
    if (fds[1].revents && !pass_output(a, SPROV_STREAM_OUT, &a->out, &a->out_open, error))
        return false;
    if (fds[2].revents && !pass_output(a, SPROV_STREAM_ERR, &a->err, &a->err_open, error))
        return false;
    if (fds[3].revents)
        read_input(a);
    if (fds[4].revents) {
        hs_terminal_size_told();
        tell_size(a);
    }
    return a->at == a->size || pass_input(a, error);
}

static bool finish(Attach *a, int *ret_exit, GError **error)
{
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_call call = hs_session_call(a->session, 0);
    sprov_status status = a->api->wait(a->process, &call, &result, &failure);
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    *ret_exit = hs_session_exit_code(a->session, &result);
    return true;
}

static bool attach_to(Attach *a, int *ret_exit, GError **error)
{
    bool ok = true;
    a->err_open = a->api->fd(a->process, SPROV_STREAM_ERR) >= 0;
    a->on_terminal = !a->err_open && hs_terminal_is_there();
    a->out_open = a->in_open = true;
    hs_sink_init(&a->out, STDOUT_FILENO, a->session->services.cancel.fd);
    hs_sink_init(&a->err, STDERR_FILENO, a->session->services.cancel.fd);
    if (a->api->fd(a->process, SPROV_STREAM_OUT) < 0)
        return hs_fail(error, SPROV_E_EXHAUSTED, "no descriptor left to attach with");
    if (a->on_terminal) {
        ok = hs_terminal_enter(error);
        tell_size(a);
    }
    while (ok && !a->detached && (a->out_open || a->err_open))
        ok = step(a, error);
    if (a->on_terminal)
        hs_terminal_leave();
    if (ok && a->detached)
        fprintf(stderr, "\ndetached from %s\n", a->api->id(a->process));
    return ok && (a->detached || finish(a, ret_exit, error));
}

static bool work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                 GError **error)
{
    Attach a = {.session = session, .api = session->lib->processes};
    guint16 rows = 0, columns = 0;
    const char *name = session->cli->rest[0];
    if (!name && hs_terminal_is_there() && !hs_terminal_size(&rows, &columns)) {
        rows = 24;
        columns = 80;
    }
    if (name ? !hs_process_find(session, sandbox, name, &a.process, error)
             : !hs_process_spawn(session, sandbox, rows, columns, &a.process, error))
        return false;
    bool done = attach_to(&a, ret_exit, error);
    a.api->release(a.process);
    return done;
}

static int attach(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    int exit_code = 0;
    if (!hs_cli_parse(&cli, self, NULL, argv, &exit_code))
        return exit_code;
    if (!hs_cli_id(&cli))
        return hs_cli_misuse(self, "--id is missing; host-sim ls lists the sandboxes");
    if (cli.rest[0] && cli.rest[1])
        return hs_cli_misuse(self, "what is \"%s\"? Put -- before a command", cli.rest[1]);
    return hs_session_work(self, &cli, hs_cli_id(&cli), work, NULL);
}

const HsCommand hs_cmd_attach = {
    .name = "attach",
    .usage = "--id ID (PROCESS | -c COMMAND | -- ARGV...)",
    .summary = "use a process of a sandbox from this terminal",
    .about =
        "Connects this terminal to a spawned process, or to a command that it spawns first:\n"
        "on a terminal of its own where host-sim has one, else on three pipes. Ctrl-] lets go\n"
        "of a process on a terminal, which then runs on; so does any signal.",
    .notes = "Exit codes:\n"
             "  the process's own; 124 when its timeout passed, 0 after Ctrl-]\n"
             "  125  the provider or its engine failed, or the command line is wrong\n"
             "  130  SIGINT (143 SIGTERM, 129 SIGHUP): let go of it\n"
             "\n"
             "Examples:\n"
             "  host-sim attach --id work -- bash\n"
             "  host-sim attach --id work 3",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID | HS_OPT_COMMAND | HS_OPT_PLAIN,
    .usage_exit = HS_EXIT_FAILED,
    .run = attach,
};
