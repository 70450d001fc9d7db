#include "stream.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define READS_A_ROUND 4
#define BIG_PIPE (256 * 1024)

static void on_output(SupWatch *watch, uint32_t events)
{
    (void)events;
    SupStream *stream = SUP_CONTAINER(SupStream, watch, watch);
    sup_stream_pump(stream);
    sup_command_settle(stream->command);
}

void sup_stream_open(SupStream *stream, struct SupCommand *command, uint8_t number, int fd)
{
    stream->watch = (SupWatch){.fd = fd, .ready = on_output};
    stream->command = command;
    stream->number = number;
}

void sup_stream_watch(SupStream *stream)
{
    sup_watch_set(&stream->watch, EPOLLIN);
}

static ssize_t read_away(SupStream *stream)
{
    static char scratch[SPR_WIRE_MAX_DATA];
    return read(stream->watch.fd, scratch, sizeof scratch);
}

static size_t splice_to_client(SupStream *stream)
{
    SupCommand *command = stream->command;
    size_t n = sup_connection_splice(command->connection, command->channel, stream->number,
                                     stream->offset, stream->watch.fd, stream->credit);
    stream->credit -= n;
    return n;
}

bool sup_stream_may_read(const SupStream *stream)
{
    return stream->credit >= PIPE_BUF;
}

/* Straight from the pipe into what goes to the client. */
static ssize_t read_to_client(SupStream *stream, bool *ret_blocked)
{
    SupCommand *command = stream->command;
    size_t room = 0, spliced = splice_to_client(stream);
    if (spliced > 0)
        return (ssize_t)spliced;
    uint8_t *at =
        sup_stream_may_read(stream) ? sup_connection_reserve(command->connection, &room) : NULL;
    if (!at) {
        *ret_blocked = true;
        return 0;
    }
    if (room > stream->credit)
        room = (size_t)stream->credit;
    ssize_t n = read(stream->watch.fd, at, room);
    if (n > 0) {
        sup_connection_commit(command->connection, command->channel, stream->number, 0,
                              stream->offset, (size_t)n);
        stream->credit -= (uint64_t)n;
    }
    return n;
}

static ssize_t read_once(SupStream *stream, bool *ret_blocked)
{
    if (stream->discard)
        return read_away(stream);
    if (stream->command->connection)
        return read_to_client(stream, ret_blocked);
    return sup_kept_fill(&stream->kept, stream->watch.fd, ret_blocked);
}

/* A pipe that was filled to the brim is one of a fast writer. */
static void widen(SupStream *stream, ssize_t n)
{
    if (n > (ssize_t)SPR_WIRE_MAX_DATA / 2 && !stream->widened)
        stream->widened = fcntl(stream->watch.fd, F_SETPIPE_SZ, BIG_PIPE) != 0;
}

void sup_stream_pump(SupStream *stream)
{
    bool blocked = false;
    for (int i = 0; i < READS_A_ROUND && stream->watch.fd >= 0; i++) {
        ssize_t n = read_once(stream, &blocked);
        if (blocked)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            sup_stream_close(stream);
            break;
        }
        stream->offset += (uint64_t)n;
        widen(stream, n);
        /* A short read emptied it; but after the leader's end we want to see the pipe's. */
        if (n < 4096 && !stream->command->ended)
            break;
    }
    if (stream->command->answered && stream->offset >= stream->owed)
        stream->discard = true;
    /* A pipe whose writers are gone is always ready: one that must wait is not watched at all. */
    sup_watch_set(&stream->watch, blocked ? 0 : EPOLLIN);
    sup_command_output_came(stream->command, stream->number);
}

void sup_stream_mark(SupStream *stream)
{
    int waiting = 0;
    if (stream->watch.fd >= 0 && ioctl(stream->watch.fd, FIONREAD, &waiting) < 0)
        waiting = 0;
    stream->owed = stream->offset + (uint64_t)waiting;
}

bool sup_stream_is_done(const SupStream *stream, bool settled)
{
    if (stream->watch.fd < 0)
        return true;
    return settled && (stream->offset >= stream->owed || sup_stream_is_held(stream));
}

