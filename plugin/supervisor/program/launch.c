#include "launch.h"

#include "base.h"
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CHILD_STACK 65536

typedef struct {
    SupLaunch *launch;
    const int *stdio;
    const SupUser *user;
    pid_t keeper;
} Child;

static const char *find_in_env(char *const env[], const char *name)
{
    size_t size = strlen(name);
    for (; *env; env++) {
        if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
            return *env + size + 1;
    }
    return NULL;
}

int sup_exec_path(char *const argv[], char *const env[])
{
    if (argv[0][0] == '\0')
        return ENOENT;
    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return errno;
    }
    const char *path = find_in_env(env, "PATH");
    if (!path)
        path = DEFAULT_PATH;
    int result = ENOENT;
    char file[4096];
    for (const char *at = path, *end;; at = end + 1) {
        end = strchrnul(at, ':');
        int size = snprintf(file, sizeof file, "%.*s/%s", end > at ? (int)(end - at) : 1,
                            end > at ? at : ".", argv[0]);
        if (size > 0 && (size_t)size < sizeof file) {
            execve(file, argv, env);
            if (errno == EACCES)
                result = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR)
                return errno;
        }
        if (*end == '\0')
            return result;
    }
}

static void fail(Child *child, SprWireStep step)
{
    child->launch->error = errno ? errno : EINVAL;
    child->launch->step = step;
    _exit(127);
}

/* Raw calls: a C library would want to tell other threads, and this memory is the parent's. */
static bool become(const SupUser *user)
{
    return syscall(SYS_setgroups, user->n_groups, user->groups) == 0 &&
           syscall(SYS_setresgid, user->gid, user->gid, user->gid) == 0 &&
           syscall(SYS_setresuid, user->uid, user->uid, user->uid) == 0;
}

/* Shares the keeper's memory until execve(), so it allocates and keeps nothing. */
static int child_main(void *data)
{
    Child *child = data;
    SupLaunch *launch = child->launch;

    for (int i = 0; i < 3; i++) {
        if (child->stdio[i] >= 0 && dup2(child->stdio[i], i) < 0)
            fail(child, SPR_WIRE_STEP_STDIO);
    }
    setsid();
    sup_restore_descriptor_limit();
    if (launch->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        fail(child, SPR_WIRE_STEP_TERMINAL);
    if (child->user->change && !become(child->user))
        fail(child, SPR_WIRE_STEP_USER);
    if (launch->cwd[0] && chdir(launch->cwd) < 0)
        fail(child, SPR_WIRE_STEP_CWD);

    /* After the change of user, which would clear it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->keeper)
        _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    errno = sup_exec_path(launch->argv, launch->env);
    fail(child, launch->shell ? SPR_WIRE_STEP_SHELL : SPR_WIRE_STEP_EXEC);
    return 127;
}

static bool set_home(SupLaunch *launch, const SupUser *user)
{
    static char home[sizeof user->home + 8];
    snprintf(home, sizeof home, "HOME=%s", user->home);
    char **at = launch->env;
    while (*at && strncmp(*at, "HOME=", 5) != 0)
        at++;
    if (!*at)
        at[1] = NULL;
    *at = home;
    return true;
}

/* An emulated kernel may make a fork() of a vfork() and come back at once, but the child still
 * needs argv and has not told a failure yet. */
static void wait_for_exec(int pipe[2])
{
    char byte;
    close(pipe[1]);
    while (read(pipe[0], &byte, 1) < 0 && errno == EINTR)
        ;
    close(pipe[0]);
}

bool sup_launch(SupLaunch *launch, const int stdio[3])
{
    static char stack[CHILD_STACK] __attribute__((aligned(16)));
    static SupUser user;

    launch->error = 0;
    launch->step = SPR_WIRE_STEP_NONE;
    launch->leader = 0;
    if (!sup_user_find(launch->user, &user)) {
        launch->error = errno;
        launch->step = SPR_WIRE_STEP_USER;
        return false;
    }
    if (user.change && !launch->home_given)
        set_home(launch, &user);

    int until_exec[2];
    Child child = {launch, stdio, &user, getpid()};
    pid_t pid = pipe2(until_exec, O_CLOEXEC);
    if (pid == 0) {
        pid = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
        launch->error = pid < 0 ? errno : launch->error;
        wait_for_exec(until_exec);
    } else {
        launch->error = errno;
    }
    if (pid < 0) {
        launch->step = SPR_WIRE_STEP_FORK;
        return false;
    }
    if (launch->error != 0) {
        waitpid(pid, NULL, 0);
        return false;
    }
    launch->leader = pid;
    return true;
}
