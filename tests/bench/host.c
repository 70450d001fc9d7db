#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void bench_host_run(void *unused)
{
    static const char *const argv[] = {"sh", "-c", "echo hi", NULL};
    int out[2];
    char bytes[16];
    size_t got = 0;
    pid_t pid;
    if (pipe2(out, O_CLOEXEC) != 0 || (pid = fork()) < 0)
        bench_die("host: no pipe or process: %s", strerror(errno));
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t n; got < sizeof bytes && (n = read(out[0], bytes + got, sizeof bytes - got)) > 0;)
        got += (size_t)n;
    close(out[0]);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0 || got != 3 || memcmp(bytes, "hi\n", 3) != 0)
        bench_die("host: wrong result");
}
