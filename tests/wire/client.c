#include "wire/client.h"

#include "wire/address.h"
#include "wire/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS (10 * 1000)
#define TICK_US (10 * 1000)

struct WireClient {
    char *folder;
    char *host;
    GPid pid;
    int stdin_fd; /* the proxy ends when it closes */
    int control_fd;
    GString *received;
};

/* Up to the next line's end. */
static bool read_line(int fd, GString *received, char **ret_line, GError **error)
{
    for (;;) {
        char buffer[4096];
        char *end = strchr(received->str, '\n');
        if (end) {
            *ret_line = g_strndup(received->str, (gsize)(end - received->str));
            g_string_erase(received, 0, end + 1 - received->str);
            return true;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, PATIENCE_MS);
        gssize n = ready > 0 ? read(fd, buffer, sizeof buffer) : 0;
        if (ready < 0 || (n < 0 && errno == EINTR))
            continue;
        if (n <= 0)
            return wire_fail(error, "wire-proxy %s", ready == 0 ? "does not answer" : "has ended");
        g_string_append_len(received, buffer, n);
    }
}

/* ----------------------------------------------------------------------- beginning */

static bool spawn(WireClient *client, const char *program, const char *engine, const char *listen,
                  int *ret_stdout, GError **error)
{
    g_autofree char *own = g_strdup_printf("unix:%s/engine.sock", client->folder);
    g_autofree char *control = g_strdup_printf("%s/control.sock", client->folder);
    const char *argv[] = {program,     "--listen", listen ? listen : own, "--engine", engine,
                          "--control", control,    "--with-parent",       NULL};
    return g_spawn_async_with_pipes(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL,
                                    NULL, &client->pid, &client->stdin_fd, ret_stdout, NULL, error);
}

/* It tells its address once it listens. */
static bool wait_until_ready(WireClient *client, int stdout_fd, GError **error)
{
    g_autoptr(GString) received = g_string_new(NULL);
    g_autofree char *control = g_strdup_printf("unix:%s/control.sock", client->folder);
    WireAddress address;
    return read_line(stdout_fd, received, &client->host, error) &&
           wire_address_parse(control, &address, error) &&
           wire_address_connect(&address, &client->control_fd, error) &&
           fcntl(client->control_fd, F_SETFL, 0) == 0;
}

static bool start(WireClient *client, const char *program, const char *engine, const char *listen,
                  GError **error)
{
    int stdout_fd;
    client->folder = g_dir_make_tmp("wire-XXXXXX", error);
    if (!client->folder || !spawn(client, program, engine, listen, &stdout_fd, error))
        return false;
    bool ok = wait_until_ready(client, stdout_fd, error);
    close(stdout_fd);
    return ok;
}

bool wire_client_start(const char *program, const char *engine, const char *listen,
                       WireClient **ret_client, GError **error)
{
    WireClient *client = g_new0(WireClient, 1);
    client->stdin_fd = client->control_fd = -1;
    client->received = g_string_new(NULL);
    if (start(client, program, engine, listen, error)) {
        *ret_client = client;
        return true;
    }
    wire_client_stop(client);
    return false;
}

/* --------------------------------------------------------------------------- ending */

static bool wait_for_end(GPid pid)
{
    int status = 0;
    for (gint64 waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += TICK_US) {
        if (waited > PATIENCE_MS * 1000) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        g_usleep(TICK_US);
    }
    if (status != 0)
        fprintf(stderr, "wire-proxy ended with wait status 0x%x\n", status);
    return status == 0;
}

bool wire_client_stop(WireClient *client)
{
    bool ok = true;
    if (!client)
        return true;
    if (client->pid > 0) {
        kill(client->pid, SIGTERM);
        ok = wait_for_end(client->pid);
    }
    if (client->stdin_fd >= 0)
        close(client->stdin_fd);
    if (client->control_fd >= 0)
        close(client->control_fd);
    if (client->folder && rmdir(client->folder) < 0) {
        fprintf(stderr, "wire-proxy left something in %s\n", client->folder);
        ok = false;
    }
    g_string_free(client->received, TRUE);
    g_free(client->folder);
    g_free(client->host);
    g_free(client);
    return ok;
}

const char *wire_client_host(const WireClient *client)
{
    return client->host;
}

/* ------------------------------------------------------------------------- commands */

static bool send_line(WireClient *client, const char *line, GError **error)
{
    while (*line) {
        gssize n = send(client->control_fd, line, strlen(line), MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return wire_fail(error, "wire-proxy: %s", g_strerror(errno));
        line += MAX(n, 0);
    }
    return true;
}

/* Takes over value. */
static bool ask(WireClient *client, const char *command, json_t *value, json_t **ret_answer,
                GError **error)
{
    json_auto_t *object = json_pack("{s:o}", command, value);
    char *text = json_dumps(object, JSON_COMPACT);
    g_autofree char *line = g_strdup_printf("%s\n", text);
    g_autofree char *reply = NULL;
    free(text);
    if (!send_line(client, line, error) ||
        !read_line(client->control_fd, client->received, &reply, error))
        return false;
    json_auto_t *answer = json_loads(reply, 0, NULL);
    if (!json_is_true(json_object_get(answer, "ok")))
        return wire_fail(error, "wire-proxy: %s",
                         json_string_value(json_object_get(answer, "error")));
    if (ret_answer)
        *ret_answer = json_incref(answer);
    return true;
}

bool wire_client_set(WireClient *client, const char *rules, GError **error)
{
    json_error_t where;
    json_t *value = json_loads(rules, 0, &where);
    if (!value)
        return wire_fail(error, "rules: line %d: %s", where.line, where.text);
    return ask(client, "set", value, NULL, error);
}

bool wire_client_clear(WireClient *client, GError **error)
{
    return ask(client, "clear", json_true(), NULL, error);
}

bool wire_client_forget(WireClient *client, GError **error)
{
    return ask(client, "forget", json_true(), NULL, error);
}

bool wire_client_count(WireClient *client, const char *request, guint *ret_count, GError **error)
{
    json_auto_t *answer = NULL;
    if (!ask(client, "count", json_string(request), &answer, error))
        return false;
    *ret_count = (guint)json_integer_value(json_object_get(answer, "count"));
    return true;
}

bool wire_client_log(WireClient *client, json_t **ret_log, GError **error)
{
    json_auto_t *answer = NULL;
    if (!ask(client, "log", json_true(), &answer, error))
        return false;
    *ret_log = json_incref(json_object_get(answer, "log"));
    return true;
}
