#include "main_child.h"

#include "launch.h"
#include "server.h"
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static pid_t main_pid;
static char *const *main_argv;

int sup_main_start(char *const argv[])
{
    volatile int error = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        sup_restore_descriptor_limit();
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        error = sup_exec_path(argv, environ);
        _exit(127);
    }
    if (pid < 0)
        error = errno;
    if (error == 0) {
        main_pid = pid;
        main_argv = argv;
        return 0;
    }
    dprintf(2, "sprov: %s: %s\n", argv[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

bool sup_main_is_there(void)
{
    return main_pid > 0;
}

void sup_main_ended(pid_t pid, bool exited, int status)
{
    if (pid == main_pid)
        sup_server_stop(exited ? status : 128 + status);
}

uint64_t sup_main_rest(void)
{
    char words[4096];
    size_t size = main_pid > 0 ? sup_tree_sleeper(main_pid, words, sizeof words) : 0, count = 0;
    uint64_t rest = 0;
    while (size > 0 && main_argv[count])
        count++;
    for (; size > 0; rest++) {
        const char *word = count > 0 ? main_argv[--count] : NULL;
        size_t length = word ? strlen(word) + 1 : 0;
        if (!word || length > size || memcmp(words + size - length, word, length) != 0)
            return 0;
        size -= length;
    }
    return rest;
}

/* What a terminal or a clock sends is no wish to end. */
static bool means_end(int signal)
{
    return signal != SIGCONT && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU &&
           signal != SIGURG && signal != SIGALRM;
}

void sup_main_signal(int signal)
{
    if (main_pid > 0)
        kill(main_pid, signal);
    else if (means_end(signal))
        sup_server_stop(128 + signal);
}
