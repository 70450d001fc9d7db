/*
 * What a hostile sandbox runs, as root and with all capabilities it may have: static, and free to
 * do what no shell can. `attacker MODE`; test_socket.c says what has to come of each.
 */
#include "../../plugin/supervisor/protocol.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FOLDER "/.sprov/host"
#define OWN_SOCKET "/.sprov/run/0.0.sock"
#define FLOOD 600
#define RENAME_EXCHANGE (1 << 1) /* of linux/fs.h */

/* The path of the host's first socket. */
static const char *find_socket(void)
{
    static char path[512];
    DIR *dir = opendir(FOLDER);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_type == DT_SOCK)
            snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
    }
    if (dir)
        closedir(dir);
    return path;
}

static int dial(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

static void send_frame(int fd, SprWireHeader header, const void *payload)
{
    uint8_t bytes[SPR_WIRE_HEADER + 1024];
    spr_wire_put_header(bytes, header);
    if (header.size > 0)
        memcpy(bytes + SPR_WIRE_HEADER, payload, header.size);
    (void)!write(fd, bytes, SPR_WIRE_HEADER + header.size);
}

static void greet_with(int fd, const uint8_t nonce[SPR_WIRE_NONCE], uint64_t features)
{
    uint8_t payload[48 + SPR_WIRE_NONCE] = {0};
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, SPR_WIRE_VERSION, 2);
    spr_wire_put(&w, 0, 2);
    spr_wire_put(&w, features, 8);
    memcpy(payload + 48, nonce, SPR_WIRE_NONCE);
    send_frame(fd, (SprWireHeader){.size = sizeof payload, .type = SPR_WIRE_HELLO}, payload);
}

static void greet(int fd, const uint8_t nonce[SPR_WIRE_NONCE])
{
    greet_with(fd, nonce, SPR_WIRE_FEATURE_DIAL);
}

static void send_descriptors(int fd)
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = sizeof space.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), (const int[]){0, 1}, 2 * sizeof(int));
    sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Takes itself for the supervisor, with all that a connection can carry. */
static int impersonate(void)
{
    static uint8_t nonce[SPR_WIRE_NONCE], garbage[65536];
    const char *path = find_socket();
    int made = 0;
    memset(garbage, 0xa5, sizeof garbage);
    for (int i = 0; i < 60; i++) {
        int fd = dial(path);
        if (fd < 0)
            continue;
        made++;
        nonce[0] = (uint8_t)(i / 4);
        if (i % 4 != 3)
            greet(fd, nonce);
        if (i % 4 == 1)
            send_descriptors(fd);
        if (i % 4 != 0)
            (void)!send(fd, garbage, sizeof garbage, MSG_NOSIGNAL);
    }
    printf("%d connections\n", made);
    return made > 0 ? 0 : 1;
}

/* Fills the queue and keeps it full until it is killed. */
_Noreturn static void flood(void)
{
    const char *path = find_socket();
    int made = 0;
    while (made < FLOOD && dial(path) >= 0)
        made++;
    printf("flooded\n");
    fflush(stdout);
    for (;;) {
        dial(path);
        usleep(1000);
    }
}

/* ----------------------------------------------------------------------------- the folder */

static int failures(int result, const char *what)
{
    if (result < 0)
        return 0;
    printf("%s\n", what);
    return 1;
}

/* Prints what succeeded of all that would change the host's folder. */
static int change_folder(void)
{
    const char *path = find_socket();
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = FOLDER "/own"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), done = 0;
    if (!*path)
        return 2;
    done += failures(open(FOLDER "/file", O_RDWR | O_CREAT, 0666), "a file");
    done += failures(mkdir(FOLDER "/directory", 0777), "a directory");
    done += failures(symlink("/etc/shadow", FOLDER "/link"), "a symbolic link");
    done += failures(link(path, FOLDER "/hard"), "a hard link");
    done += failures(mknod(FOLDER "/disk", S_IFBLK | 0666, makedev(8, 0)), "a disk");
    done += failures(mknod(FOLDER "/memory", S_IFCHR | 0666, makedev(1, 1)), "memory");
    done += failures(mkfifo(FOLDER "/fifo", 0666), "a fifo");
    done += failures(bind(fd, (struct sockaddr *)&name, sizeof name), "a socket");
    done += failures(rename(path, FOLDER "/renamed"), "renamed");
    done += failures(unlink(path), "unlinked");
    done += failures(chmod(path, 0), "mode of the socket");
    done += failures(chmod(FOLDER, 0777), "mode of the folder");
    done += failures(chown(path, 1, 1), "owner");
    done += failures(utimensat(AT_FDCWD, path, NULL, 0), "times");
    done += failures(setxattr(FOLDER, "user.x", "y", 1, 0), "attributes");
    done += failures(rmdir(FOLDER), "removed");
    done += failures(mount("none", FOLDER, NULL, MS_REMOUNT | MS_BIND, NULL), "remounted");
    done += failures(mount(FOLDER, "/mnt", NULL, MS_BIND, NULL), "mounted elsewhere");
    done += failures(umount2(FOLDER, MNT_DETACH), "unmounted");
    done += failures(open(FOLDER "/..", O_RDONLY | O_DIRECTORY) < 0
                         ? -1
                         : open(FOLDER "/../../../../root/.ssh", O_RDONLY | O_DIRECTORY),
                     "the host's root");
    return done;
}

