/* wire-proxy without faults, its commands and its log. */
#include <criterion/criterion.h>

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/address.h"
#include "wire_talk.h"

TestSuite(wire_proxy, .init = talk_setup, .fini = talk_teardown, .timeout = 60);

/* -------------------------------------------------------------------------- passing */

Test(wire_proxy, passes_an_answer_byte_for_byte)
{
    int fd = dial(engine);
    put(fd, GET("/a"));
    shutdown(fd, SHUT_WR);
    g_autoptr(GString) direct = read_all(fd);
    g_autoptr(GString) through = talk(GET("/a"));
    close(fd);
    cr_assert_gt(direct->len, 50);
    cr_assert_str_eq(through->str, direct->str);
}

Test(wire_proxy, keeps_a_connection_for_many_requests_also_sent_at_once)
{
    int fd = dial(proxy);
    for (int i = 0; i < 3; i++) {
        put(fd, GET("/one"));
        read_to(fd, "0123456789");
    }
    put(fd, POST_HELLO("/two") GET("/three") POST_HELLO("/two"));
    for (int i = 0; i < 3; i++)
        read_to(fd, "0123456789");
    close(fd);
    cr_assert_eq(count(engine, "GET /one"), 3);
    cr_assert_eq(count(engine, "POST /two"), 2);
    cr_assert_eq(count(proxy, "GET /three"), 1);
}

