/* Each fault of wire-proxy, as a client and the engine see it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire_talk.h"

TestSuite(wire_faults, .init = talk_setup, .fini = talk_teardown, .timeout = 60);

Test(wire_faults, splits_into_reads_of_the_sizes_asked_for)
{
    char buffer[4096];
    gsize expected[] = {7, 13};
    set(proxy, "[{\"do\":\"split\",\"sizes\":[7,13]}]");
    int fd = dial(proxy);
    put(fd, GET("/a"));
    for (int i = 0; i < 6; i++)
        cr_assert_eq(read_some(fd, buffer, sizeof buffer), (gssize)expected[i % 2], "read %d", i);
    close(fd);
}

Test(wire_faults, splits_requests_for_the_engine_too)
{
    set(proxy, "[{\"do\":\"split\",\"sizes\":[1],\"direction\":\"both\"}]");
    body_is(POST_HELLO("/a"), "0123456789");
    body_is("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "0123456789");
    cr_assert_eq(count(engine, "/a"), 2);
}

Test(wire_faults, dribbles_the_head_and_gives_the_body_in_one_piece)
{
    char buffer[4096];
    gint64 began = g_get_monotonic_time();
    set(proxy, "[{\"do\":\"split\",\"sizes\":[1],\"gap_ms\":2,\"part\":\"head\"}]");
    int fd = dial(proxy);
    put(fd, GET("/a"));
    for (const char *end = "\r\n\r\n"; *end;) {
        cr_assert_eq(read_some(fd, buffer, sizeof buffer), 1);
        end = *buffer == *end ? end + 1 : "\r\n\r\n";
    }
    cr_assert_gt(g_get_monotonic_time() - began, 50 * 2000);
    cr_assert_eq(read_some(fd, buffer, sizeof buffer), 10);
    close(fd);
}

Test(wire_faults, joins_what_came_in_pieces)
{
    char buffer[4096];
    set(engine, "[{\"do\":\"answer\",\"body\":\"0123456789\"},{\"do\":\"split\",\"sizes\":[9]}]");
    set(proxy, "[{\"do\":\"join\",\"quiet_ms\":300}]");
    int fd = dial(proxy);
    put(fd, GET("/a"));
    gssize n = read_some(fd, buffer, sizeof buffer);
    cr_assert_gt(n, 60);
    cr_assert_arr_eq(buffer + n - 10, "0123456789", 10);
    close(fd);
}

Test(wire_faults, delays_before_the_request_the_answer_and_the_body)
{
    static const char *const places[] = {"request", "answer", "body"};
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *rules =
            g_strdup_printf("[{\"do\":\"delay\",\"ms\":150,\"at\":\"%s\"}]", places[i]);
        gint64 began = g_get_monotonic_time();
        set(proxy, rules);
        body_is(GET("/a"), "0123456789");
        cr_assert_geq(g_get_monotonic_time() - began, 150 * 1000, "%s", places[i]);
    }
}

Test(wire_faults, drops_before_the_engine_sees_the_request)
{
    set(proxy, "[{\"do\":\"drop\",\"at\":\"request\"}]");
    g_autoptr(GString) answer = talk(GET("/a"));
    cr_assert_eq(answer->len, 0);
    cr_assert_eq(count(engine, "/a"), 0);
    cr_assert_eq(count(proxy, "/a"), 1);
}

Test(wire_faults, drops_once_the_engine_has_the_request_or_has_answered_it)
{
    set(proxy, "[{\"do\":\"drop\",\"at\":\"sent\",\"path\":\"/a\"},"
               "{\"do\":\"drop\",\"at\":\"answer\",\"path\":\"/b\"}]");
    g_autoptr(GString) sent = talk(GET("/a"));
    g_autoptr(GString) answered = talk(GET("/b"));
    cr_assert_eq(sent->len + answered->len, 0);
    while (count(engine, "/a") < 1) /* the proxy did not wait for it */
        g_usleep(1000);
    cr_assert_eq(count(engine, "/b"), 1);
}

Test(wire_faults, drops_within_the_body)
{
    set(proxy, "[{\"do\":\"drop\",\"at\":\"body\",\"after\":3}]");
    body_is(GET("/a"), "012");
}

Test(wire_faults, resets_a_tcp_connection)
{
    char buffer[4096];
    WireClient *tcp = start(wire_client_host(engine), "tcp:127.0.0.1:0");
    set(tcp, "[{\"do\":\"drop\",\"at\":\"answer\",\"how\":\"reset\"}]");
    int fd = dial(tcp);
    put(fd, GET("/a"));
    cr_assert_lt(read_some(fd, buffer, sizeof buffer), 0);
    close(fd);
    cr_assert(wire_client_stop(tcp));
}

Test(wire_faults, truncates_a_body_within_a_sound_message)
{
    set(proxy, "[{\"do\":\"truncate\",\"after\":4}]");
    body_is(GET("/a"), "0123");
    says(GET("/a"), "Content-Length: 4\r\n");
    set(engine, "[{\"do\":\"answer\",\"body\":\"0123456789\",\"framing\":\"chunked\"}]");
    body_is(GET("/a"), "4\r\n0123\r\n0\r\n\r\n");
}

