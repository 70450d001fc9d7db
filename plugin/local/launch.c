#include "local/launch.h"

#include "base/error.h"
#include "base/proc.h"
#include "base/program.h"
#include "local/cgroup.h"
#include "local/plan.h"
#include "local/socket.h"
#include "local/stray.h"
#include "local/user.h"
#include "supervisor/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOOT_LIMIT_MS (30 * 1000)
#define DETACH_LIMIT_MS (10 * 1000)
#define STOP_LIMIT_MS 1000
#define STOP_STEP_US 500
#define END_LIMIT_MS (10 * 1000)
#define LOG_MOST 4096

/* ----------------------------------------------------------------------------- folders */

static bool fail_file(const char *path, GError **error)
{
    return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "runtime-dir", "\"%s\" can't be made",
                          path);
}

static bool make_folder(const char *folder, const char *name, mode_t mode, GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return (mkdir(path, mode) == 0 && chmod(path, mode) == 0) || fail_file(path, error);
}

static bool make_file(const char *folder, const char *name, const void *bytes, gsize size,
                      mode_t mode, GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0;
    for (const char *at = bytes, *end = at + size; ok && at < end;) {
        ssize_t n = write(fd, at, (gsize)(end - at));
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += MAX(n, 0);
    }
    ok = ok && fchmod(fd, mode) == 0;
    if (fd >= 0 && close(fd) < 0)
        ok = false;
    return ok || fail_file(path, error);
}

static bool make_text(const char *folder, const char *name, const char *text, GError **error)
{
    return make_file(folder, name, text, strlen(text), 0644, error);
}

/* Who there is in a sandbox: its user, under the number that it has on the host. */
static bool make_etc(const char *folder, const char *workdir, GError **error)
{
    unsigned uid = geteuid(), gid = getegid();
    g_autofree char *user =
        g_strdup_printf("%s:x:%u:%u::%s:/bin/sh\n", local_user_name(), uid, gid, workdir);
    g_autofree char *passwd =
        g_strconcat(user, uid == 0 ? "" : "root:x:0:0::/:/usr/sbin/nologin\n",
                    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n", NULL);
    g_autofree char *own_group = g_strdup_printf("%s:x:%u:\n", gid == 0 ? "root" : "sandbox", gid);
    g_autofree char *group =
        g_strconcat(own_group, gid == 0 ? "" : "root:x:0:\n", "nogroup:x:65534:\n", NULL);
    return make_folder(folder, "etc", 0755, error) &&
           make_text(folder, "etc/passwd", passwd, error) &&
           make_text(folder, "etc/group", group, error) &&
           make_text(folder, "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", error) &&
           make_text(folder, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n",
                     error);
}

bool local_launch_prepare(const LocalRecord *record, const char *folder, GError **error)
{
    SprProgram program;
    if (!spr_supervisor_program(NULL, &program))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-program",
                        "the provider was built without the supervisor for this machine");
    return make_folder(folder, "run", 0700, error) &&
           make_folder(folder, "workspace", 0755, error) &&
           make_folder(folder, "tmp", 01777, error) && make_etc(folder, record->workdir, error) &&
           make_file(folder, "supervisor", program.bytes, program.size, 0555, error);
}

/* ------------------------------------------------------------------------------ ending */

static void kill_process(int process)
{
    syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0);
}

/* Waits for the end of every one and closes them. */
static bool wait_for_all(GArray *processes, const SprWait *wait, GError **error)
{
    bool ok = true;
    for (guint i = 0; i < processes->len; i++) {
        int fd = g_array_index(processes, int, i), ready;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ok = ok && spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error);
        close(fd);
    }
    g_array_unref(processes);
    return ok;
}

/* The children of a process that is about to be killed. It is stopped before it is asked for them:
 * a child that it makes meanwhile would be missed, and bubblewrap's waits for ever for its parent.
 */
