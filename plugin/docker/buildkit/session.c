#include "buildkit/session.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#define STREAMS_MOST 100
/* Beyond it answers wait until the engine has read some. */
#define OUT_MOST (1u << 20)
#define FRAME_HEAD_BYTES 9

/* One call of the engine. */
typedef struct {
    char *path;
    GByteArray *request;
    bool too_long;
    bool answered;
    SprSecret *answer;
    gsize sent;
} Call;

struct DkrSession {
    DkrServices services;
    nghttp2_session *http;
    GHashTable *calls; /* set of Call: those that are under way, and their owner */
    guint8 *out;       /* what is to be sent, wiped as it goes */
    gsize out_size, out_capacity;
    bool out_failed; /* no memory was left for an answer */
};

static void call_free(void *data)
{
    Call *call = data;
    g_free(call->path);
    g_byte_array_unref(call->request);
    spr_secret_free(call->answer);
    g_free(call);
}

/* ---------------------------------------------------------------------------- out */

/* g_realloc() would leave a copy behind. */
static bool reserve(DkrSession *session, gsize more)
{
    if (session->out_size + more <= session->out_capacity)
        return true;
    gsize capacity = MAX(2 * session->out_capacity, session->out_size + more);
    guint8 *out = g_try_malloc(capacity);
    if (!out)
        return false;
    if (session->out_size > 0)
        memcpy(out, session->out, session->out_size);
    spr_wipe_free(session->out, session->out_capacity);
    session->out = out;
    session->out_capacity = capacity;
    return true;
}

static bool put(DkrSession *session, const void *data, gsize size)
{
    if (!reserve(session, size))
        return false;
    memcpy(session->out + session->out_size, data, size);
    session->out_size += size;
    return true;
}

/* Lets nghttp2 write as long as there is room. */
static void fill(DkrSession *session)
{
    while (session->out_size < OUT_MOST && !session->out_failed) {
        const guint8 *data;
        ssize_t n = nghttp2_session_mem_send(session->http, &data);
        if (n == 0)
            return;
        session->out_failed = n < 0 || !put(session, data, (gsize)n);
    }
}

/* An answer goes straight from its own memory into ours, so that nghttp2 keeps no copy of it. */
static int on_data(nghttp2_session *http, nghttp2_frame *frame, const guint8 *frame_head,
                   size_t length, nghttp2_data_source *source, void *ctx)
{
    DkrSession *session = ctx;
    Call *call = source->ptr;
    if (!put(session, frame_head, FRAME_HEAD_BYTES) ||
        !put(session, spr_secret_data(call->answer) + call->sent, length))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    call->sent += length;
    return 0;
}

