/* Callbacks, and a provider's manners in a process that belongs to its host. */
#include "cases/cases.h"
#include "cases/process.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- calls from inside a callback */

typedef struct {
    sprov_sandbox *sandbox;
    sprov_status exec, read, start, create;
    char reason[64];
    bool called;
} Nested;

static sprov_flow call_again(void *ctx, const void *data, size_t size)
{
    Nested *nested = ctx;
    if (nested->called)
        return SPROV_FLOW_CONTINUE;
    nested->called = true;
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_exec_request exec = case_command("true");
    sprov_sink sink = case_sink_table(case_sink());
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = "/etc/passwd";
    read.sink = &sink;
    nested->exec = case_api()->exec(nested->sandbox, &exec, NULL, NULL, &error);
    g_strlcpy(nested->reason, error.reason, sizeof nested->reason);
    nested->read = case_api()->read_file(nested->sandbox, &read, NULL, NULL, NULL);
    nested->start = case_api()->start(nested->sandbox, NULL, NULL, NULL);
    sprov_sandbox *other = NULL;
    nested->create = case_api()->create(case_provider(), NULL, NULL, &other, NULL);
    case_api()->release(other);
    return SPROV_FLOW_CONTINUE;
}

static void a_callback_does_not_block(void)
{
    Nested nested = {.sandbox = case_shared()};
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &nested;
    sink.write = call_again;
    sprov_exec_request request = case_command("echo x");
    request.stdout_sink = &sink;
    CHECK_STATUS(case_api()->exec(case_shared(), &request, NULL, NULL, case_error()), SPROV_OK);
    CHECK(nested.called);
    CHECK_INT(nested.exec, SPROV_E_CONFLICT);
    CHECK_TEXT(case_bytes(nested.reason), "in-callback");
    CHECK_INT(nested.read, SPROV_E_CONFLICT);
    CHECK_INT(nested.start, SPROV_E_CONFLICT);
    CHECK_INT(nested.create, SPROV_OK);
    CHECK_TEXT(case_sh(case_shared(), "echo after").out, "after\n");
}

/* ---- when callbacks run */

