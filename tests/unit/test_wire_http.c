#include <criterion/criterion.h>

#include <string.h>

#include "wire/http.h"

/* Where a message ends and what is in it, fed in pieces of the given sizes. */
typedef struct {
    bool is_answer;
    bool to_head;
    const char *head;
    const char *rest;    /* behind the head, as on the wire */
    const char *behind;  /* of the next message */
    const char *body;    /* of rest, without framing */
    WireHttpState state; /* at the end */
    WireFraming framing;
} Message;

#define HELLO "Content-Length: 5\r\n\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"

static const Message messages[] = {
    {.head = "GET /_ping HTTP/1.1\r\nHost: d\r\n\r\n", .rest = "", .behind = "GET /x", .body = ""},
    {.head = "POST /a HTTP/1.1\r\ncontent-LENGTH:5\r\n\r\n",
     .rest = "hello",
     .behind = "POST",
     .body = "hello",
     .framing = WIRE_FRAMING_LENGTH},
    {.head = "PUT /a HTTP/1.1\r\n" CHUNKED,
     .rest = "5\r\nhello\r\n0\r\n\r\n",
     .behind = "G",
     .body = "hello",
     .framing = WIRE_FRAMING_CHUNKED},
    {.is_answer = true,
     .head = "HTTP/1.1 200 OK\r\n" HELLO,
     .rest = "he\r\nl",
     .behind = "HTTP/",
     .body = "he\r\nl",
     .framing = WIRE_FRAMING_LENGTH},
    {.is_answer = true,
     .head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
     .rest = "",
     .behind = "HTTP",
     .body = "",
     .framing = WIRE_FRAMING_LENGTH},
    {.is_answer = true,
     .head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n",
     .rest = "1;x=y\r\nh\r\nA\r\n0123456789\r\n000\r\nX-Trailer: 1\r\nY: 2\r\n\r\n",
     .behind = "HTTP/1.1",
     .body = "h0123456789",
     .framing = WIRE_FRAMING_CHUNKED},
    {.is_answer = true,
     .head = "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n",
     .rest = "",
     .behind = "HTTP",
     .body = ""},
    {.is_answer = true,
     .head = "HTTP/1.1 100 Continue\r\n\r\n",
     .rest = "",
     .behind = "HTTP/1.1 200 OK\r\n\r\n",
     .body = ""},
    {.is_answer = true,
     .head = "HTTP/1.1 304 Not Modified\r\n" HELLO,
     .rest = "",
     .behind = "H",
     .body = ""},
    {.is_answer = true,
     .to_head = true,
     .head = "HTTP/1.1 200 OK\r\n" HELLO,
     .rest = "",
     .behind = "HTTP",
     .body = ""},
    {.is_answer = true,
     .head = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n\r\n",
     .rest = "\r\n\r\nHTTP/1.1 raw",
     .behind = "",
     .body = "\r\n\r\nHTTP/1.1 raw",
     .state = WIRE_HTTP_TO_END,
     .framing = WIRE_FRAMING_CLOSE},
    {.is_answer = true,
     .head = "HTTP/1.0 200 OK\r\nX: 1\r\n\r\n",
     .rest = "to the end",
     .behind = "",
     .body = "to the end",
     .state = WIRE_HTTP_TO_END,
     .framing = WIRE_FRAMING_CLOSE},
};

/* Feeds one piece, in as many steps as the parser wants. */
static gsize feed(WireHttp *http, const char *data, gsize size, GByteArray *body)
{
    gsize used = 0, n;
    while (used < size &&
           (n = wire_http_feed(http, (const guint8 *)data + used, size - used, body)) > 0)
        used += n;
    return used;
}

static void check(const Message *m, gsize first, gsize step)
{
    g_autofree char *all = g_strconcat(m->head, m->rest, m->behind, NULL);
    gsize size = strlen(all), own = strlen(m->head) + strlen(m->rest), used = 0;
    g_autoptr(GByteArray) body = g_byte_array_new();
    WireHttpState end = m->state ? m->state : WIRE_HTTP_DONE;
    WireHttp http;
    wire_http_init(&http, m->is_answer, m->to_head);
    for (gsize at = 0, n = MIN(first, size); at < size; at += n, n = MIN(step, size - at))
        used += feed(&http, all + at, n, body);
    cr_assert_eq(used, own, "%.20s..., cut at %zu: %zu bytes", m->head, first, used);
    cr_assert_eq(http.state, end, "%.20s..., cut at %zu", m->head, first);
    cr_assert_eq(http.framing, m->framing);
    cr_assert_eq(http.head->len, strlen(m->head));
    cr_assert_arr_eq(http.head->data, m->head, http.head->len);
    cr_assert_eq(body->len, strlen(m->body), "%.20s..., cut at %zu", m->head, first);
    cr_assert(body->len == 0 || memcmp(body->data, m->body, body->len) == 0);
    cr_assert_eq(http.body_size, body->len);
    wire_http_clear(&http);
}

