#include "bulk.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ROOM (512 * 1024)

void sup_bulk_init(SupBulk *bulk)
{
    *bulk = (SupBulk){.ends = {-1, -1}};
}

bool sup_bulk_open(SupBulk *bulk, int output)
{
    if (bulk->ends[0] >= 0)
        return true;
    if (pipe2(bulk->ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    fcntl(bulk->ends[1], F_SETPIPE_SZ, ROOM);
    int usual = fcntl(output, F_GETPIPE_SZ);
    if (bulk->usual_room == 0 && usual < ROOM && fcntl(output, F_SETPIPE_SZ, ROOM) > 0)
        bulk->usual_room = usual;
    return true;
}

/* Moves up to size bytes between two pipes, until there are no more or no room: how many. */
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

size_t sup_bulk_put(SupBulk *bulk, const uint8_t *head, size_t head_size, int pipe, size_t size)
{
    if (write(bulk->ends[1], head, head_size) != (ssize_t)head_size)
        return 0; /* a pipe takes so little as a whole or not at all */
    size_t put = head_size + move(pipe, bulk->ends[1], size);
    bulk->size += put;
    return put;
}

bool sup_bulk_write(SupBulk *bulk, int output)
{
    bulk->size -= move(bulk->ends[0], output, bulk->size);
    return bulk->size == 0;
}

void sup_bulk_rest(SupBulk *bulk, int output)
{
    sup_close(&bulk->ends[0]);
    sup_close(&bulk->ends[1]);
    if (bulk->usual_room > 0 && fcntl(output, F_SETPIPE_SZ, bulk->usual_room) > 0)
        bulk->usual_room = 0;
}
