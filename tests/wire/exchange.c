#include "wire/conn.h"

#define WAITING_MOST (256u << 10)

struct WireExchange {
    WireEntry *entry; /* NULL until the request's head is there */
    WireFault *faults[WIRE_DO_COUNT];
    guint applied; /* bits of WireDo: faults behind the answer's head that are done */
    WireShapes request_shapes, answer_shapes;
    WireHttp request, answer;
    bool withheld;        /* the engine gets nothing of it */
    bool client_is_raw;   /* what the client sends goes to the engine as it is */
    bool ignores_client;  /* what the client sends is read and forgotten */
    bool swallows;        /* the client gets no more of the answer */
    bool wraps;           /* a stream is put into chunks */
    bool answered;        /* nothing of the answer is to come */
    GByteArray *gathered; /* body that is changed as a whole, or NULL */
    guint64 passed;       /* bytes behind the answer's head */
};

static const WireFault *fault_at(const WireExchange *x, WireDo what, WireAt at)
{
    const WireFault *fault = x->faults[what];
    return fault && fault->at == at ? fault : NULL;
}

/* -------------------------------------------------------------------- begin and end */

static void shape_part(WireShape *shape, const WireFault *split, const WireFault *join)
{
    if (split)
        *shape = split->shape;
    if (join) {
        shape->join = join->shape.join;
        shape->quiet_us = join->shape.quiet_us;
    }
}

static const WireFault *for_part(const WireFault *fault, bool request, bool head)
{
    bool direction = fault && (request ? fault->on_request : fault->on_answer);
    return direction && (head ? fault->on_head : fault->on_body) ? fault : NULL;
}

static void shape_parts(const WireExchange *x, WireShapes *shapes, bool request)
{
    const WireFault *split = x->faults[WIRE_DO_SPLIT], *join = x->faults[WIRE_DO_JOIN];
    shape_part(&shapes->head, for_part(split, request, true), for_part(join, request, true));
    shape_part(&shapes->body, for_part(split, request, false), for_part(join, request, false));
}

static void begin(WireConn *conn, WireExchange *x, const char *method, const char *target)
{
    WireContext *context = conn->context;
    x->entry = wire_log_begin(context->log, conn->number, method, target);
    wire_rules_apply(context->rules, method, target, x->faults);
    for (int i = 0; i < WIRE_DO_COUNT; i++)
        x->entry->faults |= x->faults[i] ? 1u << i : 0;
    shape_parts(x, &x->request_shapes, true);
    shape_parts(x, &x->answer_shapes, false);
    wire_http_init(&x->answer, true, g_str_equal(method, "HEAD"));
}

static void note_end(WireConn *conn, WireExchange *x, bool cut)
{
    if (!x->entry)
        return;
    x->entry->request_size = x->request.body_size;
    x->entry->answer_size = x->answer.body_size;
    wire_log_end(conn->context->log, g_steal_pointer(&x->entry), cut);
}

static void exchange_free(WireExchange *x)
{
    for (int i = 0; i < WIRE_DO_COUNT; i++)
        wire_fault_unref(x->faults[i]);
    if (x->gathered)
        g_byte_array_unref(x->gathered);
    wire_http_clear(&x->request);
    wire_http_clear(&x->answer);
    g_free(x);
}

void wire_exchange_abandon(WireConn *conn)
{
    WireExchange *x = g_steal_pointer(&conn->exchange);
    if (!x)
        return;
    note_end(conn, x, true);
    exchange_free(x);
}

/* Both sides are through; the client's next request may be here already. */
static void finish_if_over(WireConn *conn, WireExchange *x)
{
    if (!x->answered || x->request.state != WIRE_HTTP_DONE || x->client_is_raw)
        return;
    note_end(conn, x, x->swallows);
    conn->exchange = NULL;
    exchange_free(x);
    if (conn->pending->len > 0) {
        g_autoptr(GByteArray) pending = conn->pending;
        conn->pending = g_byte_array_new();
        wire_exchange_client(conn, pending->data, pending->len);
    }
}

/* ------------------------------------------------------------------- client to engine */

static void to_engine(WireConn *conn, const guint8 *data, gsize size, const WireShape *shape)
{
    if (wire_conn_reach_engine(conn))
        wire_flow_bytes(conn->engine.flow, data, size, shape);
    else
        wire_flow_end(conn->client.flow, WIRE_END_CLOSE);
}

static void answer_in_place(WireConn *conn, WireExchange *x)
{
    const WireFault *answer = x->faults[WIRE_DO_ANSWER];
    if (x->faults[WIRE_DO_DELAY])
        wire_flow_pause(conn->client.flow, x->faults[WIRE_DO_DELAY]->ms);
    wire_flow_answer(conn->client.flow, answer, x->answer.to_head, &x->answer_shapes);
    x->entry->status = answer->status;
    x->answer.body_size = g_bytes_get_size(answer->body);
    x->answered = true;
    x->ignores_client = answer->end != WIRE_END_KEEP;
}

