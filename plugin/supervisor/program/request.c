#include "request.h"

#include "process.h"

#include <errno.h>
#include <stdlib.h>

#define LIST_PAGE 32

/* One that waits. */
typedef struct {
    SupLink of_connection, of_command;
    SupConnection *connection;
    SupCommand *command;
    SprWireHeader header;
    uint64_t offset, err_offset;
    uint32_t most;   /* bytes of a READ */
    uint32_t wanted; /* SPR_WIRE_READY_* of a WATCH */
    uint32_t number; /* of a KILL */
} Request;

static uint32_t last_kill;

static void request_free(Request *request)
{
    sup_list_remove(&request->of_connection);
    sup_list_remove(&request->of_command);
    free(request);
}

static void finish(Request *request, int error, uint16_t flags, uint64_t value)
{
    sup_connection_done(request->connection, request->header.channel, error, flags, value);
    request_free(request);
}

static Request *park(SupConnection *connection, SupCommand *command, const Request *from)
{
    Request *request = malloc(sizeof *request);
    if (!request)
        return NULL;
    *request = *from;
    request->connection = connection;
    request->command = command;
    sup_list_init(&request->of_connection);
    sup_list_init(&request->of_command);
    sup_list_append(&connection->requests, &request->of_connection);
    sup_list_append(&command->requests, &request->of_command);
    return request;
}

static SupStream *stream_of(SupCommand *command, uint8_t number)
{
    return number == SPR_WIRE_ERR ? &command->err : &command->out;
}

/* No more comes: the pipe is closed, or the end was told and the rest is thrown away. */
static bool has_ended(const SupStream *stream)
{
    return stream->watch.fd < 0 || stream->discard;
}

/* ------------------------------------------------------------------------------- answers */

/* True when it was answered. */
static bool answer_read(Request *request)
{
    SupStream *stream = stream_of(request->command, request->header.stream);
    SupKept *kept = &stream->kept;
    SupConnection *connection = request->connection;
    bool wait = request->header.flags & SPR_WIRE_WAIT_FOR_IT;
    bool ended = has_ended(stream);
    if (request->offset < kept->start)
        request->offset = kept->start;
    if (request->offset >= kept->end && !ended) {
        if (!wait)
            sup_connection_done(connection, request->header.channel, EAGAIN, 0, kept->end);
        return !wait;
    }
    size_t room;
    uint8_t *at = sup_connection_reserve(connection, &room);
    if (!at)
        return false;
    if (room > request->most)
        room = request->most;
    size_t n = sup_kept_copy(kept, &request->offset, at, room);
    sup_connection_commit(connection, request->header.channel, request->header.stream,
                          n == 0 ? SPR_WIRE_END : 0, request->offset, n);
    return true;
}

static bool answer_wait(Request *request)
{
    bool wait = request->header.flags & SPR_WIRE_WAIT_FOR_IT;
    if (!request->command->answered) {
        if (!wait)
            sup_connection_done(request->connection, request->header.channel, EAGAIN, 0, 0);
        return !wait;
    }
    uint8_t payload[SUP_EXITED_SIZE];
    sup_command_put_exited(request->command, payload);
    bool sent = sup_connection_send(request->connection,
                                    (SprWireHeader){.size = sizeof payload,
                                                    .channel = request->header.channel,
                                                    .type = SPR_WIRE_EXITED},
                                    payload);
    request->connection->blocked |= !sent;
    return sent;
}

static bool answer_watch(Request *request)
{
    const SupStream *out = &request->command->out, *err = &request->command->err;
    uint32_t ready = request->command->answered ? SPR_WIRE_READY_END : 0;
    if (out->kept.end > request->offset || has_ended(out))
        ready |= SPR_WIRE_READY_OUT;
    if (err->kept.end > request->err_offset || has_ended(err))
        ready |= SPR_WIRE_READY_ERR;
    ready &= request->wanted;
    if (ready == 0 && request->header.flags & SPR_WIRE_WAIT_FOR_IT)
        return false;
    sup_connection_done(request->connection, request->header.channel, 0, 0, ready);
    return true;
}