/* ------------------------------------------------------------------------- answers */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(guint8 *)name, (guint8 *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

/* How much of the answer goes into the next frame. gRPC's status follows in trailers. */
static ssize_t on_read(nghttp2_session *http, int32_t stream, guint8 *buffer, size_t capacity,
                       guint32 *flags, nghttp2_data_source *source, void *ctx)
{
    Call *call = source->ptr;
    gsize left = spr_secret_size(call->answer) - call->sent, n = MIN(left, capacity);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == left) {
        const nghttp2_nv trailers[] = {header("grpc-status", "0")};
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(http, stream, trailers, 1) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

static int send_answer(nghttp2_session *http, int32_t stream, Call *call)
{
    const nghttp2_nv head[] = {header(":status", "200"),
                               header("content-type", "application/grpc")};
    const nghttp2_data_provider body = {.source = {.ptr = call}, .read_callback = on_read};
    return nghttp2_submit_response(http, stream, head, G_N_ELEMENTS(head), &body);
}

/* A refusal is a head and nothing behind it. */
static int send_refusal(nghttp2_session *http, int32_t stream, DkrGrpcStatus status)
{
    char number[12];
    g_snprintf(number, sizeof number, "%d", status);
    const nghttp2_nv head[] = {header(":status", "200"), header("content-type", "application/grpc"),
                               header("grpc-status", number)};
    return nghttp2_submit_response(http, stream, head, G_N_ELEMENTS(head), NULL);
}

static int answer(DkrSession *session, int32_t stream, Call *call)
{
    DkrProtoBytes request = {call->request->data, call->request->len};
    DkrGrpcStatus status = DKR_GRPC_RESOURCE_EXHAUSTED;
    if (!call->too_long)
        status = dkr_service_answer(&session->services, call->path ? call->path : "", request,
                                    &call->answer);
    call->answered = true;
    return status == DKR_GRPC_OK ? send_answer(session->http, stream, call)
                                 : send_refusal(session->http, stream, status);
}

/* ------------------------------------------------------------------ what comes in */

static Call *call_of(nghttp2_session *http, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(http, stream);
}

static int on_begin(nghttp2_session *http, const nghttp2_frame *frame, void *ctx)
{
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    DkrSession *session = ctx;
    Call *call = g_new0(Call, 1);
    call->request = g_byte_array_new();
    g_hash_table_add(session->calls, call);
    nghttp2_session_set_stream_user_data(http, frame->hd.stream_id, call);
    return 0;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const guint8 *name,
                     size_t name_size, const guint8 *value, size_t value_size, guint8 flags,
                     void *ctx)
{
    Call *call = call_of(http, frame->hd.stream_id);
    bool is_path = name_size == 5 && memcmp(name, ":path", 5) == 0;
    if (call && is_path && !call->path)
        call->path = g_strndup((const char *)value, value_size);
    return 0;
}

static int on_chunk(nghttp2_session *http, guint8 flags, int32_t stream, const guint8 *data,
                    size_t size, void *ctx)
{
    Call *call = call_of(http, stream);
    if (!call)
        return 0;
    call->too_long = call->too_long || call->request->len + size > DKR_GRPC_REQUEST_MOST;
    if (!call->too_long)
        g_byte_array_append(call->request, data, (guint)size);
    return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *ctx)
{
    bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!may_end || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    Call *call = call_of(http, frame->hd.stream_id);
    if (!call || call->answered)
        return 0;
    return answer(ctx, frame->hd.stream_id, call) == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_close(nghttp2_session *http, int32_t stream, guint32 code, void *ctx)
{
    DkrSession *session = ctx;
    Call *call = call_of(http, stream);
    nghttp2_session_set_stream_user_data(http, stream, NULL);
    if (call)
        g_hash_table_remove(session->calls, call);
    return 0;
}

/* ------------------------------------------------------------------------- session */

static int start_http(DkrSession *session)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return NGHTTP2_ERR_NOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_data);
    int rc = nghttp2_session_server_new(&session->http, callbacks, session);
    nghttp2_session_callbacks_del(callbacks);
    return rc;
}

DkrSession *dkr_session_new(const DkrServices *services)
{
    const nghttp2_settings_entry most = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MOST};
    DkrSession *session = g_new0(DkrSession, 1);
    session->services = *services;
    session->calls = g_hash_table_new_full(NULL, NULL, call_free, NULL);
    if (start_http(session) != 0 ||
        nghttp2_submit_settings(session->http, NGHTTP2_FLAG_NONE, &most, 1) != 0) {
        dkr_session_free(session);
        return NULL;
    }
    return session;
}

void dkr_session_free(DkrSession *session)
{
    if (!session)
        return;
    nghttp2_session_del(session->http); /* tells of no stream any more */
    g_hash_table_unref(session->calls);
    spr_wipe_free(session->out, session->out_capacity);
    g_free(session);
}

bool dkr_session_feed(DkrSession *session, const void *data, gsize size, GError **error)
{
    ssize_t n = nghttp2_session_mem_recv(session->http, data, size);
    if (n < 0 || (gsize)n != size)
        return spr_fail(error, SPR_E_IO, "bad-session", "the engine speaks no HTTP/2: %s",
                        n < 0 ? nghttp2_strerror((int)n) : "bytes are left over");
    fill(session);
    if (session->out_failed || !nghttp2_session_want_read(session->http))
        return spr_fail(error, SPR_E_IO, "bad-session", "the session of the build is over");
    return true;
}

void dkr_session_pending(DkrSession *session, const void **ret_data, gsize *ret_size)
{
    fill(session);
    *ret_data = session->out;
    *ret_size = session->out_size;
}

void dkr_session_sent(DkrSession *session, gsize size)
{
    gsize left = session->out_size - size;
    if (size == 0)
        return;
    memmove(session->out, session->out + size, left);
    explicit_bzero(session->out + left, size);
    session->out_size = left;
}
