#include "connection.h"

#include "command.h"
#include "connection_own.h"
#include "leftover.h"
#include "main_child.h"
#include "pool.h"
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CONNECTIONS 256
#define IN_ROOM (2 * SPR_WIRE_MAX_PAYLOAD)
#define RETIRED_MS 5000
#define FEATURES                                                                                   \
    (SPR_WIRE_FEATURE_FILES | SPR_WIRE_FEATURE_DIAL | SPR_WIRE_FEATURE_INPUT |                     \
     SPR_WIRE_FEATURE_VISIT | SPR_WIRE_FEATURE_REPLACE | SPR_WIRE_FEATURE_MAIN)

static struct {
    SupLink all;
    unsigned count;
    uint8_t instance[SPR_WIRE_INSTANCE];
} connections;

void sup_connections_init(void)
{
    sup_list_init(&connections.all);
    if (getrandom(connections.instance, SPR_WIRE_INSTANCE, 0) != SPR_WIRE_INSTANCE) {
        int64_t now = sup_now_ms();
        memcpy(connections.instance, &now, sizeof now);
    }
}

static uint8_t *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    return at;
}

/* nonce: behind the greeting of a connection that was dialed, else NULL. */
static bool greet(SupConnection *connection, const uint8_t *nonce)
{
    uint8_t payload[48 + SPR_WIRE_NONCE];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, SPR_WIRE_VERSION, 2);
    spr_wire_put(&w, 0, 2);
    spr_wire_put(&w, FEATURES, 8);
    spr_wire_put_bytes(&w, connections.instance, SPR_WIRE_INSTANCE);
    spr_wire_put(&w, (uint64_t)getpid(), 4);
    spr_wire_put(&w, getuid(), 4);
    spr_wire_put(&w, getgid(), 4);
    spr_wire_put(&w, SUP_MAX_COMMANDS, 4);
    if (nonce)
        spr_wire_put_bytes(&w, nonce, SPR_WIRE_NONCE);
    connection->greeted = true;
    return sup_connection_send(
        connection,
        (SprWireHeader){.size = (uint32_t)(sizeof payload - w.left), .type = SPR_WIRE_HELLO},
        payload);
}

/* Who speaks no version of ours is told which that is, and that is all. */
static bool say_hello(SupConnection *connection, SprWireReader *r)
{
    uint32_t magic = (uint32_t)spr_wire_get(r, 4);
    uint32_t lowest = (uint32_t)spr_wire_get(r, 2), highest = (uint32_t)spr_wire_get(r, 2);
    connection->visits = spr_wire_get(r, 8) & SPR_WIRE_FEATURE_VISIT;
    return !r->bad && magic == SPR_WIRE_MAGIC && greet(connection, NULL) &&
           lowest <= SPR_WIRE_VERSION && highest >= SPR_WIRE_VERSION;
}

static bool dial(SupConnection *connection, uint32_t channel, SprWireReader *r)
{
    uint8_t nonce[SPR_WIRE_NONCE];
    for (size_t i = 0; i < sizeof nonce; i++)
        nonce[i] = (uint8_t)spr_wire_get(r, 1);
    const char *path = spr_wire_get_text(r);
    if (r->bad)
        return false;
    sup_connection_done(connection, channel, sup_connection_dial(path, nonce), 0, 0);
    return true;
}

static bool discard(SupConnection *connection)
{
    int given[SUP_MAX_GIVEN];
    if (!sup_connection_take_given(connection, given))
        return false;
    for (int i = 0; i < SUP_MAX_GIVEN; i++)
        sup_leftover_read(given[i]);
    return true;
}

static void on_lender(SupWatch *watch, uint32_t events)
{
    (void)events;
    SUP_CONTAINER(SupConnection, lender, watch)->broken = true;
}

/* Only what can be watched and never has to be waited for. */
static bool is_pipe(int fd)
{
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) &&
           sup_set_nonblocking(fd);
}