/* Only says that it is worth trying again. */
static bool answer_write(Request *request)
{
    SupInput *input = &request->command->input;
    bool closed = input->watch.fd < 0 || input->closing;
    if (!closed && input->end - input->start >= SPR_WIRE_STDIN_WINDOW)
        return false;
    sup_connection_done(request->connection, request->header.channel, closed ? EPIPE : EAGAIN, 0,
                        0);
    return true;
}

static bool answer(Request *request)
{
    switch (request->header.type) {
    case SPR_WIRE_READ:
        return answer_read(request);
    case SPR_WIRE_WAIT:
        return answer_wait(request);
    case SPR_WIRE_WATCH:
        return answer_watch(request);
    case SPR_WIRE_WRITE:
        return answer_write(request);
    default:
        return false;
    }
}

static void answer_or_park(SupConnection *connection, SupCommand *command, Request *request)
{
    request->connection = connection;
    request->command = command;
    if (!answer(request) && !park(connection, command, request))
        sup_connection_done(connection, request->header.channel, ENOMEM, 0, 0);
}

static void answer_those(SupCommand *command, uint8_t type, int stream)
{
    for (SupLink *at = command->requests.next, *next; at != &command->requests; at = next) {
        next = at->next;
        Request *request = SUP_CONTAINER(Request, of_command, at);
        if (request->header.type != type || (stream >= 0 && request->header.stream != stream))
            continue;
        if (answer(request))
            request_free(request);
    }
}

void sup_requests_output(SupCommand *command, uint8_t stream)
{
    answer_those(command, SPR_WIRE_READ, stream);
    answer_those(command, SPR_WIRE_WATCH, -1);
}

void sup_requests_input(SupCommand *command)
{
    answer_those(command, SPR_WIRE_WRITE, -1);
}

void sup_requests_ended(SupCommand *command)
{
    answer_those(command, SPR_WIRE_READ, -1);
    answer_those(command, SPR_WIRE_WRITE, -1);
    answer_those(command, SPR_WIRE_WAIT, -1);
    answer_those(command, SPR_WIRE_WATCH, -1);
}

void sup_requests_lose(SupCommand *command)
{
    while (!sup_list_is_empty(&command->requests))
        finish(SUP_CONTAINER(Request, of_command, command->requests.next), ENOENT, 0, 0);
}

bool sup_requests_kill(const SupCommand *command)
{
    for (const SupLink *at = command->requests.next; at != &command->requests; at = at->next) {
        if (SUP_CONTAINER(Request, of_command, at)->header.type == SPR_WIRE_KILL)
            return true;
    }
    return false;
}

void sup_requests_killed(SupCommand *command, uint32_t number, int error, bool unsure)
{
    for (SupLink *at = command->requests.next, *next; at != &command->requests; at = next) {
        next = at->next;
        Request *request = SUP_CONTAINER(Request, of_command, at);
        if (request->header.type == SPR_WIRE_KILL && request->number <= number)
            finish(request, error, unsure ? SPR_WIRE_UNSURE : 0, 0);
    }
}

void sup_requests_resume(SupConnection *connection)
{
    for (SupLink *at = connection->requests.next, *next; at != &connection->requests; at = next) {
        next = at->next;
        Request *request = SUP_CONTAINER(Request, of_connection, at);
        if (answer(request))
            request_free(request);
    }
}

void sup_requests_drop(SupConnection *connection)
{
    while (!sup_list_is_empty(&connection->requests))
        request_free(SUP_CONTAINER(Request, of_connection, connection->requests.next));
}

/* -------------------------------------------------------------------------------- frames */