Test(wire_faults, rewrites_status_headers_and_bytes)
{
    set(proxy, "[{\"do\":\"rewrite\",\"status\":404,\"reason\":\"Gone Away\","
               "\"headers\":{\"Content-Type\":null,\"X-New\":\"1\"},"
               "\"replace\":[{\"from\":\"345\",\"to\":\"-\"},{\"from\":\"-\",\"to\":\"+++++\"}]}]");
    g_autoptr(GString) answer = talk(GET("/a"));
    cr_assert(g_str_has_prefix(answer->str, "HTTP/1.1 404 Gone Away\r\n"), "%s", answer->str);
    cr_assert_null(strstr(answer->str, "Content-Type"));
    cr_assert(strstr(answer->str, "X-New: 1\r\n"));
    cr_assert(strstr(answer->str, "Content-Length: 12\r\n"));
    cr_assert(g_str_has_suffix(answer->str, "\r\n\r\n012+++++6789"), "%s", answer->str);
}

Test(wire_faults, rewrites_the_framing_of_a_body)
{
    set(proxy, "[{\"do\":\"rewrite\",\"framing\":\"chunked\",\"chunk\":4,"
               "\"trailers\":{\"X-T\":\"1\"},\"path\":\"/chunked\"},"
               "{\"do\":\"rewrite\",\"framing\":\"close\",\"path\":\"/close\"}]");
    body_is(GET("/chunked"), "4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n0\r\nX-T: 1\r\n\r\n");
    says(GET("/close"), "Connection: close\r\n\r\n0123456789");
    g_autoptr(GString) answer = talk(GET("/close"));
    cr_assert_null(strstr(answer->str, "Content-Length"));
}

Test(wire_faults, rewrites_the_head_of_a_request)
{
    set(engine, "[{\"do\":\"answer\",\"status\":101,\"body\":\"raw\"}]");
    set(proxy, "[{\"do\":\"rewrite\",\"status\":200,\"framing\":\"chunked\",\"chunk\":2,"
               "\"request_headers\":{\"Upgrade\":null},\"headers\":{\"Upgrade\":null}}]");
    g_autoptr(GString) answer =
        talk("POST /exec/1/start HTTP/1.1\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n");
    cr_assert(g_str_has_prefix(answer->str, "HTTP/1.1 200 "), "%s", answer->str);
    cr_assert_null(strstr(answer->str, "Upgrade: tcp"));
    cr_assert(g_str_has_suffix(answer->str, "\r\n\r\n2\r\nra\r\n1\r\nw\r\n0\r\n\r\n"), "%s",
              answer->str);
}

Test(wire_faults, answers_in_place_of_the_engine)
{
    set(proxy,
        "[{\"do\":\"answer\",\"status\":500,\"headers\":{\"Content-Type\":\"text/html\"},"
        "\"body\":{\"repeat\":\"<p>\",\"bytes\":10000000},\"interim\":2,\"pad_head\":65536}]");
    g_autoptr(GString) answer = talk(POST_HELLO("/a"));
    const char *end = strstr(answer->str, "\r\n\r\nHTTP/1.1 500");
    cr_assert(g_str_has_prefix(answer->str, "HTTP/1.1 102 "));
    cr_assert_not_null(end);
    end = strstr(end + 4, "\r\n\r\n");
    cr_assert_geq(end - answer->str, 65536);
    cr_assert_eq(answer->len - (gsize)(end + 4 - answer->str), 10000000);
    cr_assert(strstr(answer->str, "Content-Type: text/html\r\n"));
    cr_assert_eq(count(engine, "/a"), 0);
}

Test(wire_faults, answers_with_any_bytes_and_with_a_head_without_end)
{
    set(proxy,
        "[{\"do\":\"answer\",\"raw\":\"gar\\r\\n\\r\\nbage\",\"end\":\"close\","
        "\"path\":\"/raw\"},{\"do\":\"answer\",\"endless_head\":true,\"path\":\"/endless\"}]");
    g_autoptr(GString) raw = talk(GET("/raw"));
    cr_assert_str_eq(raw->str, "gar\r\n\r\nbage");
    int fd = dial(proxy);
    put(fd, GET("/endless"));
    gsize got = 0;
    for (char buffer[65536]; got < 4u << 20;)
        got += (gsize)read_some(fd, buffer, sizeof buffer);
    close(fd);
    body_is(GET("/other"), "0123456789");
}

Test(wire_faults, refuses_an_upload_before_it_has_read_it)
{
    set(proxy, "[{\"do\":\"answer\",\"status\":404,\"at\":\"request\",\"end\":\"close\"}]");
    int fd = dial(proxy);
    char buffer[4096];
    put(fd, "PUT /a HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n");
    read_to(fd, "\r\n\r\n");
    gssize sent = 0;
    while (sent >= 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        poll(&p, 1, PATIENCE_MS);
        sent = send(fd, buffer, sizeof buffer, MSG_NOSIGNAL);
    }
    cr_assert(errno == EPIPE || errno == ECONNRESET);
    close(fd);
}

Test(wire_faults, stalls_and_still_reads)
{
    set(proxy, "[{\"do\":\"stall\",\"path\":\"/never\"},"
               "{\"do\":\"stall\",\"at\":\"body\",\"after\":2,\"path\":\"/half\"}]");
    int fd = dial(proxy), half = dial(proxy);
    put(fd, POST_HELLO("/never"));
    for (int i = 0; i < 100; i++)
        put(fd, "more and more of it that is read and forgotten\n");
    put(half, GET("/half"));
    read_to(half, "\r\n\r\n01");
    cr_assert(is_quiet(fd, 200));
    cr_assert(is_quiet(half, 200));
    close(fd);
    close(half);
    cr_assert_eq(count(engine, "/never"), 0);
    body_is(GET("/other"), "0123456789");
}
