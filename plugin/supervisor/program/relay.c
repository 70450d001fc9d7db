#include "relay.h"

#include "../protocol.h"
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_FOR_SERVER_MS 10000

/* Anybody may have put a socket of that name there: what answers must be our own user's. */
static int connect_to(const struct sockaddr_un *name)
{
    int64_t until = sup_after_ms(WAIT_FOR_SERVER_MS);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) == 0;
        if (fd < 0 || (connected && sup_peer_is_own(fd)))
            return fd;
        int error = connected ? EACCES : errno;
        close(fd);
        errno = error;
        if ((error != ENOENT && error != ECONNREFUSED) || sup_now_ms() >= until)
            return -1;
        struct timespec time = {0, 2000000};
        nanosleep(&time, NULL);
    }
}

/* Standard input and output become the server's. */
static bool lend(int fd)
{
    uint8_t frame[SPR_WIRE_HEADER];
    spr_wire_put_header(frame, (SprWireHeader){.type = SPR_WIRE_LEND});
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    struct iovec iov = {frame, sizeof frame};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = sizeof space.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
    memcpy(CMSG_DATA(c), (int[]){0, 1}, 2 * sizeof(int));
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof frame;
}

int sup_relay(const char *directory)
{
    struct sockaddr_un name;
    prctl(PR_SET_DUMPABLE, 0);
    int fd = sup_socket_name(directory, &name) ? connect_to(&name) : -1;
    if (fd < 0) {
        sup_complain("no supervisor", directory);
        return 125;
    }
    sup_reset_signals();
    if (!lend(fd))
        return 125;
    close(0);
    close(1);
    char end;
    while (read(fd, &end, 1) < 0 && errno == EINTR)
        ;
    return 0;
}