/* -------------------------------------------------------------- a supervisor of its own */

/* Shuts both ways of what the host passes in. */
static ssize_t read_and_shut(int fd, void *into, size_t size)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } space;
    struct iovec iov = {into, size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = sizeof space.bytes};
    ssize_t n = recvmsg(fd, &msg, 0);
    if (n < 0 && errno == ENOTSOCK)
        return read(fd, into, size);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    for (size_t i = 0; c && CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++)
        shutdown(((int *)CMSG_DATA(c))[i], SHUT_RDWR);
    return n;
}

static bool read_whole(int fd, void *into, size_t size, int manner)
{
    for (size_t done = 0; done < size;) {
        char *at = (char *)into + done;
        ssize_t n = manner == 's' ? read_and_shut(fd, at, size - done) : read(fd, at, size - done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* What comes of a command: garbage, or descriptors with a byte each, or nothing. */
static void answer_run(int fd, int manner)
{
    static uint8_t garbage[65536];
    memset(garbage, 0xff, sizeof garbage);
    if (manner == 'g')
        (void)!write(fd, garbage, sizeof garbage);
    for (int i = 0; i < 50 && manner == 'd'; i++)
        send_descriptors(fd);
}

static void serve_one(int in, int out, int manner)
{
    static uint8_t payload[SPR_WIRE_MAX_RUN];
    uint8_t head[SPR_WIRE_HEADER], done[16] = {0};
    int direct = -1;
    uint64_t features = SPR_WIRE_FEATURE_DIAL;
    if (manner == 's')
        features |= SPR_WIRE_FEATURE_FILES | SPR_WIRE_FEATURE_INPUT;
    while (read_whole(in, head, sizeof head, manner)) {
        SprWireHeader header = spr_wire_get_header(head);
        if (header.size > sizeof payload || !read_whole(in, payload, header.size, manner))
            return;
        if (header.type == SPR_WIRE_HELLO)
            greet_with(out, payload, features);
        if (header.type == SPR_WIRE_RUN)
            answer_run(out, manner);
        if (header.type == SPR_WIRE_DIAL) {
            direct = dial((const char *)payload + SPR_WIRE_NONCE);
            greet_with(direct, payload, features);
            fcntl(direct, F_SETFL, 0);
            send_frame(out,
                       (SprWireHeader){
                           .size = sizeof done, .channel = header.channel, .type = SPR_WIRE_DONE},
                       done);
            if (fork() != 0) { /* the next one has to come from the same process */
                serve_one(direct, direct, manner);
                _exit(0);
            }
        }
    }
}

/* A relay's two pipes come with its first frame. */
static void serve_relay(int fd, int manner)
{
    uint8_t frame[SPR_WIRE_HEADER];
    int lent[2];
    union {
        char bytes[CMSG_SPACE(sizeof lent)];
        struct cmsghdr align;
    } space;
    struct iovec iov = {frame, sizeof frame};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = sizeof space.bytes};
    if (recvmsg(fd, &msg, 0) != sizeof frame || !CMSG_FIRSTHDR(&msg))
        return;
    memcpy(lent, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof lent);
    serve_one(lent[0], lent[1], manner);
}

/* In place of the supervisor that was killed, for relays to find. */
static int serve(int manner)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = OWN_SOCKET};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(OWN_SOCKET);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) < 0 || listen(listener, 16) < 0)
        return 1;
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (fork() != 0)
        return 0;
    setsid();
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) {
        if (fork() == 0) {
            serve_relay(fd, manner);
            _exit(0);
        }
    }
    return 0;
}

/* A directory that is now itself and now a link, until it is killed. */
_Noreturn static void swap(const char *one, const char *other)
{
    for (;;) {
        syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
        usleep(3000);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "impersonate") == 0)
        return impersonate();
    if (strcmp(mode, "flood") == 0)
        flood();
    if (strcmp(mode, "folder") == 0)
        return change_folder();
    if (strcmp(mode, "serve") == 0 && argc > 2)
        return serve(argv[2][0]);
    if (strcmp(mode, "swap") == 0 && argc > 3)
        swap(argv[2], argv[3]);
    return 99;
}
