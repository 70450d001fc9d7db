#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Its standard output is the other end of the pipe that is returned. */
static int start(const char *const *argv, pid_t *ret_pid)
{
    int out[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) != 0)
        bench_die("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int failed = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    if (failed)
        bench_die("%s does not start: %s", argv[0], strerror(failed));
    return out[0];
}

static void finish(pid_t pid, int out)
{
    int status;
    close(out);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("wrong exit code");
}

static void run(void *unused, const char *const *argv, const char *expected)
{
    char bytes[16];
    size_t got = 0;
    pid_t pid;
    (void)unused;
    int out = start(argv, &pid);
    for (ssize_t n; got < sizeof bytes && (n = read(out, bytes + got, sizeof bytes - got)) > 0;)
        got += (size_t)n;
    finish(pid, out);
    if (got != strlen(expected) || memcmp(bytes, expected, got) != 0)
        bench_die("wrong output");
}

static void stream(void *unused, const char *const *argv, size_t size)
{
    static char bytes[1 << 20];
    size_t got = 0;
    pid_t pid;
    (void)unused;
    int out = start(argv, &pid);
    for (ssize_t n; (n = read(out, bytes, sizeof bytes)) > 0;)
        got += (size_t)n;
    finish(pid, out);
    if (got != size)
        bench_die("%zu bytes instead of %zu", got, size);
}

const BenchSubject bench_host = {.name = "host", .run = run, .stream = stream};
