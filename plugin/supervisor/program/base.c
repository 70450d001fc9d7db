#include "base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define MOST_DESCRIPTORS 65536

bool sup_statx(int directory, const char *name, unsigned mask, uint64_t result[32])
{
#ifdef SYS_statx
    return syscall(SYS_statx, directory, name, AT_SYMLINK_NOFOLLOW, mask, result) == 0;
#else
    (void)directory, (void)name, (void)mask, (void)result;
    return false;
#endif
}

int64_t sup_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t sup_after_ms(int64_t ms)
{
    if (ms < 0 || ms > SUP_NEVER / 4)
        return SUP_NEVER;
    return sup_now_ms() + ms;
}

void sup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool sup_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void sup_detach_stdio(void)
{
    int fds[] = {open("/dev/null", O_RDWR), -1};
    if (fds[0] < 0 && pipe(fds) < 0)
        return;
    for (int i = 0; i <= 2; i++)
        dup2(fds[0], i);
    for (int i = 0; i < 2; i++) {
        if (fds[i] > 2)
            close(fds[i]);
    }
}

void sup_close_from(int lowest)
{
    if (syscall(SYS_close_range, (unsigned)lowest, ~0u, 0) == 0)
        return;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) {
        for (int fd = lowest; fd < 65536; fd++)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        int fd = atoi(entry->d_name);
        if (fd >= lowest && fd != dirfd(dir))
            close(fd);
    }
    closedir(dir);
}

static struct rlimit descriptors;

void sup_raise_descriptor_limit(void)
{
    if (getrlimit(RLIMIT_NOFILE, &descriptors) < 0)
        return;
    struct rlimit raised = descriptors;
    raised.rlim_cur = raised.rlim_max < MOST_DESCRIPTORS ? raised.rlim_max : MOST_DESCRIPTORS;
    if (raised.rlim_cur > descriptors.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &raised);
}

void sup_restore_descriptor_limit(void)
{
    if (descriptors.rlim_max > 0)
        setrlimit(RLIMIT_NOFILE, &descriptors);
}

void sup_reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