static void forward_head(WireConn *conn, WireExchange *x)
{
    const WireFault *delay = fault_at(x, WIRE_DO_DELAY, WIRE_AT_REQUEST);
    const WireFault *rewrite = x->faults[WIRE_DO_REWRITE];
    g_autoptr(GByteArray) head =
        rewrite && rewrite->request_headers
            ? wire_head_edit(x->request.head, 0, NULL, rewrite->request_headers)
            : g_byte_array_ref(x->request.head);
    if (delay)
        wire_flow_pause(conn->engine.flow, delay->ms);
    to_engine(conn, head->data, head->len, &x->request_shapes.head);
}

static void on_request_head(WireConn *conn, WireExchange *x)
{
    begin(conn, x, x->request.method, x->request.target);
    const WireFault *drop = fault_at(x, WIRE_DO_DROP, WIRE_AT_REQUEST);
    const WireFault *stall = fault_at(x, WIRE_DO_STALL, WIRE_AT_REQUEST);
    x->withheld = drop || stall || x->faults[WIRE_DO_ANSWER];
    x->ignores_client = drop || stall;
    if (drop)
        wire_flow_end(conn->client.flow, drop->end);
    else if (!x->withheld)
        forward_head(conn, x);
    else if (!stall && x->faults[WIRE_DO_ANSWER]->at == WIRE_AT_REQUEST)
        answer_in_place(conn, x);
}

static void on_request_done(WireConn *conn, WireExchange *x)
{
    const WireFault *drop = fault_at(x, WIRE_DO_DROP, WIRE_AT_SENT);
    if (x->withheld && !x->ignores_client && !x->answered)
        answer_in_place(conn, x);
    else if (!x->withheld && drop)
        wire_flow_end(conn->engine.flow, drop->end);
    finish_if_over(conn, x);
}

/* No HTTP: whatever it is, it passes. */
static void on_bad_request(WireConn *conn, WireExchange *x)
{
    begin(conn, x, "?", "?");
    x->client_is_raw = true;
    x->answer.state = WIRE_HTTP_TO_END;
    to_engine(conn, x->request.head->data, x->request.head->len, NULL);
}

/* Bytes behind the request. An engine takes those of an upgrade whenever they come. */
static void take_extra(WireConn *conn, WireExchange *x, const guint8 *data, gsize size)
{
    bool is_raw = x->client_is_raw || (x->request.wants_upgrade && !x->answered);
    if (x->ignores_client)
        return;
    if (is_raw && !x->withheld)
        to_engine(conn, data, size, &x->request_shapes.body);
    else
        g_byte_array_append(conn->pending, data, (guint)size);
}

/* Feeds the request what belongs to it, and returns how much that was. */
static gsize take_request(WireConn *conn, WireExchange *x, const guint8 *data, gsize size)
{
    bool had_head = x->request.state != WIRE_HTTP_HEAD;
    gsize n = wire_http_feed(&x->request, data, size, NULL);
    WireHttpState state = x->request.state;
    if (had_head) {
        if (!x->withheld)
            to_engine(conn, data, n, &x->request_shapes.body);
    } else if (state == WIRE_HTTP_BAD) {
        on_bad_request(conn, x);
    } else if (state != WIRE_HTTP_HEAD) {
        on_request_head(conn, x);
    }
    if (state == WIRE_HTTP_DONE)
        on_request_done(conn, x);
    return n;
}

void wire_exchange_client(WireConn *conn, const guint8 *data, gsize size)
{
    while (size > 0) {
        if (!conn->exchange) {
            conn->exchange = g_new0(WireExchange, 1);
            wire_http_init(&conn->exchange->request, false, false);
        }
        WireExchange *x = conn->exchange;
        if (x->request.state == WIRE_HTTP_DONE || x->request.state == WIRE_HTTP_BAD) {
            take_extra(conn, x, data, size);
            return;
        }
        gsize n = take_request(conn, x, data, size);
        data += n;
        size -= n;
    }
}

void wire_exchange_client_end(WireConn *conn)
{
    WireExchange *x = conn->exchange;
    if (x && !x->withheld && conn->engine.fd >= 0)
        wire_flow_end(conn->engine.flow, WIRE_END_SHUTDOWN);
    else if (x && x->withheld && x->answered)
        return; /* it may still read */
    else
        wire_flow_end(conn->client.flow, WIRE_END_CLOSE);
}

