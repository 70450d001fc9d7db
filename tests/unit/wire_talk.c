#include "wire_talk.h"

#include <criterion/criterion.h>

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/address.h"

WireClient *engine;
WireClient *proxy;

WireClient *start(const char *behind, const char *listen)
{
    g_autoptr(GError) error = NULL;
    WireClient *client = NULL;
    cr_assert(wire_client_start(WIRE_PROXY, behind, listen, &client, &error), "%s",
              error ? error->message : "");
    return client;
}

void set(WireClient *client, const char *rules)
{
    g_autoptr(GError) error = NULL;
    cr_assert(wire_client_set(client, rules, &error), "%s", error ? error->message : "");
}

guint count(WireClient *client, const char *request)
{
    guint n = 0;
    cr_assert(wire_client_count(client, request, &n, NULL));
    return n;
}

void talk_setup(void)
{
    engine = start(NO_ENGINE, NULL);
    proxy = start(wire_client_host(engine), NULL);
    set(engine, "[{\"do\":\"answer\",\"body\":\"0123456789\"}]");
}

void talk_teardown(void)
{
    cr_assert(wire_client_stop(proxy));
    cr_assert(wire_client_stop(engine));
}

int dial(const WireClient *client)
{
    WireAddress address;
    int fd = -1;
    cr_assert(wire_address_parse(wire_client_host(client), &address, NULL));
    cr_assert(wire_address_connect(&address, &fd, NULL));
    return fd;
}

bool is_quiet(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 0;
}

gssize read_some(int fd, char *buffer, gsize size)
{
    cr_assert_not(is_quiet(fd, PATIENCE_MS), "nothing comes");
    return recv(fd, buffer, size, 0);
}

void put(int fd, const char *text)
{
    cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (gssize)strlen(text));
}

GString *read_all(int fd)
{
    GString *all = g_string_new(NULL);
    char buffer[65536];
    for (gssize n; (n = read_some(fd, buffer, sizeof buffer)) > 0;)
        g_string_append_len(all, buffer, n);
    return all;
}

void read_to(int fd, const char *text)
{
    g_autoptr(GString) all = g_string_new(NULL);
    char byte;
    while (!g_str_has_suffix(all->str, text)) {
        cr_assert_eq(read_some(fd, &byte, 1), 1, "ended behind \"%s\"", all->str);
        g_string_append_c(all, byte);
    }
}

GString *talk(const char *request)
{
    int fd = dial(proxy);
    put(fd, request);
    shutdown(fd, SHUT_WR);
    GString *answer = read_all(fd);
    close(fd);
    return answer;
}

void body_is(const char *request, const char *expected)
{
    g_autoptr(GString) answer = talk(request);
    const char *end = strstr(answer->str, "\r\n\r\n");
    cr_assert_not_null(end, "\"%s\"", answer->str);
    cr_assert_str_eq(end + 4, expected);
}

void says(const char *request, const char *expected)
{
    g_autoptr(GString) answer = talk(request);
    cr_assert(strstr(answer->str, expected), "\"%.500s\"", answer->str);
}
