#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

/* False with errno set; ECANCELED when the token fired while there was no room. */
static bool wait_for_room(const HsSink *sink)
{
    struct pollfd fds[] = {{.fd = sink->fd, .events = POLLOUT},
                           {.fd = sink->cancel_fd, .events = POLLIN}};
    for (;;) {
        int n = poll(fds, G_N_ELEMENTS(fds), -1);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0 && fds[0].revents)
            return true;
        if (n > 0) {
            errno = ECANCELED;
            return false;
        }
    }
}

/* A ready pipe has room for PIPE_BUF bytes: writing no more than that never blocks, and O_NONBLOCK,
 * which would reach everybody who shares the pipe, is not needed. */
static ssize_t write_some(const HsSink *sink, const char *data, size_t size)
{
    if (sink->regular)
        return write(sink->fd, data, size);
    if (!wait_for_room(sink))
        return -1;
    return write(sink->fd, data, MIN(size, PIPE_BUF));
}

static sprov_flow sink_write(void *ctx, const void *data, size_t size)
{
    HsSink *sink = ctx;
    const char *next = data;
    while (size > 0) {
        ssize_t n = write_some(sink, next, size);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            sink->failure = errno;
            return SPROV_FLOW_STOP;
        }
        next += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return SPROV_FLOW_CONTINUE;
}

void hs_sink_init(HsSink *sink, int fd, int cancel_fd)
{
    struct stat st;
    *sink = (HsSink){.sink = SPROV_INIT(sprov_sink), .fd = fd, .cancel_fd = cancel_fd};
    sink->sink.ctx = sink;
    sink->sink.write = sink_write;
    sink->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static sprov_source_status source_read(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    HsSource *source = ctx;
    struct pollfd ready = {.fd = source->fd, .events = POLLIN};
    *count = 0;
    if (source->left == 0)
        return SPROV_SOURCE_OK;
    if (poll(&ready, 1, 0) <= 0)
        return SPROV_SOURCE_AGAIN;
    ssize_t n = read(source->fd, buffer, (size_t)MIN(source->left, capacity));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return SPROV_SOURCE_AGAIN;
    if (n < 0) {
        source->failure = errno;
        return SPROV_SOURCE_GIVE_UP;
    }
    source->left -= (uint64_t)n;
    *count = (size_t)n;
    return SPROV_SOURCE_OK;
}

void hs_source_init(HsSource *source, int fd, bool sized)
{
    struct stat st;
    *source = (HsSource){.source = SPROV_INIT(sprov_source), .fd = fd, .left = UINT64_MAX};
    source->source.fd = fd != 0 ? fd : fcntl(0, F_DUPFD_CLOEXEC, 3); /* there 0 means none */
    source->source.ctx = source;
    source->source.read = source_read;
    off_t at = sized && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
    /* Files of /proc say that they are empty: those are read to their end. */
    if (at >= 0 && st.st_size > at)
        source->left = (uint64_t)(st.st_size - at);
    source->source.size = source->left;
}

bool hs_fail_write(GError **error, const char *name, int errno_value)
{
    int code = errno_value == EPIPE       ? HS_READER_GONE
               : errno_value == ECANCELED ? SPROV_E_CANCELLED
                                          : SPROV_E_IO;
    return hs_fail(error, code, "cannot write %s: %s", name, g_strerror(errno_value));
}

bool hs_print(const char *text, GError **error)
{
    HsSink sink;
    hs_sink_init(&sink, STDOUT_FILENO, -1);
    if (sink_write(&sink, text, strlen(text)) == SPROV_FLOW_CONTINUE)
        return true;
    return hs_fail_write(error, "standard output", sink.failure);
}
