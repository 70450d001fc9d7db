#include "supervisor/client/pipe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t socket_read(void *ctx, void *buffer, gsize size)
{
    return recv(GPOINTER_TO_INT(ctx), buffer, size, MSG_DONTWAIT);
}

static ssize_t socket_write(void *ctx, const void *data, gsize size)
{
    return send(GPOINTER_TO_INT(ctx), data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void socket_shut(void *ctx)
{
    shutdown(GPOINTER_TO_INT(ctx), SHUT_RDWR);
}

static void socket_close(void *ctx)
{
    close(GPOINTER_TO_INT(ctx));
}

SprPipe spr_pipe_for_socket(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return (SprPipe){.ctx = GINT_TO_POINTER(fd),
                     .fd = fd,
                     .read = socket_read,
                     .write = socket_write,
                     .shut = socket_shut,
                     .close = socket_close};
}