bool wire_exchange_reads_client(const WireConn *conn)
{
    const WireExchange *x = conn->exchange;
    const WireFault *drop = x ? fault_at(x, WIRE_DO_DROP, WIRE_AT_REQUEST) : NULL;
    const WireFault *answer = x && x->answered ? x->faults[WIRE_DO_ANSWER] : NULL;
    if (conn->client.ended || conn->engine.broken || drop)
        return false;
    if (answer && (answer->end == WIRE_END_CLOSE || answer->end == WIRE_END_RESET))
        return false; /* what is left unread makes it a reset */
    return wire_flow_size(conn->engine.flow) < WAITING_MOST && conn->pending->len < WAITING_MOST;
}

/* ------------------------------------------------------------------- engine to client */

static void send_body(WireConn *conn, WireExchange *x, const guint8 *data, gsize size)
{
    const WireShape *shape = &x->answer_shapes.body;
    if (x->swallows || size == 0)
        return;
    x->passed += size;
    if (!x->wraps) {
        wire_flow_bytes(conn->client.flow, data, size, shape);
        return;
    }
    g_autoptr(GByteArray) chunks = g_byte_array_new();
    wire_chunks_append(chunks, data, size, x->faults[WIRE_DO_REWRITE]->chunk);
    wire_flow_bytes(conn->client.flow, chunks->data, chunks->len, shape);
}

/* The fault behind the head that is due next, up to this many bytes of the body. */
static const WireFault *next_body_fault(const WireExchange *x, guint64 until)
{
    static const WireDo kinds[] = {WIRE_DO_DELAY, WIRE_DO_STALL, WIRE_DO_DROP};
    const WireFault *next = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const WireFault *fault = fault_at(x, kinds[i], WIRE_AT_BODY);
        if (fault && !(x->applied & 1u << kinds[i]) && fault->after <= until &&
            (!next || fault->after < next->after))
            next = fault;
    }
    return next;
}

/* Ends or holds the client's flow for good, or for a while. */
static void apply(WireConn *conn, WireExchange *x, const WireFault *fault)
{
    x->applied |= 1u << fault->what;
    if (fault->what == WIRE_DO_DELAY) {
        wire_flow_pause(conn->client.flow, fault->ms);
        return;
    }
    wire_flow_end(conn->client.flow, fault->what == WIRE_DO_STALL ? WIRE_END_STALL : fault->end);
    x->swallows = true;
}

/* Bytes behind the head, as on the wire; none of them, to begin with. */
static void pass_body(WireConn *conn, WireExchange *x, const guint8 *data, gsize size)
{
    const WireFault *fault;
    while (!x->swallows && (fault = next_body_fault(x, x->passed + size))) {
        gsize n = (gsize)(fault->after - MIN(fault->after, x->passed));
        send_body(conn, x, data, n);
        data += n;
        size -= n;
        apply(conn, x, fault);
    }
    send_body(conn, x, data, size);
}

static bool is_stream(const WireExchange *x)
{
    return x->answer.framing == WIRE_FRAMING_CLOSE;
}

static bool changes_body(const WireExchange *x)
{
    const WireFault *rewrite = x->faults[WIRE_DO_REWRITE];
    if (x->answer.to_head)
        return false;
    if (x->faults[WIRE_DO_TRUNCATE] || (rewrite && (rewrite->replace || rewrite->body)))
        return true;
    return rewrite && rewrite->framing != WIRE_FRAMING_KEEP && !is_stream(x);
}

/* The head as it came, or changed where only the head is. */
static void pass_head(WireConn *conn, WireExchange *x)
{
    const WireFault *rewrite = x->faults[WIRE_DO_REWRITE];
    g_autoptr(GByteArray) head = g_byte_array_ref(x->answer.head);
    x->wraps = rewrite && is_stream(x) && rewrite->framing == WIRE_FRAMING_CHUNKED;
    if (x->wraps) {
        g_byte_array_unref(head);
        head = wire_head_frame(x->answer.head, WIRE_FRAMING_CHUNKED, 0);
    }
    wire_flow_head(conn->client.flow, rewrite, head, &x->answer_shapes.head);
    pass_body(conn, x, NULL, 0);
}

static void on_answer_head(WireConn *conn, WireExchange *x)
{
    if (x->answer.status < 200 && x->answer.status != 101) {
        bool to_head = x->answer.to_head;
        wire_flow_bytes(conn->client.flow, x->answer.head->data, x->answer.head->len,
                        &x->answer_shapes.head);
        wire_http_clear(&x->answer);
        wire_http_init(&x->answer, true, to_head);
        return;
    }
    const WireFault *rewrite = x->faults[WIRE_DO_REWRITE];
    const WireFault *delay = fault_at(x, WIRE_DO_DELAY, WIRE_AT_ANSWER);
    const WireFault *stall = fault_at(x, WIRE_DO_STALL, WIRE_AT_ANSWER);
    const WireFault *drop = fault_at(x, WIRE_DO_DROP, WIRE_AT_ANSWER);
    x->client_is_raw = is_stream(x);
    x->entry->status = rewrite && rewrite->status ? rewrite->status : x->answer.status;
    if (stall || drop) {
        x->entry->status = 0;
        apply(conn, x, drop ? drop : stall);
        return;
    }
    if (delay)
        wire_flow_pause(conn->client.flow, delay->ms);
    if (changes_body(x))
        x->gathered = g_byte_array_new();
    if (!x->gathered || is_stream(x))
        pass_head(conn, x);
}

