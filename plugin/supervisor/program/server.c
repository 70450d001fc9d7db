#include "server.h"

#include "connection.h"
#include "filewrite.h"
#include "main_child.h"
#include "pool.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND 64
#define BACKLOG 128
#define ACCEPT_AGAIN_MS 200 /* when there was no descriptor for a client */

static struct {
    int epoll;
    SupWatch listener, signals;
    SupLink timers;
    SupTimer listen_again;
    struct epoll_event round[ROUND];
    int round_at, round_size;
    bool stopping;
    int code;
} server = {.epoll = -1, .listener.fd = -1};

bool sup_watch_set(SupWatch *watch, uint32_t events)
{
    if (watch->events == events || watch->fd < 0)
        return true;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int op = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(server.epoll, op, watch->fd, &event) < 0)
        return false;
    watch->events = events;
    return true;
}

void sup_watch_close(SupWatch *watch)
{
    sup_watch_set(watch, 0);
    sup_close(&watch->fd);
    for (int i = server.round_at; i < server.round_size; i++) {
        if (server.round[i].data.ptr == watch)
            server.round[i].data.ptr = NULL;
    }
}

void sup_timer_init(SupTimer *timer, void (*fire)(SupTimer *timer))
{
    sup_list_init(&timer->link);
    timer->fire = fire;
}

void sup_timer_set(SupTimer *timer, int64_t in_ms)
{
    sup_list_remove(&timer->link);
    timer->at_ms = sup_after_ms(in_ms);
    SupLink *at = &server.timers;
    while (at->prev != &server.timers &&
           SUP_CONTAINER(SupTimer, link, at->prev)->at_ms > timer->at_ms)
        at = at->prev;
    sup_list_append(at, &timer->link);
}

void sup_timer_clear(SupTimer *timer)
{
    sup_list_remove(&timer->link);
}

