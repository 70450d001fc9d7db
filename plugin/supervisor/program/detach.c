#include "detach.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool enter(const char *cgroup)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    int fd = n > 0 && (size_t)n < sizeof path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    bool entered = fd >= 0 && write(fd, "0", 1) == 1;
    sup_close(&fd);
    return entered;
}

static int run(const char *cgroup, char *const argv[])
{
    int log = open("log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    setsid();
    sup_detach_stdio();
    sup_reset_signals();
    if (log >= 0) {
        dup2(log, 1);
        dup2(log, 2);
    }
    sup_close_from(3);
    if (cgroup && !enter(cgroup)) {
        dprintf(2, "the cgroup %s cannot be entered: %s\n", cgroup, strerror(errno));
        return 125;
    }
    execvp(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    return 127;
}

int sup_detach(const char *directory, const char *cgroup, char *const argv[])
{
    if (chdir(directory) < 0) {
        dprintf(2, "%s: %s\n", directory, strerror(errno));
        return 125;
    }
    pid_t pid = fork();
    if (pid == 0)
        return run(cgroup, argv);
    if (pid < 0) {
        dprintf(2, "cannot fork: %s\n", strerror(errno));
        return 125;
    }
    dprintf(1, "%d\n", (int)pid);
    return 0;
}