bool sup_stream_is_held(const SupStream *stream)
{
    return stream->kept.hold && !stream->discard && stream->watch.fd >= 0 &&
           stream->offset < stream->owed;
}

void sup_stream_discard(SupStream *stream)
{
    stream->discard = true;
    if (stream->watch.fd >= 0)
        sup_watch_set(&stream->watch, EPOLLIN);
}

void sup_stream_close(SupStream *stream)
{
    sup_watch_close(&stream->watch);
}

/* ------------------------------------------------------------------------------- input */

static void tell_client(SupInput *input)
{
    SupCommand *command = input->command;
    if (!command->connection) {
        input->consumed = 0;
        return;
    }
    uint8_t payload[4];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, input->consumed, 4);
    SprWireHeader header = {.size = 4, .channel = command->channel, .type = SPR_WIRE_CREDIT};
    if (input->gone)
        header = (SprWireHeader){.channel = command->channel, .type = SPR_WIRE_STDIN_GONE};
    if (sup_connection_send(command->connection, header, payload))
        input->consumed = 0;
}

static void lose_reader(SupInput *input)
{
    input->gone = true;
    sup_input_close(input);
    tell_client(input);
    sup_command_input_moved(input->command);
}

/* Writes what is held; false when it must wait. */
static bool drain(SupInput *input)
{
    while (input->start < input->end) {
        ssize_t n = write(input->watch.fd, input->bytes + input->start, input->end - input->start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) {
            lose_reader(input);
            return true;
        }
        input->start += (size_t)n;
        input->consumed += (size_t)n;
    }
    input->start = input->end = 0;
    return true;
}

static void on_input(SupWatch *watch, uint32_t events)
{
    SupInput *input = SUP_CONTAINER(SupInput, watch, watch);
    if (events & EPOLLERR) {
        lose_reader(input);
        return;
    }
    bool empty = drain(input);
    if (input->watch.fd < 0)
        return;
    if (empty && input->closing) {
        sup_input_end(input);
        return;
    }
    if (empty)
        sup_watch_set(&input->watch, 0);
    if (empty || input->consumed >= input->room / 4)
        tell_client(input);
    sup_command_input_moved(input->command);
}

void sup_input_open(SupInput *input, struct SupCommand *command, int fd, size_t room)
{
    input->watch = (SupWatch){.fd = fd, .ready = on_input};
    input->command = command;
    input->room = room;
}

/* Behind what the pipe did not take. */
static size_t hold(SupInput *input, const uint8_t *bytes, size_t size)
{
    if (!input->bytes && (input->bytes = malloc(input->room)) && input->room > BIG_PIPE)
        fcntl(input->watch.fd, F_SETPIPE_SZ, BIG_PIPE);
    if (!input->bytes)
        return 0;
    if (input->room - input->end < size) {
        memmove(input->bytes, input->bytes + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    size_t n = input->room - input->end < size ? input->room - input->end : size;
    memcpy(input->bytes + input->end, bytes, n);
    input->end += n;
    sup_watch_set(&input->watch, EPOLLOUT);
    return n;
}

size_t sup_input_write(SupInput *input, const uint8_t *bytes, size_t size)
{
    if (input->watch.fd < 0)
        return 0;
    size_t done = 0;
    while (input->start == input->end && done < size) {
        ssize_t n = write(input->watch.fd, bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            lose_reader(input);
            return done;
        }
        if (n < 0)
            break;
        done += (size_t)n;
        input->consumed += (size_t)n;
    }
    if (done < size)
        done += hold(input, bytes + done, size - done);
    if (input->consumed >= input->room / 4)
        tell_client(input);
    return done;
}

void sup_input_end(SupInput *input)
{
    input->closing = true;
    if (input->start == input->end)
        sup_input_close(input);
}

void sup_input_close(SupInput *input)
{
    sup_watch_close(&input->watch);
    free(input->bytes);
    input->bytes = NULL;
    input->start = input->end = 0;
}