static void done_is_told_once(void)
{
    sprov_sandbox *sandbox = case_shared();
    CaseSink *out = case_sink();
    CaseSink *err = case_sink();
    CaseSource *in = case_source(case_noise(100));
    sprov_sink out_table = case_sink_table(out);
    sprov_sink err_table = case_sink_table(err);
    sprov_source in_table = case_source_table(in);
    sprov_exec_request exec = case_command("cat; cat >&2 /dev/null");
    exec.stdout_sink = &out_table;
    exec.stderr_sink = &err_table;
    exec.stdin_source = &in_table;
    exec.flags = 1u << 31; /* refused before it begins */
    CHECK_STATUS(case_api()->exec(sandbox, &exec, NULL, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(out->dones + err->dones + in->dones, 0);
    exec.flags = 0;
    CHECK_STATUS(case_api()->exec(sandbox, &exec, NULL, NULL, case_error()), SPROV_OK);
    CHECK_BYTES(case_taken(out), in->bytes);
    CHECK_INT(out->dones, 1);
    CHECK_INT(err->dones, 1);
    CHECK_INT(in->dones, 1);
    CHECK(out->thread == g_thread_self());
    CaseSink *both = case_sink(); /* once for each place that it has */
    sprov_sink both_table = case_sink_table(both);
    exec = case_command("echo x");
    exec.stdout_sink = &both_table;
    exec.stderr_sink = &both_table;
    CHECK_STATUS(case_api()->exec(sandbox, &exec, NULL, NULL, case_error()), SPROV_OK);
    CHECK_INT(both->dones, 2);

    CaseSource *source = case_source(case_noise(100));
    sprov_source source_table = case_source_table(source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    write.path = case_text("%s/file", case_folder(sandbox));
    write.source = &source_table;
    CHECK_STATUS(case_api()->write_file(sandbox, &write, NULL, case_error()), SPROV_OK);
    CHECK_INT(source->dones, 1);
    CaseSink *sink = case_sink();
    sprov_sink sink_table = case_sink_table(sink);
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = write.path;
    read.sink = &sink_table;
    CHECK_STATUS(case_api()->read_file(sandbox, &read, NULL, NULL, case_error()), SPROV_OK);
    CHECK_INT(sink->dones, 1);
}

static void count_done(void *ctx)
{
    ++*(int *)ctx;
}

static void callbacks_end_with_the_handle(void)
{
    int dones = 0;
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = &dones;
    callbacks.done = count_done;
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(
        case_api()->create(case_provider(), "{\"id\":5}", &callbacks, &sandbox, case_error()),
        SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(dones, 0);
    CHECK_STATUS(case_api()->create(case_provider(), case_options(case_shared_id(), NULL),
                                    &callbacks, &sandbox, case_error()),
                 SPROV_OK);
    memset(&callbacks, 0xEE, sizeof callbacks); /* create() has copied it */
    case_sh(case_shared(), "true");
    CHECK_INT(dones, 0);
    case_api()->release(sandbox);
    CHECK_INT(dones, 1);
}

static void close_waits_for_handles(void)
{
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->open(NULL, case_config(), &provider, case_error()), SPROV_OK);
    CHECK_STATUS(case_api()->create(provider, NULL, NULL, &sandbox, case_error()), SPROV_OK);
    CHECK_STATUS(case_api()->close(provider, case_error()), SPROV_E_CONFLICT);
    case_api()->release(sandbox);
    CHECK_STATUS(case_api()->close(provider, case_error()), SPROV_OK);
}

/* ---- the process */

static void a_forked_child_is_refused(void)
{
    sprov_sandbox *sandbox = case_shared();
    case_sh(sandbox, "true");
    pid_t pid = fork();
    if (pid == 0) {
        sprov_error error = SPROV_INIT(sprov_error);
        sprov_exec_request request = case_command("true");
        sprov_status exec = case_api()->exec(sandbox, &request, NULL, NULL, &error);
        bool is_forked = strcmp(error.reason, "forked") == 0;
        sprov_status start = case_api()->start(sandbox, NULL, NULL, NULL);
        _exit((exec == SPROV_E_CONFLICT) | is_forked << 1 | (start == SPROV_E_CONFLICT) << 2);
    }
    int status = 0;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_THAT(WIFEXITED(status), "the child was ended by signal %d", WTERMSIG(status));
    CHECK_INT(WEXITSTATUS(status), 7);
    CHECK_TEXT(case_sh(sandbox, "echo parent").out, "parent\n");
}

static void no_sigpipe_comes(void)
{
    signal(SIGPIPE, SIG_DFL);
    CaseSource *source = case_source(case_noise(4 << 20));
    sprov_source table = case_source_table(source);
    sprov_exec_request request = case_command("exec 0<&-; echo closed");
    request.stdin_source = &table;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, "closed\n");
    CHECK_INT(ran.result.exit_code, 0);
}

/* All that a provider could change of its process, as text. */
static char *process_state(void)
{
    extern char **environ;
    g_autoptr(GString) state = g_string_new(NULL);
    g_autofree char *cwd = g_get_current_dir();
    mode_t mask = umask(0);
    umask(mask);
    g_string_append_printf(state, "cwd %s\numask %o\nlocale %s\n", cwd, mask,
                           setlocale(LC_ALL, NULL));
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0)
            g_string_append_printf(state, "signal %d %p\n", number, (void *)action.sa_handler);
    }
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++)
        g_string_append_c(state, sigismember(&blocked, number) == 1 ? 'x' : '.');
    for (char **entry = environ; *entry; entry++)
        g_string_append_printf(state, "\n%s", *entry);
    return g_string_free(g_steal_pointer(&state), FALSE);
}

