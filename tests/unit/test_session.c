/* The session against a client of HTTP/2 that does what an engine does. */
#include "buildkit/session.h"

#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

#define SECRETS "/moby.buildkit.secrets.v1.Secrets/GetSecret"
#define LOGINS "/moby.filesync.v1.Auth/Credentials"
#define HEALTH "/grpc.health.v1.Health/Check"

typedef struct {
    GByteArray *body;
    char *grpc_status;
    bool ended;
} Reply;

typedef struct {
    DkrSession *session;
    nghttp2_session *http;
    GPtrArray *values; /* name, SprSecret */
    GPtrArray *replies;
    gsize piece; /* bytes that reach the other side at once */
} Engine;

/* --------------------------------------------------------------------------- services */

static bool give_secret(void *ctx, const char *id, const SprSecret **ret_value)
{
    Engine *engine = ctx;
    for (guint i = 0; i < engine->values->len; i += 2) {
        if (strcmp(engine->values->pdata[i], id) == 0) {
            *ret_value = engine->values->pdata[i + 1];
            return true;
        }
    }
    return false;
}

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    if (strcmp(registry, "registry.example") != 0)
        return false;
    *ret_user = spr_secret_new("me", 2);
    *ret_password = spr_secret_new("pass", 4);
    return true;
}

/* ----------------------------------------------------------------------------- client */

static Reply *reply_of(nghttp2_session *http, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(http, stream);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    Reply *reply = reply_of(http, frame->hd.stream_id);
    if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        reply->grpc_status = g_strndup((const char *)value, value_size);
    return 0;
}

static int on_chunk(nghttp2_session *http, uint8_t flags, int32_t stream, const uint8_t *data,
                    size_t size, void *ctx)
{
    g_byte_array_append(reply_of(http, stream)->body, data, (guint)size);
    return 0;
}

static int on_close(nghttp2_session *http, int32_t stream, uint32_t code, void *ctx)
{
    reply_of(http, stream)->ended = true;
    return 0;
}

static Engine *engine_new(void)
{
    Engine *engine = g_new0(Engine, 1);
    nghttp2_session_callbacks *callbacks;
    DkrServices services = {.ctx = engine, .secret = give_secret, .login = give_login};
    engine->values = g_ptr_array_new();
    engine->replies = g_ptr_array_new();
    engine->piece = 1000;
    engine->session = dkr_session_new(&services);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&engine->http, callbacks, engine);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(engine->http, NGHTTP2_FLAG_NONE, NULL, 0);
    return engine;
}

static void engine_free(Engine *engine)
{
    nghttp2_session_del(engine->http);
    dkr_session_free(engine->session);
    for (guint i = 1; i < engine->values->len; i += 2)
        spr_secret_free(engine->values->pdata[i]);
    for (guint i = 0; i < engine->replies->len; i++) {
        Reply *reply = engine->replies->pdata[i];
        g_byte_array_unref(reply->body);
        g_free(reply->grpc_status);
        g_free(reply);
    }
    g_ptr_array_unref(engine->values);
    g_ptr_array_unref(engine->replies);
    g_free(engine);
}

static void know(Engine *engine, const char *name, const void *value, gsize size)
{
    g_ptr_array_add(engine->values, (char *)name);
    g_ptr_array_add(engine->values, spr_secret_new(value, size));
}

/* Moves bytes both ways until neither side has any. */
static void exchange(Engine *engine)
{
    for (bool moved = true; moved;) {
        const uint8_t *data;
        const void *answer;
        gsize size;
        ssize_t n = nghttp2_session_mem_send(engine->http, &data);
        cr_assert(n >= 0);
        for (gsize at = 0; at < (gsize)n; at += engine->piece)
            cr_assert(dkr_session_feed(engine->session, data + at,
                                       MIN(engine->piece, (gsize)n - at), NULL));
        dkr_session_pending(engine->session, &answer, &size);
        size = MIN(size, engine->piece);
        if (size > 0)
            cr_assert_eq(nghttp2_session_mem_recv(engine->http, answer, size), (ssize_t)size);
        dkr_session_sent(engine->session, size);
        moved = n > 0 || size > 0;
    }
}

