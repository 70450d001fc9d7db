#include "fixture.h"

#include "base/text.h"
#include "supervisor/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void put_program(const char *directory)
{
    const char *other = g_getenv("SPR_TEST_PROGRAM");
    g_autofree char *path = g_strdup_printf("%s/program", directory), *bytes = NULL;
    gsize size;
    SprProgram own;
    if (other) {
        cr_assert(g_file_get_contents(other, &bytes, &size, NULL), "there is no %s", other);
        own = (SprProgram){bytes, size, NULL};
    } else {
        cr_assert(spr_supervisor_program(NULL, &own));
    }
    cr_assert(g_file_set_contents(path, own.bytes, (gssize)own.size, NULL));
    cr_assert(chmod(path, 0755) == 0);
}

void need_subreaper(void)
{
    if (g_getenv("SPR_TEST_RUNNER"))
        cr_skip_test("the emulator makes no process a subreaper");
}

bool is_own_build(void)
{
    return !g_getenv("SPR_TEST_PROGRAM");
}

int rounds(void)
{
    const char *wanted = g_getenv("SPR_TEST_ROUNDS");
    return wanted ? atoi(wanted) : 10;
}

/* Where sanitizers are to write. */
static void set_report_path(const char *directory)
{
    g_autofree char *options =
        g_strdup_printf("log_path=%s/report:detect_leaks=0:print_stacktrace=1", directory);
    setenv("ASAN_OPTIONS", options, 1);
    setenv("UBSAN_OPTIONS", options, 1);
}

static void check_report(const char *path)
{
    g_autofree char *text = NULL;
    if (g_file_get_contents(path, &text, NULL, NULL) &&
        (strstr(text, "ERROR:") || strstr(text, "runtime error:")))
        cr_assert_fail("%s", text);
}

/* The words that run the program, before its own arguments. */
static void add_program(GPtrArray *argv, char *program)
{
    const char *runner = g_getenv("SPR_TEST_RUNNER");
    if (runner)
        g_ptr_array_add(argv, (gpointer)runner);
    g_ptr_array_add(argv, program);
}

