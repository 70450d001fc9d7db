/*
 * wire-proxy: sits between a client of a Docker engine and the engine, logs the requests, and
 * makes the faults that its rules ask for. One poll loop. README.md is for its users.
 */
#include "wire/control.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

typedef struct {
    char *listen, *engine, *control, *rules, *log, *send;
    gboolean with_parent;
} Options;

static void options_clear(Options *options)
{
    g_free(options->listen);
    g_free(options->engine);
    g_free(options->control);
    g_free(options->rules);
    g_free(options->log);
    g_free(options->send);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

typedef struct {
    WireContext context;
    WireAddress address;
    WireControl *control;
    GPtrArray *conns;
    int listener;
    int signals;
    bool watches_stdin;
} Proxy;

static void proxy_clear(Proxy *proxy)
{
    if (proxy->conns)
        g_ptr_array_unref(proxy->conns);
    if (proxy->listener >= 0) {
        close(proxy->listener);
        wire_address_remove(&proxy->address);
    }
    if (proxy->signals >= 0)
        close(proxy->signals);
    wire_control_close(proxy->control);
    wire_rules_free(proxy->context.rules);
    wire_log_free(proxy->context.log);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Proxy, proxy_clear)

/* ----------------------------------------------------------------------- beginning */

static bool parse_options(int argc, char **argv, Options *options, GError **error)
{
    const GOptionEntry entries[] = {
        {"listen", 0, 0, G_OPTION_ARG_FILENAME, &options->listen, "where clients connect",
         "unix:PATH|tcp:127.0.0.1:PORT"},
        {"engine", 0, 0, G_OPTION_ARG_FILENAME, &options->engine, "the engine behind",
         "unix:PATH|tcp:127.0.0.1:PORT"},
        {"control", 0, 0, G_OPTION_ARG_FILENAME, &options->control, "socket for commands", "PATH"},
        {"rules", 0, 0, G_OPTION_ARG_FILENAME, &options->rules, "rules to begin with", "FILE"},
        {"log", 0, 0, G_OPTION_ARG_FILENAME, &options->log, "a JSON line for each request", "FILE"},
        {"with-parent", 0, 0, G_OPTION_ARG_NONE, &options->with_parent,
         "end when standard input does", NULL},
        {"send", 0, 0, G_OPTION_ARG_STRING, &options->send,
         "tell the proxy behind --control, print its answer", "COMMAND"},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "A proxy before a Docker engine that makes faults.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, error))
        return false;
    if (argc > 1)
        return wire_fail(error, "what is \"%s\"? See --help", argv[1]);
    if (!options->control || (!options->send && (!options->listen || !options->engine)))
        return wire_fail(error, "--listen, --engine and --control are needed, or --control and "
                                "--send; see --help");
    return true;
}

static bool load_rules(const char *path, WireRules **ret_rules, GError **error)
{
    json_error_t where;
    if (!path)
        return true;
    json_auto_t *array = json_load_file(path, 0, &where);
    if (!array)
        return wire_fail(error, "%s:%d: %s", path, where.line, where.text);
    if (wire_rules_parse(array, ret_rules, error))
        return true;
    g_prefix_error(error, "%s: ", path);
    return false;
}

/* SIGTERM and SIGINT are read from a descriptor, so that nothing is cut short. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool open_proxy(Proxy *proxy, const Options *options, GError **error)
{
    proxy->conns = g_ptr_array_new_with_free_func((GDestroyNotify)wire_conn_free);
    proxy->watches_stdin = options->with_parent;
    proxy->signals = open_signals();
    return wire_address_parse(options->engine, &proxy->context.engine, error) &&
           wire_address_parse(options->listen, &proxy->address, error) &&
           load_rules(options->rules, &proxy->context.rules, error) &&
           wire_log_open(options->log, &proxy->context.log, error) &&
           wire_control_open(&proxy->context, options->control, &proxy->control, error) &&
           wire_address_listen(&proxy->address, &proxy->listener, error);
}

/* ---------------------------------------------------------------------------- loop */

static void welcome(Proxy *proxy)
{
    int fd = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        g_ptr_array_add(proxy->conns, wire_conn_new(&proxy->context, fd));
}

/* The descriptors of one turn: signals, standard input, the listener, two for each connection,
 * and those of the control socket. */
static void prepare(const Proxy *proxy, GArray *fds, gint64 *wake_us)
{
    const struct pollfd own[] = {
        {.fd = proxy->signals, .events = POLLIN},
        {.fd = proxy->watches_stdin ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = proxy->listener, .events = POLLIN},
    };
    g_array_set_size(fds, 0);
    g_array_append_vals(fds, own, G_N_ELEMENTS(own));
    for (guint i = 0; i < proxy->conns->len; i++) {
        struct pollfd two[2];
        wire_conn_prepare(g_ptr_array_index(proxy->conns, i), two, wake_us);
        g_array_append_vals(fds, two, 2);
    }
    wire_control_prepare(proxy->control, fds);
}

static void wait_for_events(GArray *fds, gint64 wake_us)
{
    struct timespec limit, *until = NULL;
    if (wake_us != G_MAXINT64) {
        gint64 left = MAX(wake_us - g_get_monotonic_time(), 0);
        limit = (struct timespec){left / G_USEC_PER_SEC, left % G_USEC_PER_SEC * 1000};
        until = &limit;
    }
    if (ppoll((struct pollfd *)(void *)fds->data, fds->len, until, NULL) < 0) {
        for (guint i = 0; i < fds->len; i++)
            g_array_index(fds, struct pollfd, i).revents = 0;
    }
}

static bool parent_is_gone(const struct pollfd *p)
{
    char byte;
    return p->revents && read(p->fd, &byte, 1) <= 0;
}

static void step_connections(Proxy *proxy, const struct pollfd *fds)
{
    for (guint i = proxy->conns->len; i-- > 0;) {
        WireConn *conn = g_ptr_array_index(proxy->conns, i);
        wire_conn_step(conn, fds + (gsize)i * 2);
        if (conn->over)
            g_ptr_array_remove_index(proxy->conns, i);
    }
}

static void serve(Proxy *proxy)
{
    g_autoptr(GArray) fds = g_array_new(FALSE, TRUE, sizeof(struct pollfd));
    for (;;) {
        gint64 wake_us = G_MAXINT64;
        prepare(proxy, fds, &wake_us);
        wait_for_events(fds, wake_us);
        const struct pollfd *p = (const struct pollfd *)(void *)fds->data;
        if (p[0].revents || parent_is_gone(&p[1]))
            return;
        guint conns = proxy->conns->len;
        wire_control_step(proxy->control, p + 3 + (gsize)conns * 2);
        step_connections(proxy, p + 3);
        if (p[2].revents)
            welcome(proxy);
    }
}

/* --------------------------------------------------------------------------- client */

/* One command to a proxy that runs, and its answer to standard output. */
static bool tell(const Options *options, GError **error)
{
    g_autofree char *address_text = g_strdup_printf("unix:%s", options->control);
    g_autofree char *line = g_strdup_printf("%s\n", options->send);
    WireAddress address;
    char byte = '\0';
    int fd;
    if (!wire_address_parse(address_text, &address, error) ||
        !wire_address_connect(&address, &fd, error))
        return false;
    fcntl(fd, F_SETFL, 0);
    bool ok = send(fd, line, strlen(line), MSG_NOSIGNAL) == (gssize)strlen(line);
    while (ok && byte != '\n' && (ok = read(fd, &byte, 1) == 1))
        putchar(byte);
    close(fd);
    return ok || wire_fail(error, "%s: no answer", options->control);
}

int main(int argc, char **argv)
{
    g_auto(Options) options = {0};
    g_auto(Proxy) proxy = {.listener = -1, .signals = -1};
    g_autoptr(GError) error = NULL;
    if (!parse_options(argc, argv, &options, &error) ||
        !(options.send ? tell(&options, &error) : open_proxy(&proxy, &options, &error))) {
        fprintf(stderr, "wire-proxy: %s\n", error->message);
        return 2;
    }
    if (options.send)
        return 0;
    g_autofree char *address = wire_address_text(&proxy.address);
    printf("%s\n", address);
    fflush(stdout);
    serve(&proxy);
    return 0;
}