static ssize_t read_request(nghttp2_session *http, int32_t stream, uint8_t *buffer, size_t capacity,
                            uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    GByteArray *rest = source->ptr;
    gsize n = MIN(capacity, rest->len);
    if (n > 0) /* else there may be no data at all */
        memcpy(buffer, rest->data, n);
    g_byte_array_remove_range(rest, 0, (guint)n);
    if (rest->len == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        g_byte_array_unref(rest);
    }
    return (ssize_t)n;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

/* Begins a call with these bytes as its body. */
static Reply *call_raw(Engine *engine, const char *path, const void *body, gsize size)
{
    Reply *reply = g_new0(Reply, 1);
    GByteArray *request = g_byte_array_new();
    nghttp2_nv head[] = {nv(":method", "POST"),
                         nv(":scheme", "http"),
                         nv(":path", path),
                         nv(":authority", "localhost"),
                         nv("content-type", "application/grpc"),
                         nv("te", "trailers")};
    nghttp2_data_provider data = {.source = {.ptr = request}, .read_callback = read_request};
    g_byte_array_append(request, body, (guint)size);
    reply->body = g_byte_array_new();
    g_ptr_array_add(engine->replies, reply);
    nghttp2_submit_request(engine->http, NULL, head, G_N_ELEMENTS(head), &data, reply);
    return reply;
}

/* One message whose field 1 is text. */
static Reply *call(Engine *engine, const char *path, const char *text)
{
    guint8 bytes[256] = {0};
    gsize size = text ? dkr_proto_bytes_size(strlen(text)) : 0;
    bytes[4] = (guint8)size;
    if (text)
        dkr_proto_put_bytes(bytes + 5, 1, text, strlen(text));
    return call_raw(engine, path, bytes, size + 5);
}

static void expect_status(const Reply *reply, const char *status)
{
    cr_expect(reply->ended);
    cr_expect_str_eq(reply->grpc_status ? reply->grpc_status : "none", status);
}

/* The body is one message with this as its field. */
static void expect_field(const Reply *reply, guint32 number, const void *value, gsize size)
{
    DkrProtoBytes field = {NULL, 0};
    expect_status(reply, "0");
    cr_assert_geq(reply->body->len, 5);
    guint8 *p = reply->body->data;
    gsize length = (gsize)p[1] << 24 | (gsize)p[2] << 16 | (gsize)p[3] << 8 | p[4];
    cr_assert_eq(length, reply->body->len - 5);
    cr_assert(dkr_proto_find_bytes((DkrProtoBytes){p + 5, length}, number, &field));
    cr_assert_eq(field.size, size);
    cr_expect(memcmp(field.data, value, size) == 0);
}

/* ------------------------------------------------------------------------------ tests */

Test(session, says_that_it_is_well)
{
    Engine *engine = engine_new();
    Reply *reply = call(engine, HEALTH, NULL);
    exchange(engine);
    expect_status(reply, "0");
    cr_expect_arr_eq(reply->body->data, "\0\0\0\0\2\x08\x01", 7);
    engine_free(engine);
}

Test(session, gives_secrets_in_any_pieces)
{
    for (gsize piece = 1; piece < 400; piece = piece * 3 + 1) {
        Engine *engine = engine_new();
        engine->piece = piece;
        know(engine, "TOKEN", "val\0ue", 6);
        know(engine, "EMPTY", "", 0);
        Reply *token = call(engine, SECRETS, "TOKEN"), *empty = call(engine, SECRETS, "EMPTY");
        Reply *missing = call(engine, SECRETS, "OTHER");
        exchange(engine);
        expect_field(token, 1, "val\0ue", 6);
        expect_status(empty, "0");
        cr_expect_arr_eq(empty->body->data, "\0\0\0\0\0", 5);
        expect_status(missing, "5");
        engine_free(engine);
    }
}

Test(session, gives_secrets_of_any_size_exactly)
{
    static const gsize sizes[] = {1, 127, 128, 16383, 16384, 65535, 200000, 500 * 1024};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        Engine *engine = engine_new();
        g_autofree guint8 *value = g_malloc(sizes[i]);
        for (gsize at = 0; at < sizes[i]; at++)
            value[at] = (guint8)(at * 31 + at / 251);
        know(engine, "BIG", value, sizes[i]);
        Reply *reply = call(engine, SECRETS, "BIG"), *other = call(engine, HEALTH, NULL);
        exchange(engine);
        expect_field(reply, 1, value, sizes[i]);
        expect_status(other, "0");
        engine_free(engine);
    }
}