static Sandbox sandbox_start(const char *const *before, const char *mode, const char *dial,
                             const char *const *argv, uid_t uid, unsigned processes)
{
    Sandbox sandbox = {.directory = "/tmp/sprov-supervisor-XXXXXX", .uid = uid};
    cr_assert(mkdtemp(sandbox.directory) != NULL);
    chmod(sandbox.directory, 01777);
    put_program(sandbox.directory);

    g_autofree char *program = g_strdup_printf("%s/program", sandbox.directory);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (; before && *before; before++)
        g_ptr_array_add(all, (gpointer)*before);
    add_program(all, program);
    g_ptr_array_add(all, (gpointer)mode);
    g_ptr_array_add(all, sandbox.directory);
    if (dial) {
        g_ptr_array_add(all, (gpointer) "--dial");
        g_ptr_array_add(all, (gpointer)dial);
    }
    if (argv)
        g_ptr_array_add(all, (gpointer) "--");
    for (; argv && *argv; argv++)
        g_ptr_array_add(all, (gpointer)*argv);
    g_ptr_array_add(all, NULL);

    sandbox.pid = fork();
    cr_assert(sandbox.pid >= 0);
    if (sandbox.pid == 0) {
        struct rlimit limit = {processes, processes};
        if ((processes > 0 && setrlimit(RLIMIT_NPROC, &limit) < 0) ||
            (uid != getuid() && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)))
            _exit(99);
        /* A test that crashes leaves nothing behind. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!is_own_build())
            set_report_path(sandbox.directory);
        execvp(all->pdata[0], (char **)all->pdata);
        _exit(98);
    }
    sandbox.supervisor = sandbox.pid;
    return sandbox;
}

static void need_root(void)
{
    if (getuid() != 0)
        cr_skip_test("this needs root");
}

Sandbox sandbox_serve_as(uid_t uid, unsigned processes)
{
    need_root();
    return sandbox_start(NULL, "serve", NULL, NULL, uid, processes);
}

Sandbox sandbox_serve(void)
{
    return sandbox_start(NULL, "serve", NULL, NULL, getuid(), 0);
}

static Sandbox init(const char *dial, const char *const *argv)
{
    static const char *const unshare[] = {"unshare", "--pid",        "--mount-proc",
                                          "--fork",  "--kill-child", NULL};
    need_root();
    Sandbox sandbox = sandbox_start(unshare, "init", dial, argv, 0, 0);
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", sandbox.pid, sandbox.pid);
    for (int i = 0; i < 5000 && sandbox.supervisor == sandbox.pid; i++) {
        g_autofree char *children = NULL;
        if (g_file_get_contents(path, &children, NULL, NULL) && atoi(children) > 0)
            sandbox.supervisor = atoi(children);
        else
            g_usleep(1000);
    }
    return sandbox;
}

Sandbox sandbox_init(const char *const *argv)
{
    return init(NULL, argv);
}

Sandbox sandbox_init_dialing(const char *path)
{
    return init(path, NULL);
}

int sandbox_stop(Sandbox *sandbox)
{
    int status = 0;
    kill(sandbox->supervisor, SIGTERM);
    waitpid(sandbox->pid, &status, 0);
    g_autoptr(GDir) dir = g_dir_open(sandbox->directory, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(sandbox->directory, name, NULL);
        if (g_str_has_prefix(name, "report"))
            check_report(path);
        g_unlink(path);
    }
    g_rmdir(sandbox->directory);
    return status;
}

int sandbox_socket(const Sandbox *sandbox)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    g_snprintf(name.sun_path, sizeof name.sun_path, "%s/%u.%u.sock", sandbox->directory,
               sandbox->uid, sandbox->uid == getuid() ? getgid() : sandbox->uid);
    for (int i = 0; i < 5000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
            return fd;
        close(fd);
        g_usleep(2000);
    }
    cr_assert_fail("no socket in %s", sandbox->directory);
    return -1;
}

SprSupervisor *sandbox_connect_to(int fd)
{
    g_autoptr(GError) error = NULL;
    SprPipe pipe = spr_pipe_for_socket(fd);
    SprWait wait = spr_wait_for(10000);
    SprSupervisor *supervisor = NULL;
    bool ok = spr_supervisor_open(&pipe, &wait, &supervisor, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return supervisor;
}

SprSupervisor *sandbox_connect(const Sandbox *sandbox)
{
    return sandbox_connect_to(sandbox_socket(sandbox));
}

pid_t sandbox_relay_with(const Sandbox *sandbox, int in, int out)
{
    g_autofree char *program = g_strdup_printf("%s/program", sandbox->directory);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    add_program(argv, program);
    g_ptr_array_add(argv, (gpointer) "relay");
    g_ptr_array_add(argv, (gpointer)sandbox->directory);
    g_ptr_array_add(argv, NULL);
    pid_t relay = fork();
    if (relay == 0) {
        dup2(in, 0);
        dup2(out, 1);
        if (sandbox->uid != getuid() && (setgid(sandbox->uid) < 0 || setuid(sandbox->uid) < 0))
            _exit(99);
        execvp(argv->pdata[0], (char **)argv->pdata);
        _exit(98);
    }
    return relay;
}

int sandbox_relay(const Sandbox *sandbox, pid_t *relay)
{
    int pair[2];
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    *relay = sandbox_relay_with(sandbox, pair[1], pair[1]);
    close(pair[1]);
    return pair[0];
}

SprSupervisor *sandbox_connect_through_relay(const Sandbox *sandbox, pid_t *relay)
{
    return sandbox_connect_to(sandbox_relay(sandbox, relay));
}

/* ---------------------------------------------------------------------------- dialed */

Listener listener_open(void)
{
    Listener listener = {.directory = "/tmp/sprov-listener-XXXXXX"};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    cr_assert(mkdtemp(listener.directory) != NULL);
    g_snprintf(listener.path, sizeof listener.path, "%s/socket", listener.directory);
    g_strlcpy(name.sun_path, listener.path, sizeof name.sun_path);
    listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(listener.fd, (struct sockaddr *)&name, sizeof name) == 0);
    cr_assert(chmod(listener.directory, 0755) == 0 && chmod(listener.path, 0666) == 0);
    cr_assert(listen(listener.fd, 128) == 0);
    return listener;
}

void listener_close(Listener *listener)
{
    close(listener->fd);
    g_unlink(listener->path);
    g_rmdir(listener->directory);
}

guint sandbox_lag_us;
static SprPipe prompt;

static ssize_t write_and_lag(void *ctx, const void *data, gsize size, const int *fds, guint n_fds)
{
    ssize_t n = prompt.write_with(ctx, data, size, fds, n_fds);
    g_usleep(sandbox_lag_us);
    return n;
}

