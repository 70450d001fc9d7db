#include "bench.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

extern char **environ;

void bench_host_run(void *unused)
{
    static const char *const argv[] = {"sh", "-c", "echo hi", NULL};
    int out[2];
    char bytes[16];
    size_t got = 0;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) != 0)
        bench_die("host: no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    if (failed)
        bench_die("host: sh does not start: %s", strerror(failed));
    for (ssize_t n; got < sizeof bytes && (n = read(out[0], bytes + got, sizeof bytes - got)) > 0;)
        got += (size_t)n;
    close(out[0]);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0 || got != 3 || memcmp(bytes, "hi\n", 3) != 0)
        bench_die("host: wrong result");
}
