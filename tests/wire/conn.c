#include "wire/conn.h"

#include <errno.h>
#include <unistd.h>

#define READ_SIZE (64u << 10)

static void side_init(WireSide *side, int fd)
{
    *side = (WireSide){.fd = fd, .flow = wire_flow_new()};
}

static void side_clear(WireSide *side)
{
    if (side->fd >= 0)
        close(side->fd);
    wire_flow_free(side->flow);
}

WireConn *wire_conn_new(WireContext *context, int fd)
{
    WireConn *conn = g_new0(WireConn, 1);
    conn->context = context;
    conn->number = ++context->connections;
    conn->pending = g_byte_array_new();
    side_init(&conn->client, fd);
    side_init(&conn->engine, -1);
    return conn;
}

void wire_conn_free(WireConn *conn)
{
    if (!conn)
        return;
    wire_exchange_abandon(conn);
    side_clear(&conn->client);
    side_clear(&conn->engine);
    g_byte_array_unref(conn->pending);
    g_free(conn);
}

bool wire_conn_reach_engine(WireConn *conn)
{
    g_autoptr(GError) why = NULL;
    if (conn->engine.fd >= 0)
        return true;
    if (!conn->engine.broken &&
        wire_address_connect(&conn->context->engine, &conn->engine.fd, &why))
        return true;
    conn->engine.broken = true;
    return false;
}

/* ------------------------------------------------------------------------- polling */

static void prepare_side(const WireSide *side, bool reads, struct pollfd *p, gint64 *wake_us)
{
    bool writes = side->pump == WIRE_PUMP_WRITABLE;
    *p = (struct pollfd){.fd = side->fd};
    p->events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    if (side->gone && !reads)
        p->fd = -1; /* poll() would tell it again and again */
    if (side->pump == WIRE_PUMP_LATER)
        *wake_us = MIN(*wake_us, side->wake_us);
}

void wire_conn_prepare(const WireConn *conn, struct pollfd fds[2], gint64 *wake_us)
{
    prepare_side(&conn->client, wire_exchange_reads_client(conn), &fds[0], wake_us);
    prepare_side(&conn->engine, wire_exchange_reads_engine(conn), &fds[1], wake_us);
}

/* Bytes of a side that there may be, or its end. 0: none now. */
static gsize read_side(WireSide *side, guint8 *buffer)
{
    gssize n = recv(side->fd, buffer, READ_SIZE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        side->gone = true;
    if (n <= 0)
        side->ended = true;
    return (gsize)MAX(n, 0);
}

static void read_client(WireConn *conn)
{
    guint8 buffer[READ_SIZE];
    gsize n = read_side(&conn->client, buffer);
    if (n > 0)
        wire_exchange_client(conn, buffer, n);
    if (conn->client.ended)
        wire_exchange_client_end(conn);
}

static void read_engine(WireConn *conn)
{
    guint8 buffer[READ_SIZE];
    gsize n = read_side(&conn->engine, buffer);
    if (n > 0)
        wire_exchange_engine(conn, buffer, n);
    if (conn->engine.ended)
        wire_exchange_engine_end(conn);
}

/* A peer that is gone altogether: what it sent before is read first, then the other side learns. */
static void note_gone(WireConn *conn, WireSide *side, WireSide *other)
{
    side->gone = true;
    if (!side->ended || side->told)
        return;
    side->told = true;
    wire_flow_end(other->flow, WIRE_END_CLOSE);
}

static void reset(WireConn *conn)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(conn->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* Writes what can be written. The end of either flow is the end of the connection, but a client
 * that is left waiting. */
static void pump(WireConn *conn, WireSide *side)
{
    WireEnd end = WIRE_END_CLOSE;
    if (side->fd < 0 || side->broken || conn->over)
        return;
    side->pump = wire_flow_pump(side->flow, side->fd, &side->wake_us, &end);
    if (side->pump == WIRE_PUMP_BROKEN) {
        side->broken = true;
        conn->over = side == &conn->client;
    } else if (side->pump == WIRE_PUMP_ENDED && end != WIRE_END_STALL) {
        if (end == WIRE_END_RESET)
            reset(conn);
        conn->over = true;
    }
}

static bool is_through(const WireSide *side)
{
    return side->ended && side->pump == WIRE_PUMP_EMPTY;
}

void wire_conn_step(WireConn *conn, const struct pollfd fds[2])
{
    const short gone = POLLHUP | POLLERR;
    if (fds[0].revents & (POLLIN | gone) && wire_exchange_reads_client(conn))
        read_client(conn);
    if (fds[1].revents & (POLLIN | gone) && wire_exchange_reads_engine(conn))
        read_engine(conn);
    if (fds[0].revents & gone)
        note_gone(conn, &conn->client, &conn->engine);
    if (fds[1].revents & gone)
        note_gone(conn, &conn->engine, &conn->client);
    pump(conn, &conn->engine);
    pump(conn, &conn->client);
    if (conn->client.gone && (conn->engine.fd < 0 || conn->engine.broken))
        conn->over = true;
    if (is_through(&conn->client) && is_through(&conn->engine))
        conn->over = true;
}