static void put_process(SupConnection *connection, uint32_t channel, const SupCommand *command)
{
    uint8_t payload[SPR_WIRE_PROCESS_FIXED + SPR_WIRE_COMMAND_TEXT], exited[SUP_EXITED_SIZE];
    uint32_t state = 0;
    if (command->answered)
        state |= SPR_WIRE_STATE_ENDED;
    if (command->terminal)
        state |= SPR_WIRE_STATE_TERMINAL;
    if (command->input.watch.fd >= 0 && !command->input.closing)
        state |= SPR_WIRE_STATE_STDIN;
    if (command->answered && command->keeper)
        state |= SPR_WIRE_STATE_BACKGROUND;
    sup_command_put_exited(command, exited);
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, command->id, 8);
    spr_wire_put(&w, (uint32_t)command->leader, 4);
    spr_wire_put(&w, state, 4);
    spr_wire_put_bytes(&w, exited, 16);
    spr_wire_put(&w, (uint64_t)command->started_ms, 8);
    spr_wire_put_bytes(&w, exited + 32, 8);
    const SupKept *kept[] = {&command->out.kept, &command->err.kept};
    for (int i = 0; i < 2; i++) {
        spr_wire_put(&w, kept[i]->start, 8);
        spr_wire_put(&w, kept[i]->end, 8);
    }
    spr_wire_put_bytes(&w, command->text, strlen(command->text) + 1);
    sup_connection_answer(connection,
                          (SprWireHeader){.size = (uint32_t)(sizeof payload - w.left),
                                          .channel = channel,
                                          .type = SPR_WIRE_PROCESS},
                          payload);
}

static void list(SupConnection *connection, uint32_t channel, uint64_t after)
{
    SupCommand *command = sup_process_after(after);
    for (int i = 0; command && i < LIST_PAGE; i++) {
        put_process(connection, channel, command);
        after = command->id;
        command = sup_process_after(after);
    }
    sup_connection_done(connection, channel, 0, command ? SPR_WIRE_MORE : 0, after);
}

static void read_kept(SupConnection *connection, SupCommand *command, SprWireHeader header,
                      SprWireReader *r)
{
    Request request = {.header = header};
    request.offset = spr_wire_get(r, 8);
    request.most = (uint32_t)spr_wire_get(r, 4);
    SupStream *stream = stream_of(command, header.stream);
    SupKept *kept = &stream->kept;
    if (header.flags & SPR_WIRE_TAKE && request.offset > kept->taken) {
        kept->taken = request.offset < kept->end ? request.offset : kept->end;
        sup_stream_pump(stream);
        sup_command_settle(command);
    }
    answer_or_park(connection, command, &request);
}

static void watch(SupConnection *connection, SupCommand *command, SprWireHeader header,
                  SprWireReader *r)
{
    Request request = {.header = header};
    request.offset = spr_wire_get(r, 8);
    request.err_offset = spr_wire_get(r, 8);
    request.wanted = (uint32_t)spr_wire_get(r, 4);
    answer_or_park(connection, command, &request);
}

static void write_input(SupConnection *connection, SupCommand *command, SprWireHeader header,
                        const SprWireReader *r)
{
    SupInput *input = &command->input;
    if (input->watch.fd < 0 || input->closing) {
        bool only_close = header.flags & SPR_WIRE_CLOSE && r->left == 0;
        sup_connection_done(connection, header.channel, only_close ? 0 : EPIPE, 0, 0);
        return;
    }
    size_t taken = sup_input_write(input, r->at, r->left);
    Request request = {.header = header};
    if (taken == 0 && r->left > 0 && !input->gone) {
        if (header.flags & SPR_WIRE_WAIT_FOR_IT)
            answer_or_park(connection, command, &request);
        else
            sup_connection_done(connection, header.channel, EAGAIN, 0, 0);
        return;
    }
    if (header.flags & SPR_WIRE_CLOSE && taken == r->left)
        sup_command_end_input(command);
    sup_connection_done(connection, header.channel, taken == 0 && input->gone ? EPIPE : 0, 0,
                        taken);
}

static void kill_process(SupConnection *connection, SupCommand *command, SprWireHeader header,
                         SprWireReader *r)
{
    SupMessage message = {.type = SUP_KILL};
    message.signal = (uint32_t)spr_wire_get(r, 4);
    message.scope = (uint32_t)spr_wire_get(r, 4);
    message.value = (int64_t)spr_wire_get(r, 8);
    Request request = {.header = header, .number = ++last_kill};
    message.number = request.number;
    if (!command->keeper)
        sup_connection_done(connection, header.channel, ESRCH, 0, 0);
    else if (message.scope > SPR_WIRE_LEADER || message.signal > 64)
        sup_connection_done(connection, header.channel, EINVAL, 0, 0);
    else if (!park(connection, command, &request))
        sup_connection_done(connection, header.channel, ENOMEM, 0, 0);
    else {
        sup_keeper_kill(command->keeper, &message);
        sup_command_expect_end(command, message.value > 0 ? message.value : 0);
    }
}