Test(wire_proxy, finds_the_body_of_a_request_in_chunks)
{
    json_auto_t *log = NULL;
    body_is("PUT /v1.45/a?x=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "0123456789");
    cr_assert(wire_client_log(engine, &log, NULL));
    json_t *entry = json_array_get(log, 0);
    cr_assert_eq(json_integer_value(json_object_get(entry, "body")), 5);
    cr_assert_eq(json_integer_value(json_object_get(entry, "api")), 45);
}

Test(wire_proxy, passes_what_is_no_http_as_it_is)
{
    set(engine, "[]");
    int fd = dial(proxy);
    put(fd, "hello?\n");
    shutdown(fd, SHUT_WR);
    g_autoptr(GString) answer = read_all(fd); /* the engine behind the engine is not there */
    close(fd);
    cr_assert_eq(answer->len, 0);
    cr_assert_eq(count(engine, "?"), 1);
}

/* Answers one upgrade and echoes in upper case; says "bye" at the end of what it is sent. */
static void *echo_once(void *data)
{
    int listener = GPOINTER_TO_INT(data);
    int fd = accept(listener, NULL, NULL);
    char buffer[4096];
    read_to(fd, "\r\n\r\n");
    put(fd, "HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n");
    for (gssize n; (n = read_some(fd, buffer, sizeof buffer)) > 0;) {
        for (gssize i = 0; i < n; i++)
            buffer[i] = g_ascii_toupper(buffer[i]);
        cr_assert_eq(send(fd, buffer, (gsize)n, MSG_NOSIGNAL), n);
    }
    put(fd, "bye");
    close(fd);
    return NULL;
}

Test(wire_proxy, passes_both_directions_of_an_upgrade_and_its_half_close)
{
    WireAddress address;
    int listener;
    cr_assert(wire_address_parse("tcp:127.0.0.1:0", &address, NULL));
    cr_assert(wire_address_listen(&address, &listener, NULL));
    g_autofree char *behind = wire_address_text(&address);
    GThread *thread = g_thread_new("echo", echo_once, GINT_TO_POINTER(listener));
    WireClient *before = start(behind, "tcp:127.0.0.1:0");
    int fd = dial(before);
    put(fd, "POST /exec/1/start HTTP/1.1\r\nUpgrade: tcp\r\n\r\n");
    read_to(fd, "101 UPGRADED\r\nUpgrade: tcp\r\n\r\n");
    put(fd, "GET /not/a/request HTTP/1.1\r\n\r\n");
    read_to(fd, "GET /NOT/A/REQUEST HTTP/1.1\r\n\r\n");
    put(fd, "last");
    shutdown(fd, SHUT_WR);
    g_autoptr(GString) rest = read_all(fd);
    cr_assert_str_eq(rest->str, "LASTbye");
    cr_assert_eq(count(before, "POST /exec/*/start"), 1);
    cr_assert_eq(count(before, "GET"), 0);
    g_thread_join(thread);
    close(fd);
    close(listener);
    cr_assert(wire_client_stop(before));
}

Test(wire_proxy, closes_on_a_client_when_there_is_no_engine)
{
    g_autoptr(GString) answer = NULL;
    set(engine, "[]");
    answer = talk(GET("/a"));
    cr_assert_eq(answer->len, 0);
}

/* ---------------------------------------------------------------- control and log */

Test(wire_proxy, changes_its_rules_while_it_runs)
{
    g_autoptr(GError) error = NULL;
    set(proxy, "[{\"do\":\"answer\",\"body\":\"mine\"}]");
    body_is(GET("/a"), "mine");
    cr_assert_not(wire_client_set(proxy, "[{\"do\":\"answer\",\"bdoy\":\"x\"}]", &error));
    cr_assert(strstr(error->message, "rules[0]: answer has no \"bdoy\""), "%s", error->message);
    body_is(GET("/a"), "mine");
    cr_assert(wire_client_clear(proxy, NULL));
    body_is(GET("/a"), "0123456789");
}

Test(wire_proxy, logs_each_request_without_the_secrets_of_its_query)
{
    json_auto_t *log = NULL;
    g_autofree char *text = NULL;
    says("POST /v1.41/build?t=x&buildargs=%7BTOKEN%3Ahunter2%7D&remote=https://u:hunter2@h HTTP/1.1"
         "\r\nX-Registry-Auth: hunter2\r\nContent-Length: 7\r\n\r\nhunter2",
         "0123456789");
    cr_assert(wire_client_log(proxy, &log, NULL));
    text = json_dumps(log, JSON_COMPACT);
    cr_assert_null(strstr(text, "hunter2"), "%s", text);
    json_t *entry = json_array_get(log, 0);
    cr_assert_str_eq(json_string_value(json_object_get(entry, "path")),
                     "/build?t=x&buildargs=***&remote=***");
    cr_assert_eq(json_integer_value(json_object_get(entry, "status")), 200);
    cr_assert_eq(json_integer_value(json_object_get(entry, "answer")), 10);
    cr_assert_str_eq(json_string_value(json_object_get(entry, "end")), "done");
    cr_assert(wire_client_forget(proxy, NULL));
    cr_assert_eq(count(proxy, "*"), 0);
}

Test(wire_proxy, ends_with_its_parent_and_removes_its_sockets)
{
    int told[2];
    char path[256] = "";
    cr_assert_eq(pipe(told), 0);
    pid_t parent = fork();
    if (parent == 0) {
        const char *host = wire_client_host(start(NO_ENGINE, NULL));
        gssize n = write(told[1], host, strlen(host));
        _exit(n > 0 ? 0 : 1);
    }
    close(told[1]);
    cr_assert_gt(read(told[0], path, sizeof path - 1), 0);
    close(told[0]);
    waitpid(parent, NULL, 0);
    const char *socket_path = path + strlen("unix://");
    for (int i = 0; i < PATIENCE_MS && access(socket_path, F_OK) == 0; i++)
        g_usleep(1000);
    cr_assert_neq(access(socket_path, F_OK), 0);
    g_autofree char *folder = g_path_get_dirname(socket_path);
    rmdir(folder);
}

Test(wire_proxy, never_takes_the_socket_of_somebody_who_listens)
{
    g_autoptr(GError) error = NULL;
    WireClient *second = NULL;
    cr_assert_not(
        wire_client_start(WIRE_PROXY, NO_ENGINE, wire_client_host(engine), &second, &error));
    body_is(GET("/a"), "0123456789");
}
