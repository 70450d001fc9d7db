#include "bulk.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (512 * 1024)

void sup_bulk_init(SupBulk *bulk)
{
    *bulk = (SupBulk){.ends = {-1, -1}};
}

/* Moves up to size bytes between a pipe and a socket, until there are no more or no room: how many.
 */
static size_t move(int from, int to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = splice(from, NULL, to, NULL, size - done, SPLICE_F_NONBLOCK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* Old kernels, and what only looks like Linux, may not know this way; a byte of their own tells. */
static bool try_way(void)
{
    int pipe[2] = {-1, -1}, ends[2] = {-1, -1};
    char byte = 0;
    bool works = pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0 &&
                 socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0 &&
                 write(pipe[1], &byte, 1) == 1 && move(pipe[0], ends[1], 1) == 1 &&
                 move(ends[0], pipe[1], 1) == 1;
    for (int i = 0; i < 2; i++) {
        sup_close(&pipe[i]);
        sup_close(&ends[i]);
    }
    return works;
}

static bool way_works(void)
{
    static enum {
        UNKNOWN,
        WORKS,
        FAILS
    } way;
    if (way == UNKNOWN)
        way = try_way() ? WORKS : FAILS;
    return way == WORKS;
}

bool sup_bulk_open(SupBulk *bulk, int output)
{
    const int room = ROOM;
    if (bulk->ends[0] >= 0)
        return true;
    if (!way_works() ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, bulk->ends) < 0)
        return false;
    setsockopt(bulk->ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    int usual = fcntl(output, F_GETPIPE_SZ);
    if (bulk->usual_room == 0 && usual < ROOM && fcntl(output, F_SETPIPE_SZ, ROOM) > 0)
        bulk->usual_room = usual;
    return true;
}

size_t sup_bulk_put(SupBulk *bulk, const uint8_t *head, size_t head_size, int pipe, size_t size)
{
    if (send(bulk->ends[1], head, head_size, MSG_NOSIGNAL) != (ssize_t)head_size)
        return 0; /* a socket takes so little as a whole or not at all */
    size_t put = head_size + move(pipe, bulk->ends[1], size);
    bulk->size += put;
    return put;
}

bool sup_bulk_write(SupBulk *bulk, int output)
{
    bulk->size -= move(bulk->ends[0], output, bulk->size);
    return bulk->size == 0;
}

static size_t take(SupBulk *bulk, uint8_t *to)
{
    size_t done = 0;
    while (done < bulk->size) {
        ssize_t n = recv(bulk->ends[0], to + done, bulk->size - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    bulk->size -= done;
    return done;
}

size_t sup_bulk_take(SupBulk *bulk, int pipe, size_t size, uint8_t *to)
{
    size_t done = take(bulk, to), left = size;
    for (size_t n = 1; n > 0 && left > 0 && bulk->size == 0; left -= n) {
        n = bulk->size = move(pipe, bulk->ends[1], left);
        done += take(bulk, to + done);
    }
    return done;
}

void sup_bulk_rest(SupBulk *bulk, int output)
{
    sup_close(&bulk->ends[0]);
    sup_close(&bulk->ends[1]);
    if (bulk->usual_room > 0 && fcntl(output, F_SETPIPE_SZ, bulk->usual_room) > 0)
        bulk->usual_room = 0;
}