static void the_process_stays_as_it_is(void)
{
    umask(0027);
    signal(SIGPIPE, SIG_DFL);
    g_autofree char *before = process_state();
    sprov_provider *provider = case_open(NULL, case_config());
    sprov_sandbox *sandbox = case_handle(case_shared_id(), NULL, provider);
    case_sh(sandbox, "sleep 0; exit 1");
    const char *path = case_text("%s/a/b", case_folder(sandbox));
    case_write(sandbox, path, case_noise(100000), 0);
    case_read(sandbox, path);
    g_autofree char *after = process_state();
    CHECK_TEXT(case_bytes(after), before);
    /* Files get their mode from the request, whatever the host's umask. */
    CHECK_TEXT(case_sh(sandbox, "stat -c %%a '%s'", path).out, "644\n");
}

static gpointer run_a_while(gpointer data)
{
    Ran *ran = data;
    sprov_exec_request request = case_command("sleep 1; echo end");
    *ran = case_exec(case_shared(), &request, NULL);
    return NULL;
}

static void check_threads(void)
{
    g_autoptr(GDir) tasks = g_dir_open("/proc/self/task", 0, NULL);
    CHECK(tasks != NULL);
    for (const char *name; (name = g_dir_read_name(tasks));) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/status", name);
        g_autofree char *status = NULL;
        if (!g_file_get_contents(path, &status, NULL, NULL))
            continue;
        const char *mask = strstr(status, "SigBlk:");
        const char *title = status + strlen("Name:\t");
        /* Threads of the suite are its own affair: the main one, and "case". */
        bool is_ours = atoi(name) == getpid() || g_str_has_prefix(title, "case\n");
        guint64 blocked = mask ? g_ascii_strtoull(mask + strlen("SigBlk:\t"), NULL, 16) : 0;
        guint64 wanted = 1u << (SIGTERM - 1) | 1u << (SIGINT - 1) | 1u << (SIGCHLD - 1) |
                         1u << (SIGALRM - 1) | 1u << (SIGUSR1 - 1);
        CHECK_THAT(is_ours || (blocked & wanted) == wanted,
                   "a thread of the provider takes signals: %.*s", (int)strcspn(title, "\n"),
                   title);
    }
}

static void threads_block_signals(void)
{
    Ran ran;
    case_shared();
    GThread *thread = case_thread(run_a_while, &ran);
    case_sleep(300);
    check_threads();
    g_thread_join(thread);
    CHECK_STATUS(ran.status, SPROV_OK);
}

static void pushing_threads_block_signals(void)
{
    sprov_sink sink = case_sink_table(case_sink());
    sprov_spawn_request request = process_request("echo x; cat");
    process_exec(&request)->stdout_sink = &sink;
    sprov_process *process = process_start(case_shared(), &request);
    CHECK(process_api()->fd(process, SPROV_STREAM_OUT) >= 0);
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 2), "x\n");
    check_threads();
    process_end(process);
}

const Case cases_guest[] = {
    {"ABI-33", 1, "core", "a blocking call inside a callback is a conflict, a pure one works",
     "4.5", a_callback_does_not_block},
    {"ABI-35", 1, "core", "done() runs once for a request that began, never for a refused one",
     "4.7", done_is_told_once},
    {"ABI-31", 1, "core", "create() copies its callbacks; done() follows release()", "4.3",
     callbacks_end_with_the_handle},
    {"ABI-43", 1, "core", "close() is a conflict while handles live", "7.10",
     close_waits_for_handles},
    {"ABI-34", 1, "core", "in a forked child every call is a conflict, and the parent goes on",
     "4.10", a_forked_child_is_refused},
    {"ABI-36", 1, "core", "a command that takes no input sends the host no SIGPIPE", "13.2",
     no_sigpipe_comes},
    {"ABI-37", 1, "core", "signals, directory, umask, locale and environment stay as they are",
     "13.1", the_process_stays_as_it_is},
    {"ABI-38", 2, "core", "threads of a provider take no signals", "13.3", threads_block_signals},
    {"ABI-49", 2, "proc", "threads that push output take no signals", "13.3",
     pushing_threads_block_signals},
    {0},
};
