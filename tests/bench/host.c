#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its standard output is the other end of the pipe that is returned. */
static int start(const char *const *argv, pid_t *ret_pid)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0 || (*ret_pid = fork()) < 0)
        bench_die("no pipe or process: %s", strerror(errno));
    if (*ret_pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
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
