#include "supervisor/client/pipe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Without room for control messages the kernel drops what descriptors come. */
static ssize_t socket_read(void *ctx, void *buffer, gsize size)
{
    return recv(GPOINTER_TO_INT(ctx), buffer, size, MSG_DONTWAIT);
}

static ssize_t socket_write(void *ctx, const void *data, gsize size)
{
    return send(GPOINTER_TO_INT(ctx), data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t socket_write_with(void *ctx, const void *data, gsize size, const int *fds,
                                 guint n_fds)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    struct iovec iov = {(void *)data, size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = CMSG_SPACE(n_fds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    return sendmsg(GPOINTER_TO_INT(ctx), &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void socket_shut(void *ctx)
{
    shutdown(GPOINTER_TO_INT(ctx), SHUT_RDWR);
}

/* A child that the host forked may hold the descriptor, too. */
static void socket_close(void *ctx)
{
    socket_shut(ctx);
    close(GPOINTER_TO_INT(ctx));
}

SprPipe spr_pipe_for_socket(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return (SprPipe){.ctx = GINT_TO_POINTER(fd),
                     .fd = fd,
                     .read = socket_read,
                     .write = socket_write,
                     .write_with = socket_write_with,
                     .shut = socket_shut,
                     .close = socket_close};
}
