/*
 * The keeper: one process between the provider and a command. It adopts whatever the command
 * leaves behind (it is its subreaper), so that ending the tree means killing its own children
 * until there are none. It runs between fork() and exec() of a host with threads: nothing here
 * allocates or takes a lock.
 */
#include "mock_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void mock_keeper_report(const MockKeeper *keeper, int kind, int value)
{
    MockReport message = {.kind = kind, .value = value};
    if (keeper->control >= 0)
        send(keeper->control, &message, sizeof message, MSG_NOSIGNAL);
}

_Noreturn void mock_keeper_leave(MockKeeper *keeper)
{
    unlink(keeper->run_file);
    _exit(0);
}

/* ---- the children, from /proc: no allocation */

static pid_t parent_of(const char *pid)
{
    char path[32];
    char stat[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t size = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[size > 0 ? size : 0] = '\0';
    const char *after = strrchr(stat, ')');
    return after && strlen(after) > 4 ? (pid_t)atoi(after + 4) : -1;
}

struct dirent64_head {
    uint64_t ino;
    int64_t off;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Whether one of its parents is this process. */
static bool is_below(const char *pid, pid_t self)
{
    pid_t parent = parent_of(pid);
    char name[16];
    for (int depth = 0; depth < 100 && parent > 1 && parent != self; depth++) {
        snprintf(name, sizeof name, "%d", (int)parent);
        parent = parent_of(name);
    }
    return parent == self;
}

int mock_keeper_signal(int number, bool deep)
{
    int count = 0;
    char buffer[8192] __attribute__((aligned(8)));
    pid_t self = getpid();
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long size;
    while (proc >= 0 && (size = syscall(SYS_getdents64, proc, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const struct dirent64_head *entry = (const void *)(buffer + at);
            at += entry->size;
            if (entry->name[0] < '1' || entry->name[0] > '9')
                continue;
            if (deep ? is_below(entry->name, self) : parent_of(entry->name) == self)
                count += kill((pid_t)atoi(entry->name), number) == 0;
        }
    }
    if (proc >= 0)
        close(proc);
    return count;
}

bool mock_keeper_reap(MockKeeper *keeper)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == keeper->leader && !keeper->ended)
            keeper->on_exit(keeper, status);
    }
    return !(pid < 0 && errno == ECHILD);
}

bool mock_keeper_kill(MockKeeper *keeper)
{
    for (int round = 0; round < 3000; round++) {
        mock_keeper_signal(SIGKILL, false);
        if (!mock_keeper_reap(keeper))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return false;
}

/* ---- the command */

static const char *path_of(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/bin:/bin";
}

/* As execvpe(), with the PATH that the command will see. Returns errno. */
static int exec_search(char *const *argv, char *const *env)
{
    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return errno;
    }
    int failed = ENOENT;
    for (const char *part = path_of(env); *part;) {
        size_t size = strcspn(part, ":");
        char file[1024];
        snprintf(file, sizeof file, "%.*s/%s", (int)size, part, argv[0]);
        execve(file, argv, env);
        if (errno != ENOENT && errno != ENOTDIR)
            failed = errno;
        part += size + (part[size] == ':');
    }
    return failed;
}

static _Noreturn void run_command(const MockLaunch *launch)
{
    sigset_t none;
    setsid();
    dup2(launch->in, 0);
    dup2(launch->out, 1);
    dup2(launch->err, 2);
    syscall(SYS_close_range, 3, ~0u, 0);
    umask(022);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int failed = exec_search(launch->argv, launch->env);
    dprintf(2, "%.200s: %s\n", launch->argv[0], failed == ENOENT ? "not found" : strerror(failed));
    _exit(failed == ENOENT || failed == ENOTDIR ? 127 : 126);
}

void mock_keeper_begin(MockKeeper *keeper)
{
    const MockLaunch *launch = keeper->launch;
    snprintf(keeper->run_file, sizeof keeper->run_file, "%s/%d", launch->run_dir, (int)getpid());
    int mark = open(keeper->run_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mark < 0 || chdir(launch->cwd) != 0) {
        mock_keeper_report(keeper, MOCK_FAILED, errno);
        mock_keeper_leave(keeper);
    }
    close(mark);
    keeper->leader = fork();
    if (keeper->leader < 0) {
        mock_keeper_report(keeper, MOCK_FAILED, errno);
        mock_keeper_leave(keeper);
    }
    if (keeper->leader == 0)
        run_command(launch);
    /* Whoever signals its group has to find one. */
    while (getpgid(keeper->leader) == getpgrp())
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    close(launch->in);
    close(launch->out);
    close(launch->err);
    if (launch->spawn)
        atomic_store(&launch->spawn->shared->leader, keeper->leader);
    mock_keeper_report(keeper, MOCK_STARTED, 0);
}