static GArray *open_last_children(pid_t pid, int process, const SprWait *wait)
{
    gint64 until_us = spr_deadline_after(STOP_LIMIT_MS);
    struct pollfd p = {.fd = process, .events = POLLIN};
    int ready = 0;
    syscall(SYS_pidfd_send_signal, process, SIGSTOP, NULL, 0);
    while (!spr_proc_is_stopped(pid) && ready == 0 && g_get_monotonic_time() < until_us &&
           spr_wait_poll(wait, &p, 1, g_get_monotonic_time() + STOP_STEP_US, &ready, NULL))
        ;
    return spr_proc_open_children(pid);
}

/* With the first process of a pid namespace all others end, and it after them. Where there is none
 * its keepers end their trees when it is gone. */
static bool end_process(pid_t pid, int process, const SprWait *wait, GError **error)
{
    GArray *all = spr_proc_open_children(pid);
    g_array_append_val(all, process);
    kill_process(process);
    return wait_for_all(all, wait, error);
}

int local_launch_find(LocalRecord *record, const char *folder)
{
    int process = local_record_open_process(record);
    pid_t pid = process < 0 ? local_socket_peer(folder) : 0;
    if (pid <= 0)
        return process;
    record->pid = pid;
    record->start_time = spr_proc_start_time(pid);
    g_free(record->boot_id);
    record->boot_id = g_strdup(spr_proc_boot_id());
    return local_record_open_process(record);
}

bool local_launch_end(LocalRecord *record, const char *folder, const SprWait *wait, GError **error)
{
    SprWait limited = spr_wait_within(wait, END_LIMIT_MS);
    int process = local_launch_find(record, folder);
    if (process >= 0 && !end_process(record->pid, process, &limited, error))
        return false;
    local_cgroup_remove(record->cgroup, &limited);
    g_clear_pointer(&record->cgroup, g_free);
    record->pid = 0;
    return true;
}

/* bubblewrap alone, or with the first process that it has made by now. */
static bool end_stray(const LocalStray *stray, const SprWait *wait, GError **error)
{
    int process = spr_proc_open(stray->pid, spr_proc_start_time(stray->pid));
    if (process < 0)
        return true;
    if (!stray->is_isolated)
        return end_process(stray->pid, process, wait, error);
    GArray *all = open_last_children(stray->pid, process, wait);
    g_array_append_val(all, process);
    for (guint i = 0; i < all->len; i++)
        kill_process(g_array_index(all, int, i));
    return wait_for_all(all, wait, error);
}

bool local_launch_end_strays(const char *folder, const SprWait *wait, GError **error)
{
    SprWait limited = spr_wait_within(wait, END_LIMIT_MS);
    g_autoptr(GArray) strays = local_stray_find(folder);
    bool ok = true;
    for (guint i = 0; ok && i < strays->len; i++)
        ok = end_stray(&g_array_index(strays, LocalStray, i), &limited, error);
    return ok;
}

/* ---------------------------------------------------------------------------- starting */

/* The last line of the log, or NULL. */
static char *last_words(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "log", NULL);
    char text[LOG_MOST + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, LOG_MOST) : 0;
    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = '\0';
    g_strchomp(text);
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    return *line ? g_utf8_make_valid(line, -1) : NULL;
}

static bool fail_isolation(const char *why, GError **error)
{
    return spr_fail(error, SPR_E_UNAVAILABLE, "no-isolation",
                    "bubblewrap does not work here: %s. Install it (the package bubblewrap) and "
                    "allow user namespaces, or ask for plain processes by \"isolation\": \"none\"",
                    why);
}

static bool fail_boot(const LocalRecord *record, const char *folder, GError **error)
{
    g_autofree char *words = last_words(folder);
    const char *why = words ? words : "it ended without a word";
    for (size_t i = 0; i < record->mounts.count; i++) {
        if (strstr(why, record->mounts.items[i].target))
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "mount-target",
                            "the mount at \"%s\" can't be made: %s", record->mounts.items[i].target,
                            why);
    }
    if (strcmp(record->isolation, LOCAL_BUBBLEWRAP) == 0)
        return fail_isolation(why, error);
    return spr_fail(error, SPR_E_UNAVAILABLE, "no-supervisor", "the supervisor does not start: %s",
                    why);
}

