#include "fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define BLOCK 65536u
#define SPLICE (1u << 20) /* the pipe's size is the limit */
#define OUT_ROOM (2 * (BLOCK + SPR_FILE_HEADER + SPR_FILE_MAX_RECORD))
#define IN_ROOM 32768u /* read ahead */
#define DIRECT 4096u   /* this many bytes are not */
#define LITTLE 4096u   /* fits into every pipe that is empty */

static struct {
    int in, out;
    void (*tell)(void); /* until it was called */
    bool in_broken, out_broken;
    size_t out_size, in_at, in_size;
    uint32_t chunk; /* bytes left of it */
    bool item_open; /* more chunks may come */
    uint8_t out_bytes[OUT_ROOM], in_bytes[IN_ROOM];
} io;

void sup_fileio_begin(int in, int out, void (*tell)(void))
{
    io.in = in;
    io.out = out;
    io.tell = tell;
    io.in_broken = io.out_broken = false;
    io.out_size = io.in_at = io.in_size = 0;
    io.chunk = 0;
    io.item_open = false;
}

bool sup_fileio_is_broken(void)
{
    return io.in_broken || io.out_broken;
}

/* ----------------------------------------------------------------------------- records */

void sup_fileio_tell(void)
{
    if (io.tell)
        io.tell();
    io.tell = NULL;
}

static void write_out(void)
{
    for (size_t at = 0; at < io.out_size && !io.out_broken;) {
        ssize_t n = write(io.out, io.out_bytes + at, io.out_size - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            io.out_broken = true;
    }
    io.out_size = 0;
}

/* More comes, maybe much later. */
static void push(void)
{
    if (io.out_size > 0)
        sup_fileio_tell();
    write_out();
}

void sup_fileio_flush(void)
{
    if (io.out_size > LITTLE)
        sup_fileio_tell();
    write_out();
}

static SprWireWriter begin_record(SprFileKind kind, size_t size)
{
    if (io.out_size + SPR_FILE_HEADER + size > OUT_ROOM)
        push();
    SprWireWriter w = {io.out_bytes + io.out_size, SPR_FILE_HEADER + size, false};
    spr_wire_put(&w, kind, 4);
    spr_wire_put(&w, size, 4);
    io.out_size += SPR_FILE_HEADER + size;
    return w;
}

static size_t text_size(const char *text)
{
    return strnlen(text, SPR_FILE_MAX_PATH - 1) + 1;
}

static void put_text(SprWireWriter *w, const char *text)
{
    spr_wire_put_bytes(w, text, text_size(text) - 1);
    spr_wire_put(w, 0, 1);
}

SprFileType sup_fileio_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return SPR_FILE_TYPE_FILE;
    case S_IFDIR:
        return SPR_FILE_TYPE_DIRECTORY;
    case S_IFLNK:
        return SPR_FILE_TYPE_LINK;
    case S_IFIFO:
        return SPR_FILE_TYPE_PIPE;
    case S_IFCHR:
        return SPR_FILE_TYPE_CHARACTERS;
    case S_IFBLK:
        return SPR_FILE_TYPE_BLOCKS;
    default:
        return SPR_FILE_TYPE_SOCKET;
    }
}

/* What 64 bits can't hold is as far away as they are sure to. */
static int64_t time_in_ns(struct timespec time)
{
    int64_t most = 9000000000, seconds = time.tv_sec;
    seconds = seconds > most ? most : seconds < -most ? -most : seconds;
    return seconds * 1000000000 + time.tv_nsec;
}

void sup_fileio_entry(const char *path, const char *target, SprFileType type, const struct stat *st,
                      uint64_t length)
{
    SprWireWriter w =
        begin_record(SPR_FILE_ENTRY, SPR_FILE_ENTRY_FIXED + text_size(path) + text_size(target));
    spr_wire_put(&w, type, 4);
    spr_wire_put(&w, st->st_mode & 07777, 4);
    spr_wire_put(&w, st->st_uid, 4);
    spr_wire_put(&w, st->st_gid, 4);
    spr_wire_put(&w, major(st->st_rdev), 4);
    spr_wire_put(&w, minor(st->st_rdev), 4);
    spr_wire_put(&w, (uint64_t)st->st_size, 8);
    spr_wire_put(&w, (uint64_t)time_in_ns(st->st_mtim), 8);
    spr_wire_put(&w, length, 8);
    put_text(&w, path);
    put_text(&w, target);
}

void sup_fileio_status(int error, uint32_t number, const char *path)
{
    SprWireWriter w = begin_record(SPR_FILE_STATUS, 8 + text_size(path));
    spr_wire_put(&w, (uint32_t)error, 4);
    spr_wire_put(&w, number, 4);
    put_text(&w, path);
}

void sup_fileio_end(void)
{
    begin_record(SPR_FILE_END, 0);
    sup_fileio_flush();
}

/* ------------------------------------------------------------------------------- bytes */

/* Up to `most` bytes into the buffer behind what is there; fewer only at the end. -1 with errno. */
static ssize_t gather(int fd, size_t most)
{
    size_t done = 0;
    while (done < most) {
        ssize_t n = read(fd, io.out_bytes + io.out_size + done, most - done);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0)
            done += (size_t)n;
    }
    io.out_size += done;
    return (ssize_t)done;
}