/* From here on the relay only waits: its bytes no longer go through it. */
static bool take_lent(SupConnection *connection)
{
    int given[SUP_MAX_GIVEN];
    if (connection->lender.fd >= 0 || !sup_connection_take_given(connection, given))
        return false;
    if (!is_pipe(given[0]) || !is_pipe(given[1]) || given[2] >= 0) {
        for (int i = 0; i < SUP_MAX_GIVEN; i++)
            sup_close(&given[i]);
        return false;
    }
    sup_watch_set(&connection->input, 0);
    connection->lender = (SupWatch){.fd = connection->input.fd, .ready = on_lender};
    sup_watch_close(&connection->output);
    connection->input.fd = given[0];
    connection->output.fd = given[1];
    connection->output_is_pipe = fcntl(given[1], F_GETPIPE_SZ) > 0;
    return sup_watch_set(&connection->lender, EPOLLIN) &&
           sup_watch_set(&connection->input, EPOLLIN);
}

static bool shut_down(SupConnection *connection, uint32_t channel)
{
    bool may = !sup_server_has_main();
    sup_connection_done(connection, channel, may ? 0 : EPERM, 0, 0);
    if (may) {
        sup_connection_write(connection);
        sup_server_stop(0);
    }
    return true;
}

/* Whoever connects from now on finds the sandbox as it is then, or gone. */
static bool retire(SupConnection *connection, uint32_t channel, SprWireReader *r)
{
    bool only_tells = r->left > 0 && spr_wire_get(r, 1) != 0;
    uint64_t uses = sup_pool_busy();
    for (SupLink *at = connections.all.next; at != &connections.all; at = at->next)
        uses += !SUP_CONTAINER(SupConnection, link, at)->visits;
    if (uses == 0 && !only_tells)
        sup_server_pause(RETIRED_MS);
    sup_connection_done(connection, channel, 0, 0, uses);
    return true;
}

/* Asked anew: what the event loop saw may be old when we were frozen in between. */
static bool is_gone(SupConnection *connection)
{
    struct pollfd peer = {.fd = connection->input.fd};
    connection->gone |= poll(&peer, 1, 0) > 0 && peer.revents & POLLHUP;
    return connection->gone;
}

/* False for a frame that breaks the rules. */
static bool serve_frame(SupConnection *connection, SprWireHeader header, const uint8_t *payload)
{
    SprWireReader r = {payload, header.size, false};
    if (!connection->greeted && header.type == SPR_WIRE_LEND)
        return take_lent(connection);
    if (!connection->greeted)
        return header.type == SPR_WIRE_HELLO && say_hello(connection, &r);
    switch (header.type) {
    case SPR_WIRE_RUN:
        return is_gone(connection) || sup_command_run(connection, header.channel, &r);
    case SPR_WIRE_STDIN:
    case SPR_WIRE_STDIN_CLOSE:
        return sup_command_stdin(connection, header, payload);
    case SPR_WIRE_CREDIT:
        return sup_command_credit(connection, header, &r);
    case SPR_WIRE_PING:
        sup_connection_done(connection, header.channel, 0, 0, 0);
        return true;
    case SPR_WIRE_SHUTDOWN:
        return shut_down(connection, header.channel);
    case SPR_WIRE_RETIRE:
        return retire(connection, header.channel, &r);
    case SPR_WIRE_MAIN:
        sup_connection_done(connection, header.channel, 0, 0, sup_main_rest());
        return true;
    case SPR_WIRE_DIAL:
        return dial(connection, header.channel, &r);
    case SPR_WIRE_DISCARD:
        return discard(connection);
    default:
        return sup_request(connection, header, &r);
    }
}

static bool grow_in(SupConnection *connection, size_t room)
{
    if (room <= connection->in_room)
        return true;
    uint8_t *in = map(room);
    if (!in)
        return false;
    memcpy(in, connection->in, connection->in_size);
    munmap(connection->in, connection->in_room);
    connection->in = in;
    connection->in_room = room;
    return true;
}

/* A RUN may hold secrets: what was read of it does not stay. */
static void forget_frame(uint8_t *at, SprWireHeader header)
{
    if (header.type == SPR_WIRE_RUN)
        explicit_bzero(at, SPR_WIRE_HEADER + header.size);
}

static bool is_allowed_size(const SupConnection *connection, SprWireHeader header)
{
    if (!connection->greeted)
        return header.size <= 64;
    return header.size <= (header.type == SPR_WIRE_RUN ? SPR_WIRE_MAX_RUN : SPR_WIRE_MAX_PAYLOAD);
}