/* The pid of what was started, as nobody's child. */
static bool detach(const LocalRecord *record, const char *folder, const char *bwrap,
                   const SprWait *wait, pid_t *ret_pid, GError **error)
{
    g_auto(GStrv) argv = local_plan_argv(record, folder, bwrap);
    g_auto(GStrv) environment = local_plan_environment(record, folder);
    g_auto(SprProgramResult) result = {0};
    /* No token: what is detached already would be lost. */
    SprWait soon = spr_wait_to_tidy(wait, DETACH_LIMIT_MS);
    if (!spr_program_run((const char *const *)argv, (const char *const *)environment, &soon,
                         &result, error))
        return false;
    *ret_pid = (pid_t)g_ascii_strtoll(result.out->str, NULL, 10);
    if (result.exit_code == 0 && *ret_pid > 0)
        return true;
    g_strchomp(result.err->str);
    return spr_fail(error, SPR_E_UNAVAILABLE, "no-supervisor", "the sandbox can't be started: %s",
                    result.err->str);
}

/* Until the supervisor connects, or what it was to run in has ended. */
static bool await_boot(LocalRecord *record, const char *folder, int listener, int outer,
                       const SprWait *wait, SprSupervisor **ret_supervisor, GError **error)
{
    struct pollfd fds[] = {{.fd = listener, .events = POLLIN}, {.fd = outer, .events = POLLIN}};
    int ready;
    if (!spr_wait_poll(wait, fds, 2, SPR_NEVER, &ready, error))
        return false;
    if (!fds[0].revents)
        return fail_boot(record, folder, error);
    if (!local_socket_accept(folder, listener, wait, &record->pid, ret_supervisor, error))
        return false;
    record->start_time = spr_proc_start_time(record->pid);
    return true;
}

/* What runs of a start that failed. */
static void give_up(LocalRecord *record, const char *folder, pid_t outer_pid, int outer,
                    const SprWait *wait)
{
    SprWait tidy = spr_wait_to_tidy(wait, END_LIMIT_MS);
    GArray *children = open_last_children(outer_pid, outer, &tidy);
    for (guint i = 0; i < children->len; i++)
        kill_process(g_array_index(children, int, i));
    kill_process(outer);
    wait_for_all(children, &tidy, NULL);
    local_launch_end(record, folder, &tidy, NULL);
}

static bool launch_in(LocalRecord *record, const char *folder, int listener, const char *bwrap,
                      const SprWait *wait, SprSupervisor **ret_supervisor, GError **error)
{
    pid_t pid;
    if (!detach(record, folder, bwrap, wait, &pid, error))
        return false;
    int outer = spr_proc_open(pid, spr_proc_start_time(pid));
    if (outer < 0)
        return fail_boot(record, folder, error);
    bool ok = await_boot(record, folder, listener, outer, wait, ret_supervisor, error);
    if (!ok)
        give_up(record, folder, pid, outer, wait);
    close(outer);
    return ok;
}

bool local_launch(LocalRecord *record, const char *folder, const char *bwrap, const SprWait *wait,
                  int *ret_process, SprSupervisor **ret_supervisor, GError **error)
{
    SprWait limited = spr_wait_within(wait, BOOT_LIMIT_MS);
    LocalLimits limits = {record->memory, record->pids};
    g_autofree char *name = g_path_get_basename(folder);
    int listener;
    if (!bwrap && strcmp(record->isolation, LOCAL_BUBBLEWRAP) == 0)
        return fail_isolation("there is no program bwrap", error);
    if (!local_mounts_check(&record->mounts, error) ||
        !local_socket_listen(folder, &listener, error))
        return false;
    record->pid = 0;
    g_free(record->boot_id);
    record->boot_id = g_strdup(spr_proc_boot_id());
    bool ok = local_cgroup_make(&limits, name, &record->cgroup, error) &&
              launch_in(record, folder, listener, bwrap, &limited, ret_supervisor, error);
    close(listener);
    if (!ok)
        local_launch_end(record, folder, &limited, NULL);
    else
        *ret_process = local_record_open_process(record);
    return ok;
}
