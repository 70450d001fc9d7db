#include "kept.h"

#include "../protocol.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEFAULT_LIMIT (1u << 20)
#define FIRST_ROOM (16u * 1024)
#define MOST_OF_ALL (64u << 20)
#define LEAST_OF_ALL (1u << 20)
#define SHARE_OF_MEMORY 16

static size_t used_by_all;

static uint64_t read_number(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    /* "max" of the second version is no number. */
    return n > 0 && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Both versions of control groups, as a container sees its own. */
static size_t limit_of_all(void)
{
    static size_t limit;
    if (limit == 0) {
        uint64_t memory = read_number("/sys/fs/cgroup/memory.max");
        uint64_t old = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        uint64_t share = (memory < old ? memory : old) / SHARE_OF_MEMORY;
        limit = share > MOST_OF_ALL    ? MOST_OF_ALL
                : share < LEAST_OF_ALL ? LEAST_OF_ALL
                                       : (size_t)share;
    }
    return limit;
}

void sup_kept_init(SupKept *kept, uint64_t limit, bool hold)
{
    *kept = (SupKept){.limit = limit > MOST_OF_ALL ? MOST_OF_ALL : (size_t)limit, .hold = hold};
    if (limit == SIZE_MAX)
        kept->limit = DEFAULT_LIMIT;
}

void sup_kept_clear(SupKept *kept)
{
    if (kept->bytes)
        munmap(kept->bytes, kept->room);
    used_by_all -= kept->room;
    kept->bytes = NULL;
    kept->room = 0;
    kept->start = kept->end;
}

static size_t segment(const SupKept *kept, uint64_t offset, uint64_t until)
{
    size_t to_edge = kept->room - (size_t)(offset % kept->room);
    return until - offset < to_edge ? (size_t)(until - offset) : to_edge;
}

size_t sup_kept_copy(const SupKept *kept, uint64_t *offset, void *to, size_t room)
{
    if (*offset < kept->start)
        *offset = kept->start;
    size_t done = 0;
    for (uint64_t at = *offset; at < kept->end && done < room;) {
        size_t n = segment(kept, at, kept->end);
        if (n > room - done)
            n = room - done;
        memcpy((uint8_t *)to + done, kept->bytes + at % kept->room, n);
        at += n;
        done += n;
    }
    return done;
}

/* What holds its process back has some room in any case: nothing else would set it free. */
static bool grow(SupKept *kept)
{
    size_t room = kept->room == 0 ? FIRST_ROOM : kept->room * 2;
    bool must = kept->hold && kept->room == 0;
    if (room > kept->limit)
        room = kept->limit;
    if (room <= kept->room)
        return false;
    while (!must && used_by_all + (room - kept->room) > limit_of_all()) {
        if (!sup_process_drop_oldest_output())
            return false;
    }
    uint8_t *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return false;
    madvise(bytes, room, MADV_DONTFORK);
    for (uint64_t at = kept->start; at < kept->end;) {
        size_t n = segment(kept, at, kept->end);
        size_t to_edge = room - (size_t)(at % room);
        if (n > to_edge)
            n = to_edge;
        memcpy(bytes + at % room, kept->bytes + at % kept->room, n);
        at += n;
    }
    if (kept->bytes)
        munmap(kept->bytes, kept->room);
    used_by_all += room - kept->room;
    kept->bytes = bytes;
    kept->room = room;
    return true;
}

void sup_kept_append(SupKept *kept, const void *bytes, size_t size)
{
    uint64_t end = kept->end + size;
    if (kept->room < size && !(grow(kept) && kept->room >= size)) {
        kept->start = kept->end = end;
        return;
    }
    for (uint64_t at = kept->end; at < end;) {
        size_t n = segment(kept, at, end);
        memcpy(kept->bytes + at % kept->room, (const uint8_t *)bytes + (at - kept->end), n);
        at += n;
    }
    kept->end = end;
    if (end - kept->start > kept->room)
        kept->start = end - kept->room;
}

static ssize_t count_only(SupKept *kept, int fd)
{
    static char scratch[SPR_WIRE_MAX_DATA];
    ssize_t n = read(fd, scratch, sizeof scratch);
    if (n > 0)
        kept->start = kept->end += (uint64_t)n;
    return n;
}

/* What is read at once may be a packet, of which a read with less room loses the rest. */
static size_t least_room(const SupKept *kept)
{
    return kept->room >= 2 * PIPE_BUF ? PIPE_BUF : 1;
}

ssize_t sup_kept_fill(SupKept *kept, int fd, bool *ret_full)
{
    uint64_t needed = kept->start;
    if (kept->hold && kept->taken > needed)
        needed = kept->taken < kept->end ? kept->taken : kept->end;
    size_t free_room = kept->room - (size_t)(kept->end - needed);
    if (free_room < PIPE_BUF && grow(kept))
        free_room = kept->room - (size_t)(kept->end - needed);
    if (kept->hold && free_room < least_room(kept)) {
        *ret_full = true;
        return 0;
    }
    if (kept->room == 0)
        return count_only(kept, fd);
    /* Full: the oldest make way. */
    size_t most = free_room >= least_room(kept) ? free_room : kept->room;
    if (most > SPR_WIRE_MAX_DATA)
        most = SPR_WIRE_MAX_DATA;
    size_t first = segment(kept, kept->end, kept->end + most);
    struct iovec parts[] = {{kept->bytes + kept->end % kept->room, first},
                            {kept->bytes, most - first}};
    ssize_t n = readv(fd, parts, most > first ? 2 : 1);
    if (n > 0) {
        kept->end += (uint64_t)n;
        if (kept->end - kept->start > kept->room)
            kept->start = kept->end - kept->room;
    }
    return n;
}
