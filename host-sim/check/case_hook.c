#include "check/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

CheckHooks *child_hooks(void)
{
    g_autoptr(GError) error = NULL;
    if (!context.hooks && !context.setup->hooks)
        child_fail("the case is wrong: it uses a hook without a gate for it");
    if (!context.hooks && !check_hooks_load(context.setup->hooks, &context.hooks, &error))
        child_fail("%s", error->message);
    return context.hooks;
}

/* A child of the case's process group, so that it ends with it, whose temporary files the runner
 * removes. Its standard streams are these descriptors, or ours where they are -1. */
static pid_t spawn(const char *name, const char *word, int in, int out)
{
    g_auto(GStrv) argv = check_hooks_command(child_hooks(), name, word);
    g_autofree char *folder = g_path_get_dirname(context.setup->ledger);
    g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "TMPDIR", folder, TRUE);
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    posix_spawn_file_actions_init(&actions);
    if (in >= 0)
        posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        child_fail("the hook %s cannot be run: %s: %s", name, argv[0], g_strerror(failed));
    return pid;
}

void case_hook(const char *name, const char *id)
{
    int status = 0;
    pid_t pid = spawn(name, id, -1, -1);
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

/* ---- hooks that stay and print a line */

static const char *read_line(int fd)
{
    g_autoptr(GString) line = g_string_new(NULL);
    char byte;
    while (read(fd, &byte, 1) == 1 && byte != '\n')
        g_string_append_c(line, byte);
    return case_text("%s", line->str);
}

/* Starts it with pipes on both sides, which are the case's to close. */
static void start_helper(const char *name, const char *word, int *ret_in, int *ret_out)
{
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        child_fail("no pipes for the hook %s", name);
    pid_t pid = spawn(name, word, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    pthread_mutex_lock(&context.mutex);
    bool fits = context.helper_count < G_N_ELEMENTS(context.helpers);
    if (fits)
        context.helpers[context.helper_count++] = pid;
    pthread_mutex_unlock(&context.mutex);
    if (!fits) {
        kill(pid, SIGTERM);
        child_fail("the case is wrong: it uses too many hooks that stay");
    }
    *ret_in = in[1];
    *ret_out = out[0];
}

static json_t *parse_object(const char *name, const char *line)
{
    json_t *object = json_loads(line, 0, NULL);
    if (!json_is_object(object))
        child_fail("the hook %s printed no JSON object: \"%s\"", name, line);
    return object;
}

const char *case_hook_proxy(const char *fault)
{
    int in, out;
    start_helper("proxy", fault, &in, &out);
    const char *line = read_line(out);
    close(out);
    json_decref(parse_object("proxy", line));
    return line; /* in stays open: some end with their input */
}

const char *case_hook_folder(void)
{
    int in, out;
    start_helper("folder", NULL, &in, &out);
    const char *path = read_line(out);
    close(out);
    if (!g_path_is_absolute(path))
        child_fail("the hook folder printed no absolute path: \"%s\"", path);
    return path;
}

const char *case_hook_volume(void)
{
    const char *name = case_new_id();
    g_ptr_array_add(context.volumes, (char *)name);
    return name;
}

/* ---- the Git server */

static const char *text_of(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value)
        child_fail("the hook git tells no text \"%s\"", key);
    return value;
}

static void set_environment(json_t *variables)
{
    const char *name;
    json_t *value;
    json_object_foreach(variables, name, value) g_setenv(name, json_string_value(value), TRUE);
}

CaseGit *case_hook_git(void)
{
    CaseGit *git = child_keep(g_new0(CaseGit, 1));
    start_helper("git", NULL, &git->commands, &git->answers);
    json_t *told = parse_object("git", read_line(git->answers));
    json_t *options = json_object_get(told, "buildOptions");
    git->told = told;
    git->url = text_of(told, "url");
    git->token = text_of(told, "token");
    git->trust = text_of(told, "trust");
    git->options = options ? child_keep(json_dumps(options, JSON_COMPACT)) : NULL;
    set_environment(json_object_get(told, "environment"));
    return git;
}

const char *case_git_commit(const CaseGit *git, const char *name)
{
    return text_of(json_object_get(git->told, "commits"), name);
}

static const char *ask(CaseGit *git, const char *command)
{
    gsize size = strlen(command);
    if (write(git->commands, command, size) != (gssize)size)
        child_fail("the hook git takes no commands");
    const char *answer = read_line(git->answers);
    if (!*answer)
        child_fail("the hook git did not answer: %s", command);
    return answer;
}

const char *case_git_move(CaseGit *git, const char *branch)
{
    return ask(git, case_text("move %s\n", branch));
}

const char *case_git_rotate(CaseGit *git)
{
    git->token = ask(git, "rotate\n");
    return git->token;
}

void child_end_hooks(void)
{
    for (guint i = 0; i < context.volumes->len; i++)
        case_hook("removeVolume", context.volumes->pdata[i]);
    g_ptr_array_set_size(context.volumes, 0);
    for (guint i = 0; i < context.helper_count; i++) {
        kill(context.helpers[i], SIGTERM);
        waitpid(context.helpers[i], NULL, 0);
    }
    context.helper_count = 0;
}
