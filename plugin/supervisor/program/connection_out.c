/* What goes out on a connection. */
#include "connection_own.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUT_KEPT 65536u /* of its memory, by a connection with nothing to do */
#define OUTPUT_PREFIX (SPR_WIRE_HEADER + 8)
#define OUTPUT_ROOM (SPR_WIRE_MAX_DATA - OUTPUT_PREFIX) /* so that whole frames fill pages */
#define SPLICE_LEAST 16384                              /* for a frame to be worth two calls more */

static size_t buffered(const SupConnection *connection)
{
    return connection->out_end - connection->out_start;
}

size_t sup_connection_pending(const SupConnection *connection)
{
    return connection->bulk.size + buffered(connection);
}

/* Room at the end of the buffer, made by moving when it is only split. */
static uint8_t *make_room(SupConnection *connection, size_t size, size_t limit)
{
    if (connection->broken || buffered(connection) + size > limit)
        return NULL;
    if (connection->out_end + size > SUP_OUT_ROOM) {
        memmove(connection->out, connection->out + connection->out_start, buffered(connection));
        connection->out_end = buffered(connection);
        connection->out_start = 0;
    }
    return connection->out + connection->out_end;
}

static void advance(SupConnection *connection, size_t size)
{
    connection->out_end += size;
    if (connection->out_end > connection->out_peak)
        connection->out_peak = connection->out_end;
}

bool sup_connection_send(SupConnection *connection, SprWireHeader header, const void *payload)
{
    uint8_t *at = make_room(connection, SPR_WIRE_HEADER + header.size, SUP_OUT_ROOM);
    if (!at)
        return connection->broken;
    spr_wire_put_header(at, header);
    if (header.size > 0)
        memcpy(at + SPR_WIRE_HEADER, payload, header.size);
    advance(connection, SPR_WIRE_HEADER + header.size);
    return true;
}

void sup_connection_answer(SupConnection *connection, SprWireHeader header, const void *payload)
{
    if (!sup_connection_send(connection, header, payload))
        connection->broken = true;
}

void sup_connection_done(SupConnection *connection, uint32_t channel, int error, uint16_t flags,
                         uint64_t value)
{
    uint8_t payload[16];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, (uint32_t)error, 4);
    spr_wire_put(&w, 0, 4);
    spr_wire_put(&w, value, 8);
    sup_connection_answer(
        connection,
        (SprWireHeader){
            .size = sizeof payload, .channel = channel, .type = SPR_WIRE_DONE, .flags = flags},
        payload);
}

uint8_t *sup_connection_reserve(SupConnection *connection, size_t *room)
{
    uint8_t *at = NULL;
    if (sup_connection_pending(connection) < SUP_OUT_DATA)
        at = make_room(connection, OUTPUT_PREFIX + SPR_WIRE_MAX_DATA, SUP_OUT_ROOM);
    if (!at) {
        connection->blocked = true;
        return NULL;
    }
    *room = OUTPUT_ROOM;
    return at + OUTPUT_PREFIX;
}

static void put_output_head(uint8_t *at, uint32_t channel, uint8_t stream, uint16_t flags,
                            uint64_t offset, size_t size)
{
    spr_wire_put_header(at, (SprWireHeader){.size = (uint32_t)size + 8,
                                            .channel = channel,
                                            .type = SPR_WIRE_OUTPUT,
                                            .stream = stream,
                                            .flags = flags});
    SprWireWriter w = {at + SPR_WIRE_HEADER, 8, false};
    spr_wire_put(&w, offset, 8);
}

void sup_connection_commit(SupConnection *connection, uint32_t channel, uint8_t stream,
                           uint16_t flags, uint64_t offset, size_t size)
{
    put_output_head(connection->out + connection->out_end, channel, stream, flags, offset, size);
    advance(connection, OUTPUT_PREFIX + size);
}

/* What had no room in bulk of a frame that has begun: all of it goes by the buffer then, which had
 * nothing. Who shares the pipe's name may have taken some: then the frame is made whole with zeros.
 */
static void copy_rest(SupConnection *connection, int pipe, size_t left)
{
    size_t all = connection->bulk.size + left;
    uint8_t *at = make_room(connection, all, SUP_OUT_ROOM);
    size_t done = sup_bulk_take(&connection->bulk, pipe, left, at);
    memset(at + done, 0, all - done);
    advance(connection, all);
}

/* What is in bulk goes out first. */
static bool takes_bulk(SupConnection *connection)
{
    return connection->output_is_pipe && !connection->broken && buffered(connection) == 0 &&
           connection->bulk.size < SUP_OUT_DATA &&
           sup_bulk_open(&connection->bulk, connection->output.fd);
}

size_t sup_connection_splice(SupConnection *connection, uint32_t channel, uint8_t stream,
                             uint64_t offset, int pipe, uint64_t most)
{
    uint8_t head[OUTPUT_PREFIX];
    int waiting;
    if (most < SPLICE_LEAST || ioctl(pipe, FIONREAD, &waiting) < 0 || waiting < SPLICE_LEAST ||
        !takes_bulk(connection))
        return 0;
    size_t size = (size_t)waiting < SPR_WIRE_MAX_DATA ? (size_t)waiting : SPR_WIRE_MAX_DATA;
    size = size < most ? size : (size_t)most;
    put_output_head(head, channel, stream, 0, offset, size);
    size_t put = sup_bulk_put(&connection->bulk, head, sizeof head, pipe, size);
    if (put == 0)
        return 0;
    if (put < sizeof head + size)
        copy_rest(connection, pipe, sizeof head + size - put);
    return size;
}

/* When nothing goes on there is no need of what was taken for much output. */
static void rest(SupConnection *connection)
{
    sup_bulk_rest(&connection->bulk, connection->output.fd);
    if (connection->out_peak > OUT_KEPT) {
        madvise(connection->out + OUT_KEPT, SUP_OUT_ROOM - OUT_KEPT, MADV_DONTNEED);
        connection->out_peak = 0;
    }
}

void sup_connection_write(SupConnection *connection)
{
    if (connection->bulk.size > 0 && !sup_bulk_write(&connection->bulk, connection->output.fd)) {
        connection->broken |= errno != EAGAIN;
        return;
    }
    while (buffered(connection) > 0) {
        ssize_t n = write(connection->output.fd, connection->out + connection->out_start,
                          buffered(connection));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            connection->broken |= errno != EAGAIN;
            return;
        }
        connection->out_start += (size_t)n;
    }
    connection->out_start = connection->out_end = 0;
    if (sup_list_is_empty(&connection->commands))
        rest(connection);
}