/* Serves the whole frames in the buffer, as long as there is room for their answers. */
static void serve_input(SupConnection *connection)
{
    size_t at = 0;
    while (!connection->broken && !connection->closing &&
           sup_connection_pending(connection) <= SUP_OUT_DATA) {
        size_t left = connection->in_size - at;
        if (left < SPR_WIRE_HEADER)
            break;
        SprWireHeader header = spr_wire_get_header(connection->in + at);
        if (!is_allowed_size(connection, header)) {
            connection->broken = true;
            break;
        }
        if (left < SPR_WIRE_HEADER + header.size)
            break;
        if (!serve_frame(connection, header, connection->in + at + SPR_WIRE_HEADER)) {
            uint8_t error[4] = {EPROTO};
            sup_connection_send(connection, (SprWireHeader){.size = 4, .type = SPR_WIRE_ERROR},
                                error);
            connection->closing = true;
        }
        forget_frame(connection->in + at, header);
        at += SPR_WIRE_HEADER + header.size;
    }
    connection->blocked |= sup_connection_pending(connection) > SUP_OUT_DATA;
    if (at > 0) {
        connection->in_size -= at;
        memmove(connection->in, connection->in + at, connection->in_size);
        if (connection->in_size > 0)
            explicit_bzero(connection->in + connection->in_size, at);
    }
    if (connection->in_size >= SPR_WIRE_HEADER) {
        SprWireHeader header = spr_wire_get_header(connection->in);
        connection->broken |= !is_allowed_size(connection, header) ||
                              !grow_in(connection, SPR_WIRE_HEADER + header.size);
    } else if (connection->in_room > IN_ROOM && connection->in_size == 0) {
        madvise(connection->in, connection->in_room, MADV_DONTNEED);
    }
}

static void close_given(SupConnection *connection)
{
    for (int i = 0; i < SUP_MAX_GIVEN; i++)
        sup_close(&connection->given[i]);
}

bool sup_connection_take_given(SupConnection *connection, int given[SUP_MAX_GIVEN])
{
    memcpy(given, connection->given, sizeof connection->given);
    for (int i = 0; i < SUP_MAX_GIVEN; i++)
        connection->given[i] = -1;
    return given[0] >= 0;
}

/* They belong to the frame whose first byte they came with, and a client sends that one alone. */
static void keep_given(SupConnection *connection, struct msghdr *msg)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return;
    close_given(connection);
    memcpy(connection->given, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
}