SprSupervisor *listener_accept(const Listener *listener, guint8 ret_nonce[SPR_DIAL_NONCE])
{
    struct pollfd ready = {.fd = listener->fd, .events = POLLIN};
    if (poll(&ready, 1, 10000) != 1)
        return NULL;
    g_autoptr(GError) error = NULL;
    SprPipe pipe = prompt = spr_pipe_for_socket(accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC));
    pipe.write_with = write_and_lag;
    SprWait wait = spr_wait_for(10000);
    SprSupervisor *supervisor = NULL;
    bool ok = spr_supervisor_open_dialed(&pipe, &wait, ret_nonce, &supervisor, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    spr_supervisor_make_own(supervisor);
    return supervisor;
}

SprSupervisor *sandbox_dial_own(SprSupervisor *through)
{
    guint8 nonce[SPR_DIAL_NONCE] = {1};
    SprWait wait = spr_wait_for(1000); /* a frozen one dials nobody */
    Listener listener = listener_open();
    SprSupervisor *own = NULL;
    if (spr_supervisor_dial(through, listener.path, nonce, &wait, NULL))
        own = listener_accept(&listener, nonce);
    listener_close(&listener);
    return own;
}

static SprFlow append(void *ctx, const void *data, gsize size)
{
    g_string_append_len(ctx, data, (gssize)size);
    return SPR_FLOW_CONTINUE;
}

Ran run_command(SprSupervisor *supervisor, const SprCommand *command, const SprSource *source,
                const SprWait *wait)
{
    Ran ran = {.out = g_string_new(NULL), .err = g_string_new(NULL)};
    SprSink out = {ran.out, append}, err = {ran.err, append};
    SprWait patient = spr_wait_for(60000);
    g_autoptr(SprSupervisor) own = g_getenv("SPROV_TEST_OWN") ? sandbox_dial_own(supervisor) : NULL;
    ran.ok = spr_supervisor_exec(own ? own : supervisor, command, source, &out, &err,
                                 wait ? wait : &patient, &ran.exit, &ran.error);
    return ran;
}

Ran run_shell(SprSupervisor *supervisor, const char *text)
{
    return run_command(supervisor, &(SprCommand){.command = text}, NULL, NULL);
}

void ran_clear(Ran *ran)
{
    g_string_free(ran->out, TRUE);
    g_string_free(ran->err, TRUE);
    g_clear_error(&ran->error);
}

unsigned count_processes(const char *text)
{
    unsigned count = 0;
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        if (!g_ascii_isdigit(*name) || atoi(name) == getpid())
            continue;
        g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", name);
        g_autofree char *line = NULL;
        gsize size = 0;
        if (g_file_get_contents(path, &line, &size, NULL) && size > 0 &&
            memmem(line, size, text, strlen(text)))
            count++;
    }
    return count;
}

unsigned wait_until_processes(const char *text, unsigned count)
{
    unsigned seen = count_processes(text);
    for (int i = 0; i < 500 && seen != count; i++) {
        g_usleep(10000);
        seen = count_processes(text);
    }
    return seen;
}

unsigned wait_until_gone(const char *text)
{
    return wait_until_processes(text, 0);
}

unsigned count_descriptors(pid_t pid)
{
    unsigned count = 0;
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    while (dir && g_dir_read_name(dir))
        count++;
    return count;
}

unsigned settled_descriptors(pid_t pid)
{
    unsigned count = 0;
    while (count != count_descriptors(pid)) {
        count = count_descriptors(pid);
        g_usleep(200000);
    }
    return count;
}

unsigned long status_number(pid_t pid, const char *key)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)pid);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    const char *at = strstr(text, key);
    return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

unsigned long resident_kib(pid_t pid)
{
    return status_number(pid, "VmRSS:");
}

pid_t *supervisor_processes(const Sandbox *sandbox)
{
    g_autofree char *path =
        g_strdup_printf("/proc/%d/task/%d/children", sandbox->supervisor, sandbox->supervisor);
    g_autofree char *children = NULL;
    cr_assert(g_file_get_contents(path, &children, NULL, NULL));
    g_auto(GStrv) words = g_strsplit(g_strstrip(children), " ", -1);
    guint count = g_strv_length(words);
    pid_t *pids = g_new0(pid_t, count + 2);
    pids[0] = sandbox->supervisor;
    for (guint i = 0; i < count; i++)
        pids[i + 1] = atoi(words[i]);
    return pids;
}

char *unique_word(void)
{
    g_autofree char *hex = spr_random_hex(8);
    return g_strdup_printf("sprov-word-%s", hex);
}
