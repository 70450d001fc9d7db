#include "check/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

CheckHooks *child_hooks(void)
{
    g_autoptr(GError) error = NULL;
    if (!context.hooks && !context.setup->hooks)
        child_fail("the case is wrong: it uses a hook without a gate for it");
    if (!context.hooks && !check_hooks_load(context.setup->hooks, &context.hooks, &error))
        child_fail("%s", error->message);
    return context.hooks;
}

/* A child whose standard output is the pipe, or ours; its process group is the case's, so that it
 * ends with it. */
static pid_t spawn(const char *name, const char *word, int out)
{
    g_auto(GStrv) argv = check_hooks_command(child_hooks(), name, word);
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    posix_spawn_file_actions_init(&actions);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        child_fail("the hook %s cannot be run: %s: %s", name, argv[0], g_strerror(failed));
    return pid;
}

void case_hook(const char *name, const char *id)
{
    int status = 0;
    pid_t pid = spawn(name, id, -1);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        child_fail("the hook %s failed (exit code %d): see the output", name,
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

const char *case_hook_options(void)
{
    char *dumped = json_dumps(json_object_get(child_hooks()->root, "badOptions"), JSON_COMPACT);
    const char *kept = case_text("%s", dumped);
    free(dumped);
    return kept;
}

const char *case_hook_proxy(const char *fault)
{
    int pipe[2];
    g_autoptr(GString) line = g_string_new(NULL);
    char byte;
    if (context.proxy_count == G_N_ELEMENTS(context.proxies) || pipe2(pipe, O_CLOEXEC) != 0)
        child_fail("no more proxies or pipes for a case");
    pid_t pid = spawn("proxy", fault, pipe[1]);
    close(pipe[1]);
    while (read(pipe[0], &byte, 1) == 1 && byte != '\n')
        g_string_append_c(line, byte);
    close(pipe[0]);
    json_t *config = json_loads(line->str, 0, NULL);
    if (!json_is_object(config)) {
        kill(pid, SIGTERM);
        child_fail("the hook proxy %s printed no configuration: \"%s\"", fault, line->str);
    }
    json_decref(config);
    pthread_mutex_lock(&context.mutex);
    context.proxies[context.proxy_count++] = pid;
    pthread_mutex_unlock(&context.mutex);
    return case_text("%s", line->str);
}

void child_end_proxies(void)
{
    for (guint i = 0; i < context.proxy_count; i++) {
        kill(context.proxies[i], SIGTERM);
        waitpid(context.proxies[i], NULL, 0);
    }
    context.proxy_count = 0;
}