/* In ms; -1 for never. */
static int time_to_next_timer(void)
{
    if (sup_list_is_empty(&server.timers))
        return -1;
    int64_t left = SUP_CONTAINER(SupTimer, link, server.timers.next)->at_ms - sup_now_ms();
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static void run_timers(void)
{
    while (time_to_next_timer() == 0) {
        SupTimer *timer = SUP_CONTAINER(SupTimer, link, server.timers.next);
        sup_list_remove(&timer->link);
        timer->fire(timer);
    }
}

bool sup_socket_name(const char *directory, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(name->sun_path, sizeof name->sun_path, "%s/%u.%u.sock", directory,
                     (unsigned)getuid(), (unsigned)getgid());
    return n > 0 && (size_t)n < sizeof name->sun_path;
}

/* The file's mode says the same, unless the sandbox changed it. */
bool sup_peer_is_own(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

/* One of ours: what another user has put there does not count. */
static bool someone_answers(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool connected = connect(fd, (const struct sockaddr *)name, sizeof *name) == 0;
    bool answers = connected ? sup_peer_is_own(fd) : errno == EAGAIN;
    sup_close(&fd);
    return answers;
}

void sup_complain(const char *what, const char *directory)
{
    char line[256];
    struct sockaddr_un name;
    struct stat info;
    int error = errno, size;
    if (sup_socket_name(directory, &name) && lstat(name.sun_path, &info) == 0 &&
        info.st_uid != getuid())
        size = snprintf(line, sizeof line,
                        "sprov: %s of user %u in the sandbox keeps the supervisor of user %u from "
                        "starting: remove it\n",
                        name.sun_path, (unsigned)info.st_uid, (unsigned)getuid());
    else
        size = snprintf(line, sizeof line,
                        "sprov: %s in %s: %s: stop the sandbox and start it again\n", what,
                        directory, strerror(error));
    if (size > 0) /* at once, so that the engine passes it on as one */
        (void)!write(2, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

static void listen_again(SupTimer *timer)
{
    (void)timer;
    sup_watch_set(&server.listener, EPOLLIN);
}

void sup_server_pause(int64_t for_ms)
{
    sup_watch_set(&server.listener, 0);
    sup_timer_set(&server.listen_again, for_ms);
}

static void on_connect(SupWatch *watch, uint32_t events)
{
    (void)events;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED)
        sup_server_pause(ACCEPT_AGAIN_MS);
    if (fd < 0)
        return;
    if (sup_peer_is_own(fd))
        sup_connection_open(fd);
    else
        close(fd);
}

static bool bind_here(int fd, const struct sockaddr_un *name)
{
    const struct sockaddr *address = (const struct sockaddr *)name;
    if (bind(fd, address, sizeof *name) == 0)
        return true;
    if (errno != EADDRINUSE || someone_answers(name)) {
        errno = EADDRINUSE;
        return false;
    }
    if (unlink(name->sun_path) < 0)
        return false;
    return bind(fd, address, sizeof *name) == 0;
}

/* Two that start at once must not take each other's fresh socket for a dead one: hence the lock. */
int sup_server_listen(const char *directory)
{
    struct sockaddr_un name;
    if (!sup_socket_name(directory, &name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (lock >= 0)
        flock(lock, LOCK_EX);
    mode_t mask = umask(0177);
    bool listens = fd >= 0 && bind_here(fd, &name) && listen(fd, BACKLOG) == 0;
    int error = errno;
    umask(mask);
    sup_close(&lock);
    if (!listens)
        sup_close(&fd);
    errno = error;
    return fd;
}

/* Keepers, the main child, and in between whatever lost its parent. */
static void reap(void)
{
    siginfo_t info;
    while (info.si_pid = 0,
           waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
        bool stopped = info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED;
        if (stopped)
            sup_pool_stopped(info.si_pid);
        else if (!sup_pool_ended(info.si_pid))
            sup_main_ended(info.si_pid, info.si_code == CLD_EXITED, info.si_status);
    }
}

static void on_signal(SupWatch *watch, uint32_t events)
{
    (void)events;
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap();
        else
            sup_main_signal((int)info.ssi_signo);
    }
}

/* All but those that report a fault of our own. */
static bool take_signals(bool is_init)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t set;
    if (is_init) {
        sigfillset(&set);
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
            sigdelset(&set, faults[i]);
        sigdelset(&set, SIGPIPE);
    } else {
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
    }
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    server.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    server.signals.ready = on_signal;
    return server.signals.fd >= 0;
}

static void serve_round(void)
{
    for (server.round_at = 0; server.round_at < server.round_size;) {
        struct epoll_event *event = &server.round[server.round_at++];
        SupWatch *watch = event->data.ptr;
        if (watch)
            watch->ready(watch, event->events);
    }
    server.round_size = 0;
    sup_connections_flush();
}

/* Forking keepers is for when there is nothing else to do. A flush may set timers. */
static void serve(void)
{
    while (!server.stopping) {
        run_timers();
        sup_connections_flush();
        int refill_ms = sup_pool_refill_after(), timer_ms = time_to_next_timer();
        bool refill = refill_ms >= 0 && (timer_ms < 0 || refill_ms <= timer_ms);
        int n = epoll_wait(server.epoll, server.round, ROUND, refill ? refill_ms : timer_ms);
        server.round_size = n > 0 ? n : 0;
        serve_round();
        if (refill && n == 0)
            sup_pool_refill();
    }
}

int sup_server_run(int listener, char *const argv[], bool is_init, const char *dial)
{
    static const uint8_t no_nonce[SPR_WIRE_NONCE];
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sup_list_init(&server.timers);
    sup_timer_init(&server.listen_again, listen_again);
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    server.listener.fd = listener;
    server.listener.ready = on_connect;
    if (server.epoll < 0 || !take_signals(is_init) || !sup_watch_set(&server.signals, EPOLLIN) ||
        !sup_watch_set(&server.listener, EPOLLIN))
        return 125;
    sup_raise_descriptor_limit();
    int code = argv ? sup_main_start(argv) : 0;
    if (code != 0)
        return code;
    sup_detach_stdio();
    sup_tree_open();
    sup_pool_init();
    sup_filewrite_init();
    sup_connections_init();
    /* Where nobody listens any more the way in is the listener, as ever. */
    if (dial)
        sup_connection_dial(dial, no_nonce);
    serve();
    return server.code;
}

void sup_server_stop(int code)
{
    server.stopping = true;
    server.code = code;
}

bool sup_server_has_main(void)
{
    return sup_main_is_there();
}