/* ---- the loop */

static void obey(MockKeeper *keeper)
{
    char order = 0;
    ssize_t size = recv(keeper->control, &order, 1, 0);
    if (size <= 0) { /* the host is gone; its command goes too */
        mock_keeper_kill(keeper);
        mock_keeper_leave(keeper);
    }
    if (order == MOCK_ORDER_TERM) {
        mock_keeper_signal(SIGTERM, true);
    } else if (order == MOCK_ORDER_KILL) {
        bool all = mock_keeper_kill(keeper);
        mock_keeper_report(keeper, MOCK_KILLED, all ? 0 : 1);
        mock_keeper_leave(keeper);
    } else if (order == MOCK_ORDER_LEAVE) {
        close(keeper->control);
        keeper->control = -1;
        keeper->left = true;
    }
}

static void take_signals(MockKeeper *keeper, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGTERM) {
        keeper->ended = true;
        mock_keeper_kill(keeper);
        mock_keeper_report(keeper, MOCK_GONE, 0);
        mock_keeper_leave(keeper);
    }
}

void mock_keeper_discard(int *fd)
{
    char buffer[65536];
    if (read(*fd, buffer, sizeof buffer) <= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void tell_exit(MockKeeper *keeper, int status)
{
    mock_keeper_report(keeper, MOCK_EXITED, status);
}

int mock_keeper_signals(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static _Noreturn void keep(const MockLaunch *launch)
{
    MockKeeper keeper = {.launch = launch,
                         .on_exit = tell_exit,
                         .control = launch->control,
                         .out = launch->out_read,
                         .err = launch->err_read};
    int signals = mock_keeper_signals();
    mock_keeper_begin(&keeper);
    for (;;) {
        struct pollfd fds[] = {
            {.fd = keeper.control, .events = POLLIN},
            {.fd = signals, .events = POLLIN},
            {.fd = keeper.left ? keeper.out : -1, .events = POLLIN},
            {.fd = keeper.left ? keeper.err : -1, .events = POLLIN},
        };
        bool has_children = mock_keeper_reap(&keeper);
        if (!has_children)
            mock_keeper_report(&keeper, MOCK_EMPTY, 0);
        if (!has_children && keeper.left)
            mock_keeper_leave(&keeper);
        if (poll(fds, 4, -1) <= 0)
            continue;
        if (fds[0].revents)
            obey(&keeper);
        if (fds[1].revents)
            take_signals(&keeper, signals);
        if (fds[2].revents)
            mock_keeper_discard(&keeper.out);
        if (fds[3].revents)
            mock_keeper_discard(&keeper.err);
    }
}

/* Every descriptor but those the keeper works with: the host's must not live on in it. */
static void close_others(const MockLaunch *launch)
{
    const MockSpawn *spawn = launch->spawn;
    const int wanted[] = {launch->control,
                          launch->in,
                          launch->out,
                          launch->err,
                          launch->out_read,
                          launch->err_read,
                          spawn ? spawn->orders : -1,
                          spawn ? spawn->input : -1,
                          spawn ? spawn->files[0] : -1,
                          spawn ? spawn->files[1] : -1};
    unsigned from = 0;
    for (;;) {
        unsigned next = ~0u;
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
            if (wanted[i] >= 0 && (unsigned)wanted[i] >= from && (unsigned)wanted[i] < next)
                next = (unsigned)wanted[i];
        if (next > from)
            syscall(SYS_close_range, from, next - 1, 0);
        if (next == ~0u)
            return;
        from = next + 1;
    }
}

int mock_keeper_fork(const MockLaunch *launch)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* Twice, so that the keeper is no child of the host and may outlive the call. */
    pid_t middle = fork();
    int failed = middle < 0 ? errno : 0;
    if (middle == 0) {
        pid_t keeper = fork();
        if (keeper != 0)
            _exit(keeper < 0 ? 1 : 0);
        prctl(PR_SET_NAME, "mock-keeper");
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        signal(SIGCHLD, SIG_DFL);
        setsid();
        close_others(launch);
        if (launch->spawn)
            mock_keep_spawned(launch);
        keep(launch);
    }
    int status = 0;
    /* A host that ignores SIGCHLD leaves nothing to wait for; then the socket tells. */
    if (middle > 0 && waitpid(middle, &status, 0) == middle && status != 0)
        failed = EAGAIN;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