Test(wire_http, finds_the_end_of_a_message_wherever_it_is_cut)
{
    for (gsize i = 0; i < G_N_ELEMENTS(messages); i++) {
        gsize size = strlen(messages[i].head) + strlen(messages[i].rest);
        for (gsize cut = 1; cut <= size; cut++)
            check(&messages[i], cut, 1u << 20);
    }
}

Test(wire_http, finds_it_in_pieces_of_one_seven_and_thirteen_bytes)
{
    static const gsize steps[] = {1, 7, 13};
    for (gsize i = 0; i < G_N_ELEMENTS(messages); i++) {
        for (gsize s = 0; s < G_N_ELEMENTS(steps); s++)
            check(&messages[i], steps[s], steps[s]);
    }
}

Test(wire_http, stops_behind_the_head_so_that_a_caller_sees_it)
{
    static const char text[] =
        "POST /v1.41/exec/1/start?x=1 HTTP/1.1\r\nUpgrade: tcp\r\n" HELLO "hello";
    WireHttp http;
    wire_http_init(&http, false, false);
    gsize n = wire_http_feed(&http, (const guint8 *)text, strlen(text), NULL);
    cr_assert_eq(n, strlen(text) - 5);
    cr_assert_eq(http.state, WIRE_HTTP_BODY);
    cr_assert_str_eq(http.method, "POST");
    cr_assert_str_eq(http.target, "/v1.41/exec/1/start?x=1");
    cr_assert(http.wants_upgrade);
    wire_http_clear(&http);
}

Test(wire_http, tells_the_status_of_an_answer_without_a_reason)
{
    static const char text[] = "HTTP/1.1 500\r\nX: 1\r\n\r\n";
    WireHttp http;
    wire_http_init(&http, true, false);
    wire_http_feed(&http, (const guint8 *)text, strlen(text), NULL);
    cr_assert_eq(http.status, 500);
    wire_http_clear(&http);
}

Test(wire_http, takes_a_body_of_more_than_four_gibibytes)
{
    static const char text[] = "PUT / HTTP/1.1\r\nContent-Length: 4294967301\r\n\r\n";
    g_autofree guint8 *block = g_malloc0(1u << 20);
    WireHttp http;
    wire_http_init(&http, false, false);
    wire_http_feed(&http, (const guint8 *)text, strlen(text), NULL);
    for (int i = 0; i < 4096; i++)
        cr_assert_eq(wire_http_feed(&http, block, 1u << 20, NULL), 1u << 20);
    cr_assert_eq(wire_http_feed(&http, block, 1u << 20, NULL), 5);
    cr_assert_eq(http.state, WIRE_HTTP_DONE);
    wire_http_clear(&http);
}

static void is_bad(bool is_answer, const char *text, gsize step)
{
    WireHttp http;
    wire_http_init(&http, is_answer, false);
    for (gsize at = 0; at < strlen(text); at += step)
        feed(&http, text + at, MIN(step, strlen(text) - at), NULL);
    cr_assert_eq(http.state, WIRE_HTTP_BAD, "%s", text);
    wire_http_clear(&http);
}

Test(wire_http, tells_what_is_no_http)
{
    for (gsize step = 1; step < 50; step += 3) {
        is_bad(false, "\x16\x03\x01\x02", step);
        is_bad(false, "GET /\r\n\r\n", step);
        is_bad(false, "hello", step);
        is_bad(true, "SSH-2.0-OpenSSH", step);
        is_bad(true, "HTTP/1.1 abc\r\n\r\n", step);
        is_bad(true, "HTTP/1.1 200 OK\r\n" CHUNKED "xyz\r\nabc", step);
    }
}

Test(wire_http, finds_a_header_by_its_whole_name_in_any_case)
{
    static const char text[] = "GET /a:b HTTP/1.1\r\nX-Host: no\r\nhOST:  d \r\n\r\n";
    g_autoptr(GByteArray) head = g_byte_array_new();
    g_byte_array_append(head, (const guint8 *)text, (guint)strlen(text));
    g_autofree char *host = wire_http_header(head, "Host");
    cr_assert_str_eq(host, "d");
    cr_assert_null(wire_http_header(head, "GET /a"));
    cr_assert_null(wire_http_header(head, "Hos"));
}