/* The body that was gathered, changed, behind a head that fits it. */
static void pass_gathered(WireConn *conn, WireExchange *x)
{
    const WireFault *rewrite = x->faults[WIRE_DO_REWRITE], *cut = x->faults[WIRE_DO_TRUNCATE];
    WireFraming framing = x->answer.framing;
    g_autoptr(GByteArray) body = wire_bytes_replace(x->gathered, rewrite ? rewrite->replace : NULL);
    if (rewrite && rewrite->body) {
        g_byte_array_unref(body);
        body = g_bytes_unref_to_array(g_bytes_ref(rewrite->body));
    }
    if (cut && cut->after < body->len)
        g_byte_array_set_size(body, (guint)cut->after);
    if (is_stream(x)) {
        pass_body(conn, x, body->data, body->len);
        return;
    }
    if (rewrite && rewrite->framing != WIRE_FRAMING_KEEP)
        framing = rewrite->framing;
    else if (framing == WIRE_FRAMING_NONE && body->len > 0)
        framing = WIRE_FRAMING_LENGTH;
    g_autoptr(GByteArray) head = wire_head_frame(x->answer.head, framing, body->len);
    g_autoptr(GByteArray) framed = wire_body_frame(rewrite, framing, body->data, body->len);
    wire_flow_head(conn->client.flow, rewrite, head, &x->answer_shapes.head);
    pass_body(conn, x, framed->data, framed->len);
    if (framing == WIRE_FRAMING_CLOSE && !x->swallows)
        wire_flow_end(conn->client.flow, WIRE_END_CLOSE);
}

static void on_answer_done(WireConn *conn, WireExchange *x)
{
    if (x->gathered)
        pass_gathered(conn, x);
    x->answered = true;
    finish_if_over(conn, x);
}

/* Feeds the answer what belongs to it, and returns how much that was. */
static gsize take_answer(WireConn *conn, WireExchange *x, const guint8 *data, gsize size)
{
    bool had_head = x->answer.state != WIRE_HTTP_HEAD;
    gsize n = wire_http_feed(&x->answer, data, size, x->gathered);
    WireHttpState state = x->answer.state;
    if (had_head) {
        if (!x->gathered)
            pass_body(conn, x, data, n);
    } else if (state == WIRE_HTTP_BAD) {
        wire_flow_bytes(conn->client.flow, x->answer.head->data, x->answer.head->len, NULL);
        x->answer.state = WIRE_HTTP_TO_END;
    } else if (state != WIRE_HTTP_HEAD) {
        on_answer_head(conn, x);
    }
    if (x->answer.state == WIRE_HTTP_DONE)
        on_answer_done(conn, x);
    return n;
}

void wire_exchange_engine(WireConn *conn, const guint8 *data, gsize size)
{
    while (size > 0) {
        WireExchange *x = conn->exchange;
        if (!x || !x->entry || x->withheld || x->answered) {
            wire_flow_bytes(conn->client.flow, data, size, NULL); /* unasked, as it is */
            return;
        }
        gsize n = take_answer(conn, x, data, size);
        data += n;
        size -= n;
    }
}

void wire_exchange_engine_end(WireConn *conn)
{
    WireExchange *x = conn->exchange;
    if (!x || x->answer.state != WIRE_HTTP_TO_END) {
        wire_flow_end(conn->client.flow, WIRE_END_CLOSE);
        return;
    }
    if (x->gathered)
        pass_gathered(conn, x);
    if (x->wraps) {
        g_autoptr(GByteArray) last = g_byte_array_new();
        wire_chunks_end(last, x->faults[WIRE_DO_REWRITE]->trailers);
        wire_flow_bytes(conn->client.flow, last->data, last->len, &x->answer_shapes.body);
    }
    x->answered = true;
    note_end(conn, x, x->swallows);
    if (!x->swallows)
        wire_flow_end(conn->client.flow, WIRE_END_SHUTDOWN);
}

bool wire_exchange_reads_engine(const WireConn *conn)
{
    const WireExchange *x = conn->exchange;
    if (conn->engine.fd < 0 || conn->engine.ended)
        return false;
    if (x && (x->swallows || x->gathered))
        return true;
    return wire_flow_size(conn->client.flow) < WAITING_MOST;
}