/* From inside the sandbox nobody has descriptors to give, but a relay its own before the HELLO. */
static ssize_t receive(SupConnection *connection)
{
    if (connection->lender.fd >= 0)
        return read(connection->input.fd, connection->in + connection->in_size,
                    connection->in_room - connection->in_size);
    union {
        char bytes[CMSG_SPACE(sizeof connection->given)];
        struct cmsghdr align;
    } space;
    struct iovec iov = {connection->in + connection->in_size,
                        connection->in_room - connection->in_size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    bool takes = connection->dialed || !connection->greeted;
    if (takes) {
        msg.msg_control = space.bytes;
        msg.msg_controllen = CMSG_LEN(sizeof connection->given); /* SPACE has room for one more */
    }
    ssize_t n = recvmsg(connection->input.fd, &msg, MSG_CMSG_CLOEXEC);
    if (n > 0 && takes)
        keep_given(connection, &msg);
    return n;
}

static void read_in(SupConnection *connection)
{
    ssize_t n = receive(connection);
    if (n > 0) {
        connection->in_size += (size_t)n;
        serve_input(connection);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        connection->broken = true;
    }
}

/* Whatever waits for room is served at the end of the round. */
static void on_room(SupWatch *watch, uint32_t events)
{
    if (events & EPOLLERR)
        SUP_CONTAINER(SupConnection, output, watch)->broken = true;
}

static void on_input(SupWatch *watch, uint32_t events)
{
    SupConnection *connection = SUP_CONTAINER(SupConnection, input, watch);
    connection->gone |= (events & EPOLLHUP) != 0;
    if (events & EPOLLERR)
        connection->broken = true;
    if (!connection->broken && events & (EPOLLIN | EPOLLHUP) &&
        connection->in_size < connection->in_room)
        read_in(connection);
}

static void connection_free(SupConnection *connection)
{
    sup_watch_close(&connection->input);
    sup_watch_close(&connection->output);
    sup_watch_close(&connection->lender);
    sup_bulk_rest(&connection->bulk, -1);
    close_given(connection);
    if (connection->in)
        munmap(connection->in, connection->in_room);
    if (connection->out)
        munmap(connection->out, SUP_OUT_ROOM);
    free(connection);
}

/* Takes the descriptor; NULL, and it is closed, when there is no room for it. */
static SupConnection *connection_new(int fd)
{
    SupConnection *connection = calloc(1, sizeof *connection);
    if (!connection) {
        close(fd);
        return NULL;
    }
    connection->input = (SupWatch){.fd = fd, .ready = on_input};
    connection->output = (SupWatch){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .ready = on_room};
    connection->lender.fd = -1;
    sup_bulk_init(&connection->bulk);
    for (int i = 0; i < SUP_MAX_GIVEN; i++)
        connection->given[i] = -1;
    connection->in = map(IN_ROOM);
    connection->in_room = IN_ROOM;
    connection->out = map(SUP_OUT_ROOM);
    sup_list_init(&connection->commands);
    sup_list_init(&connection->requests);
    if (connections.count >= MAX_CONNECTIONS || !connection->in || !connection->out ||
        connection->output.fd < 0 || !sup_watch_set(&connection->input, EPOLLIN)) {
        connection_free(connection);
        return NULL;
    }
    sup_list_append(&connections.all, &connection->link);
    connections.count++;
    return connection;
}

bool sup_connection_open(int fd)
{
    return connection_new(fd) != NULL;
}

/* Never waits: a socket whose queue is full is as good as none. */
int sup_connection_dial(const char *path, const uint8_t nonce[SPR_WIRE_NONCE])
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return ENAMETOOLONG;
    memcpy(name.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&name, sizeof name) < 0) {
        int error = errno;
        sup_close(&fd);
        return error;
    }
    SupConnection *connection = connection_new(fd);
    if (!connection)
        return ENOMEM;
    connection->dialed = true;
    greet(connection, nonce);
    sup_connection_write(connection);
    return 0;
}

static void connection_close(SupConnection *connection)
{
    sup_commands_orphan(connection);
    sup_requests_drop(connection);
    explicit_bzero(connection->in, connection->in_size);
    sup_list_remove(&connection->link);
    connections.count--;
    connection_free(connection);
}

/* Writes; when that made room, lets those go on who waited for it. EPOLLOUT brings us back, so that
 * one fast stream does not keep the loop from everybody else. */
static void flush(SupConnection *connection)
{
    sup_connection_write(connection);
    if (connection->blocked && !connection->broken &&
        sup_connection_pending(connection) < SUP_OUT_DATA / 2) {
        connection->blocked = false;
        sup_commands_resume(connection);
        sup_requests_resume(connection);
        serve_input(connection);
        sup_connection_write(connection);
    }
    bool full = sup_connection_pending(connection) > SUP_OUT_DATA ||
                connection->in_size == connection->in_room;
    bool waits = sup_connection_pending(connection) > 0 || connection->blocked;
    connection->broken |=
        !sup_watch_set(&connection->input, full || connection->closing ? 0 : EPOLLIN) ||
        !sup_watch_set(&connection->output, waits ? EPOLLOUT : 0) ||
        (connection->closing && sup_connection_pending(connection) == 0);
}

/* True when serving one gave something to another that had its turn before. */
static bool flush_all(void)
{
    for (SupLink *at = connections.all.next, *next; at != &connections.all; at = next) {
        next = at->next;
        SupConnection *connection = SUP_CONTAINER(SupConnection, link, at);
        if (!connection->broken && (sup_connection_pending(connection) > 0 || connection->blocked))
            flush(connection);
        if (connection->broken)
            connection_close(connection);
    }
    for (SupLink *at = connections.all.next; at != &connections.all; at = at->next) {
        SupConnection *connection = SUP_CONTAINER(SupConnection, link, at);
        if (connection->broken ||
            (sup_connection_pending(connection) > 0 && connection->output.events == 0))
            return true;
    }
    return false;
}

void sup_connections_flush(void)
{
    while (flush_all())
        ;
}