/* The rest of a file: all of `left` bytes, or, when nobody knows, at most; 0 or an errno. */
static int send_rest(int fd, uint64_t left, bool known)
{
    bool by_splice = known;
    push();
    while (left > 0 && !io.out_broken) {
        size_t piece = by_splice ? SPLICE : BLOCK, most = left < piece ? (size_t)left : piece;
        ssize_t n = by_splice ? splice(fd, NULL, io.out, NULL, most, 0) : gather(fd, most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && by_splice && errno == EINVAL) {
            by_splice = false;
            continue;
        }
        if (n < 0 && errno == EPIPE)
            io.out_broken = true;
        if (n < 0)
            return errno;
        if (n == 0)
            return known ? SPR_FILE_E_CHANGED : 0;
        left -= (uint64_t)n;
        if (!by_splice)
            push();
    }
    return 0;
}

/* Files of the kernel have size 0 or a page whatever is in them: so the first block is read before
 * the length is told. */
int sup_fileio_send(int fd, const char *path, const struct stat *st, uint64_t offset, uint64_t most,
                    bool needs_size, bool *ret_status)
{
    uint64_t size = (uint64_t)st->st_size, wanted = most;
    if (size > 0)
        wanted = offset >= size ? 0 : most < size - offset ? most : size - offset;
    else if (offset > INT64_MAX)
        wanted = 0;
    *ret_status = true;
    if (wanted > 0 && offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)
        return errno;

    if (io.out_size > BLOCK)
        push();
    size_t before = io.out_size;
    sup_fileio_entry(path, "", SPR_FILE_TYPE_FILE, st, 0);
    size_t block = wanted < BLOCK ? (size_t)wanted : BLOCK;
    ssize_t n = gather(fd, block);
    uint64_t length = n < 0 || (size_t)n < block || wanted == block ? (uint64_t)n
                      : size > 0                                    ? wanted
                                                                    : SPR_FILE_UNKNOWN;
    if (n < 0 || (needs_size && length == SPR_FILE_UNKNOWN)) {
        io.out_size = before;
        return n < 0 ? errno : SPR_FILE_E_ENDLESS;
    }
    SprWireWriter w = {io.out_bytes + before + SPR_FILE_HEADER + 40, 8, false};
    spr_wire_put(&w, length, 8);
    if (length == (uint64_t)n)
        return 0;
    *ret_status = false;
    bool known = length != SPR_FILE_UNKNOWN;
    return send_rest(fd, (known ? length : wanted) - (uint64_t)n, known);
}

/* ------------------------------------------------------------------------------- items */

/* What was answered goes out before a wait. 0 when it is broken. */
static size_t read_in(uint8_t *to, size_t room)
{
    push();
    while (!io.in_broken) {
        ssize_t n = read(io.in, to, room);
        if (n > 0)
            return (size_t)n;
        io.in_broken = n == 0 || errno != EINTR;
    }
    return 0;
}

static bool fill(void)
{
    if (io.in_at == io.in_size)
        io.in_at = io.in_size = 0;
    size_t n = read_in(io.in_bytes + io.in_size, IN_ROOM - io.in_size);
    io.in_size += n;
    return n > 0;
}

/* The next size bytes, all of them, at most a record. */
static const uint8_t *take_exactly(size_t size)
{
    if (IN_ROOM - io.in_at < size) {
        memmove(io.in_bytes, io.in_bytes + io.in_at, io.in_size - io.in_at);
        io.in_size -= io.in_at;
        io.in_at = 0;
    }
    while (io.in_size - io.in_at < size) {
        if (!fill())
            return NULL;
    }
    io.in_at += size;
    return io.in_bytes + io.in_at - size;
}

static bool take_number(uint32_t *ret_number)
{
    const uint8_t *at = take_exactly(4);
    SprWireReader r = {at, 4, false};
    *ret_number = at ? (uint32_t)spr_wire_get(&r, 4) : 0;
    return at != NULL;
}

bool sup_fileio_next(SupFileItem *item)
{
    uint32_t kind, size;
    if (!take_number(&kind) || !take_number(&size) || kind == SPR_FILE_END)
        return false;
    const uint8_t *at = size <= SPR_FILE_MAX_RECORD ? take_exactly(size) : NULL;
    SprWireReader r = {at, at ? size : 0, false};
    item->kind = (SprFileKind)kind;
    io.item_open = kind == SPR_FILE_FILE;
    item->mode = (uint32_t)spr_wire_get(&r, 4);
    item->mtime_ns = (int64_t)spr_wire_get(&r, 8);
    item->path = spr_wire_get_text(&r);
    item->target = spr_wire_get_text(&r);
    io.in_broken |= r.bad || r.left > 0 || kind < SPR_FILE_FILE || kind > SPR_FILE_SET_DIRECTORY;
    return !io.in_broken;
}

/* Bytes of the current chunk: those read ahead, else straight from the stream. */
static size_t take_some(uint8_t *to, size_t room)
{
    size_t n = room < io.chunk ? room : io.chunk;
    if (io.in_at == io.in_size && n >= DIRECT) {
        n = read_in(to, n);
    } else if (io.in_at < io.in_size || fill()) {
        n = n < io.in_size - io.in_at ? n : io.in_size - io.in_at;
        memcpy(to, io.in_bytes + io.in_at, n);
        io.in_at += n;
    } else {
        n = 0;
    }
    io.chunk -= (uint32_t)n;
    return n;
}

size_t sup_fileio_take(uint8_t *to, size_t room)
{
    size_t done = 0;
    while (done < room && io.item_open && !io.in_broken) {
        if (io.chunk > 0)
            done += take_some(to + done, room - done);
        else
            io.item_open = take_number(&io.chunk) && io.chunk > 0;
    }
    return done;
}
