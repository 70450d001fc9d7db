#include "wire/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS_MOST 16
#define LINE_MOST (64u << 20)

typedef struct {
    int fd;
    GString *line;
} Client;

struct WireControl {
    WireContext *context;
    WireAddress address;
    int fd;
    GPtrArray *clients;
};

static void client_free(Client *client)
{
    close(client->fd);
    g_string_free(client->line, TRUE);
    g_free(client);
}

bool wire_control_open(WireContext *context, const char *path, WireControl **ret_control,
                       GError **error)
{
    g_autofree char *text = g_strdup_printf("unix:%s", path);
    WireAddress address;
    int fd;
    if (!wire_address_parse(text, &address, error) || !wire_address_listen(&address, &fd, error))
        return false;
    WireControl *control = g_new0(WireControl, 1);
    control->context = context;
    control->address = address;
    control->fd = fd;
    control->clients = g_ptr_array_new_with_free_func((GDestroyNotify)client_free);
    *ret_control = control;
    return true;
}

void wire_control_close(WireControl *control)
{
    if (!control)
        return;
    close(control->fd);
    wire_address_remove(&control->address);
    g_ptr_array_unref(control->clients);
    g_free(control);
}

/* ------------------------------------------------------------------------ commands */

static bool set_rules(WireContext *context, json_t *rules, json_t *answer, GError **error)
{
    WireRules *parsed;
    if (!wire_rules_parse(rules, &parsed, error))
        return false;
    wire_rules_free(context->rules);
    context->rules = parsed;
    return true;
}

static bool clear(WireContext *context, json_t *value, json_t *answer, GError **error)
{
    g_clear_pointer(&context->rules, wire_rules_free);
    return true;
}

static bool show_log(WireContext *context, json_t *value, json_t *answer, GError **error)
{
    json_object_set_new(answer, "log", wire_log_json(context->log));
    return true;
}

static bool forget(WireContext *context, json_t *value, json_t *answer, GError **error)
{
    wire_log_forget(context->log);
    return true;
}

static bool count(WireContext *context, json_t *value, json_t *answer, GError **error)
{
    if (!json_is_string(value))
        return wire_fail(error, "count takes \"METHOD PATH\"");
    guint found = wire_log_count(context->log, json_string_value(value));
    json_object_set_new(answer, "count", json_integer(found));
    return true;
}

static const struct {
    const char *name;
    bool (*run)(WireContext *context, json_t *value, json_t *answer, GError **error);
} commands[] = {
    {"set", set_rules}, {"clear", clear}, {"log", show_log}, {"forget", forget}, {"count", count},
};

static bool run(WireContext *context, const char *line, json_t *answer, GError **error)
{
    json_error_t where;
    json_auto_t *command = json_loads(line, 0, &where);
    if (!command)
        return wire_fail(error, "no JSON: %s", where.text);
    const char *name = json_object_iter_key(json_object_iter(command));
    for (gsize i = 0; json_object_size(command) == 1 && i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(context, json_object_get(command, name), answer, error);
    }
    return wire_fail(error, "a command is an object with one of set, clear, log, forget, count");
}

char *wire_control_answer(WireContext *context, const char *line)
{
    g_autoptr(GError) error = NULL;
    json_auto_t *answer = json_object();
    bool ok = run(context, line, answer, &error);
    json_object_set_new(answer, "ok", json_boolean(ok));
    if (!ok)
        json_object_set_new(answer, "error", json_string(error->message));
    char *text = json_dumps(answer, JSON_COMPACT);
    char *result = g_strdup_printf("%s\n", text);
    free(text);
    return result;
}

/* ------------------------------------------------------------------------- polling */

void wire_control_prepare(const WireControl *control, GArray *fds)
{
    struct pollfd p = {.fd = control->fd, .events = POLLIN};
    g_array_append_val(fds, p);
    for (guint i = 0; i < CLIENTS_MOST; i++) {
        const Client *client =
            i < control->clients->len ? g_ptr_array_index(control->clients, i) : NULL;
        p.fd = client ? client->fd : -1;
        g_array_append_val(fds, p);
    }
}

/* Answers are small, and a caller waits for them: blocking will do. */
static bool send_text(int fd, const char *text)
{
    while (*text) {
        gssize n = send(fd, text, strlen(text), MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        text += MAX(n, 0);
    }
    return true;
}

/* False when the client is through. */
static bool serve(WireControl *control, Client *client)
{
    char buffer[4096];
    gssize n = recv(client->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0 || client->line->len > LINE_MOST)
        return false;
    g_string_append_len(client->line, buffer, n);
    for (char *end; (end = strchr(client->line->str, '\n'));) {
        *end = '\0';
        g_autofree char *answer = wire_control_answer(control->context, client->line->str);
        g_string_erase(client->line, 0, end + 1 - client->line->str);
        if (!send_text(client->fd, answer))
            return false;
    }
    return true;
}

static void welcome(WireControl *control)
{
    int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    Client *client = g_new0(Client, 1);
    client->fd = fd;
    client->line = g_string_new(NULL);
    g_ptr_array_add(control->clients, client);
}

void wire_control_step(WireControl *control, const struct pollfd *fds)
{
    for (guint i = control->clients->len; i-- > 0;) {
        if (fds[1 + i].revents && !serve(control, g_ptr_array_index(control->clients, i)))
            g_ptr_array_remove_index(control->clients, i);
    }
    if (fds[0].revents && control->clients->len < CLIENTS_MOST)
        welcome(control);
}