Test(session, gives_logins_and_none_where_there_is_none)
{
    Engine *engine = engine_new();
    Reply *known = call(engine, LOGINS, "registry.example");
    Reply *unknown = call(engine, LOGINS, "docker.io");
    exchange(engine);
    expect_field(known, 1, "me", 2);
    expect_field(known, 2, "pass", 4);
    expect_status(unknown, "0");
    cr_expect_eq(unknown->body->len, 5);
    engine_free(engine);
}

Test(session, refuses_the_rest_politely)
{
    static const guint8 compressed[] = {1, 0, 0, 0, 0}, cut[] = {0, 0, 0, 0, 9, 0x0a},
                        no_field[] = {0, 0, 0, 0, 2, 0x0a, 0x05};
    Engine *engine = engine_new();
    g_autofree guint8 *long_body = g_malloc0(DKR_GRPC_REQUEST_MOST + 1);
    Reply *unknown = call(engine, "/moby.filesync.v1.FileSync/DiffCopy", NULL);
    Reply *flagged = call_raw(engine, SECRETS, compressed, sizeof compressed);
    Reply *short_one = call_raw(engine, SECRETS, cut, sizeof cut);
    Reply *malformed = call_raw(engine, SECRETS, no_field, sizeof no_field);
    Reply *empty = call_raw(engine, SECRETS, "", 0);
    Reply *too_long = call_raw(engine, SECRETS, long_body, DKR_GRPC_REQUEST_MOST + 1);
    exchange(engine);
    expect_status(unknown, "12");
    expect_status(flagged, "13");
    expect_status(short_one, "13");
    expect_status(malformed, "5");
    expect_status(empty, "13");
    expect_status(too_long, "8");
    Reply *after = call(engine, HEALTH, NULL);
    exchange(engine);
    expect_status(after, "0");
    engine_free(engine);
}

Test(session, a_stream_that_is_cancelled_ends_alone)
{
    Engine *engine = engine_new();
    g_autofree guint8 *value = g_malloc0(300000);
    know(engine, "BIG", value, 300000);
    Reply *reply = call(engine, SECRETS, "BIG");
    const uint8_t *data;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(engine->http, &data)) > 0)
        cr_assert(dkr_session_feed(engine->session, data, (gsize)n, NULL));
    nghttp2_submit_rst_stream(engine->http, NGHTTP2_FLAG_NONE, 1, NGHTTP2_CANCEL);
    exchange(engine);
    cr_expect(reply->ended);
    Reply *after = call(engine, HEALTH, NULL);
    exchange(engine);
    expect_status(after, "0");
    engine_free(engine);
}

Test(session, what_is_no_http_ends_it)
{
    Engine *engine = engine_new();
    g_autoptr(GError) error = NULL;
    cr_expect_not(dkr_session_feed(engine->session, "GET / HTTP/1.1\r\n\r\n", 18, &error));
    cr_expect(spr_error_is(error, SPR_E_IO, "bad-session"));
    engine_free(engine);
}