static void resize(SupConnection *connection, SupCommand *command, SprWireHeader header,
                   SprWireReader *r)
{
    uint32_t rows = (uint32_t)spr_wire_get(r, 2), columns = (uint32_t)spr_wire_get(r, 2);
    bool done = sup_command_resize(command, rows, columns);
    sup_connection_done(connection, header.channel, done ? 0 : ENOTTY, 0, 0);
}

static void forget(SupConnection *connection, SupCommand *command, uint32_t channel)
{
    bool may = command->answered;
    if (may)
        sup_process_forget(command);
    sup_connection_done(connection, channel, may ? 0 : EBUSY, 0, 0);
}

static bool about_process(SupConnection *connection, SprWireHeader header, uint64_t id,
                          SprWireReader *r)
{
    SupCommand *command = sup_process_find(id);
    if (!command) {
        sup_connection_done(connection, header.channel, ENOENT, 0, 0);
        return true;
    }
    Request request = {.header = header};
    switch (header.type) {
    case SPR_WIRE_READ:
        read_kept(connection, command, header, r);
        break;
    case SPR_WIRE_WAIT:
        answer_or_park(connection, command, &request);
        break;
    case SPR_WIRE_WATCH:
        watch(connection, command, header, r);
        break;
    case SPR_WIRE_WRITE:
        write_input(connection, command, header, r);
        return true;
    case SPR_WIRE_FIND:
        put_process(connection, header.channel, command);
        sup_connection_done(connection, header.channel, 0, 0, 0);
        break;
    case SPR_WIRE_FORGET:
        forget(connection, command, header.channel);
        break;
    case SPR_WIRE_KILL:
        kill_process(connection, command, header, r);
        break;
    case SPR_WIRE_RESIZE:
        resize(connection, command, header, r);
        break;
    default:
        return false;
    }
    return !r->bad;
}

/* KILL and RESIZE for the command that this very channel runs. */
static bool about_own(SupConnection *connection, SprWireHeader header, SprWireReader *r)
{
    SupCommand *command = sup_command_of(connection, header.channel);
    uint32_t first = (uint32_t)spr_wire_get(r, header.type == SPR_WIRE_KILL ? 4 : 2);
    uint32_t second = (uint32_t)spr_wire_get(r, header.type == SPR_WIRE_KILL ? 4 : 2);
    if (header.type == SPR_WIRE_RESIZE) {
        if (command && !r->bad)
            sup_command_resize(command, first, second);
        return !r->bad;
    }
    int64_t grace_ms = (int64_t)spr_wire_get(r, 8);
    if (r->bad || first > 64 || second > SPR_WIRE_LEADER)
        return false;
    if (command)
        sup_command_end(command, (int)first, (SprWireScope)second, grace_ms);
    return true;
}

static void cancel(SupConnection *connection, uint32_t channel)
{
    for (SupLink *at = connection->requests.next, *next; at != &connection->requests; at = next) {
        next = at->next;
        Request *request = SUP_CONTAINER(Request, of_connection, at);
        if (request->header.channel == channel)
            request_free(request);
    }
}

bool sup_request(SupConnection *connection, SprWireHeader header, SprWireReader *r)
{
    if (header.type == SPR_WIRE_CANCEL) {
        cancel(connection, header.channel);
        return true;
    }
    bool known = header.type >= SPR_WIRE_KILL && header.type <= SPR_WIRE_FORGET;
    if (!known && header.type != SPR_WIRE_WATCH)
        return false;
    uint64_t id = spr_wire_get(r, 8);
    if (r->bad || header.stream > SPR_WIRE_ERR)
        return false;
    if (header.type == SPR_WIRE_LIST) {
        list(connection, header.channel, id);
        return true;
    }
    if (id == 0 && (header.type == SPR_WIRE_KILL || header.type == SPR_WIRE_RESIZE))
        return about_own(connection, header, r);
    return about_process(connection, header, id, r);
}
