#include "base/child.h"

#include "base/error.h"
#include "base/file.h"
#include "base/posixspawn.h"
#include "base/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPLAINT_MOST 8192
#define LINE_MOST 300

struct SprChild {
    int pid_fd; /* -1 where the kernel has none, or the host reaped it already */
    int complaint_fd;
    GString *complaint; /* its beginning and its end */
};

static bool fail_descriptor(GError **error)
{
    return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor",
                          "no descriptor for a child");
}

bool spr_child_start(const char *const *argv, const char *const *environment, int fd,
                     SprChild **ret_child, GError **error)
{
    int complaint[2];
    pid_t pid;
    /* What it complains about beyond the pipe's size is lost: it never waits. */
    if (pipe2(complaint, O_CLOEXEC | O_NONBLOCK) < 0 || !spr_fds_above_standard(complaint))
        return fail_descriptor(error);
    int why = spr_spawn(argv, environment, fd, fd, complaint[1], &pid);
    close(complaint[1]);
    if (why != 0) {
        close(complaint[0]);
        return spr_fail_errno(error, SPR_E_UNAVAILABLE, why, "no-program",
                              "the program \"%s\" cannot be started", argv[0]);
    }
    SprChild *child = g_new0(SprChild, 1);
    child->pid_fd = spr_fd_above_standard(pidfd_open(pid, 0));
    child->complaint_fd = complaint[0];
    child->complaint = g_string_new(NULL);
    *ret_child = child;
    return true;
}

bool spr_child_talk(const char *const *argv, const char *const *environment, int *ret_fd,
                    SprChild **ret_child, GError **error)
{
    int talk[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) < 0 ||
        !spr_fds_above_standard(talk))
        return fail_descriptor(error);
    bool ok = fcntl(talk[0], F_SETFL, O_NONBLOCK) == 0 || fail_descriptor(error);
    ok = ok && spr_child_start(argv, environment, talk[1], ret_child, error);
    close(talk[1]);
    if (!ok)
        close(talk[0]);
    else
        *ret_fd = talk[0];
    return ok;
}

static void hear_complaint(SprChild *child)
{
    char bytes[1024];
    gssize n;
    while ((n = read(child->complaint_fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            g_string_append_len(child->complaint, bytes, n);
        if (child->complaint->len > COMPLAINT_MOST) /* beginning and end stay */
            g_string_erase(child->complaint, COMPLAINT_MOST / 2,
                           (gssize)(child->complaint->len - COMPLAINT_MOST));
    }
}

/* Whether a line says anything: ssh frames some of what it prints. */
static bool has_words(const char *line)
{
    while (*line && !g_ascii_isalnum(*line))
        line++;
    return *line != '\0';
}

/* Its lines behind one another; the first and the last of them where all are too long. */
static char *join(GPtrArray *lines)
{
    g_ptr_array_add(lines, NULL);
    g_autofree char *all = g_strjoinv("; ", (char **)lines->pdata);
    const char *last = lines->pdata[lines->len - 2];
    if (g_utf8_strlen(all, -1) <= LINE_MOST)
        return g_steal_pointer(&all);
    g_autofree char *end = g_utf8_substring(last, 0, MIN(g_utf8_strlen(last, -1), LINE_MOST / 2));
    g_autofree char *begin = g_utf8_substring(all, 0, LINE_MOST - g_utf8_strlen(end, -1));
    return g_strdup_printf("%s ... %s", begin, end);
}

char *spr_child_complaint(SprChild *child)
{
    hear_complaint(child);
    g_autofree char *text = g_utf8_make_valid(child->complaint->str, -1);
    g_auto(GStrv) all = g_strsplit_set(text, "\r\n", -1);
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    for (char **line = all; *line; line++) {
        for (char *p = *line; *p; p++) {
            if (g_ascii_iscntrl(*p))
                *p = ' ';
        }
        if (has_words(g_strstrip(*line)))
            g_ptr_array_add(lines, *line);
    }
    return lines->len > 0 ? join(lines) : NULL;
}

bool spr_child_wait(SprChild *child, gint64 limit_ms, int *ret_code)
{
    siginfo_t info = {0};
    SprWait wait = spr_wait_for(limit_ms);
    struct pollfd p = {.fd = child->pid_fd, .events = POLLIN};
    int ready;
    if (child->pid_fd < 0 || !spr_wait_poll(&wait, &p, 1, SPR_NEVER, &ready, NULL) ||
        waitid(P_PIDFD, (id_t)child->pid_fd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return false;
    *ret_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return true;
}

void spr_child_end(SprChild *child)
{
    siginfo_t info;
    if (!child)
        return;
    if (child->pid_fd >= 0) {
        pidfd_send_signal(child->pid_fd, SIGKILL, NULL, 0);
        while (waitid(P_PIDFD, (id_t)child->pid_fd, &info, WEXITED) < 0 && errno == EINTR)
            continue;
        close(child->pid_fd);
    }
    close(child->complaint_fd);
    g_string_free(child->complaint, TRUE);
    g_free(child);
}
