#include "base/program.h"

#include "base/error.h"
#include "base/file.h"
#include "base/posixspawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_STEP_US (20 * 1000)

/* A pipe of which both ends are above the standard streams, which a host may have closed. */
static bool make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0 && spr_fds_above_standard(ends) &&
           fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Reads what is there; closes the descriptor at its end. */
static void take(int *fd, GString *into)
{
    char bytes[4096];
    for (;;) {
        gssize n = read(*fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_end(fd);
            return;
        }
        gsize room = SPR_PROGRAM_OUTPUT_MOST - into->len;
        g_string_append_len(into, bytes, (gssize)MIN((gsize)n, room));
    }
}

static bool take_all(int *out, int *err, SprProgramResult *result, const SprWait *wait,
                     GError **error)
{
    while (*out >= 0 || *err >= 0) {
        struct pollfd fds[] = {{.fd = *out, .events = POLLIN}, {.fd = *err, .events = POLLIN}};
        int ready;
        if (!spr_wait_poll(wait, fds, 2, SPR_NEVER, &ready, error))
            return false;
        if (fds[0].revents)
            take(out, result->out);
        if (fds[1].revents)
            take(err, result->err);
    }
    return true;
}

/* Its streams are closed, so its end is near. */
static bool reap(pid_t pid, SprProgramResult *result, const SprWait *wait, GError **error)
{
    int status = 0;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        int ready;
        if (got == pid || (got < 0 && errno != EINTR)) {
            bool known = got == pid;
            result->exit_code = !known                ? -1
                                : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                      : WEXITSTATUS(status);
            return true;
        }
        if (!spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + END_STEP_US, &ready, error))
            return false;
    }
}

static void kill_all(pid_t pid)
{
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

bool spr_program_run(const char *const *argv, const char *const *environment, const SprWait *wait,
                     SprProgramResult *ret_result, GError **error)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    g_auto(SprProgramResult) result = {g_string_new(NULL), g_string_new(NULL), -1};
    pid_t pid = 0;
    bool made = make_pipe(out) && make_pipe(err);
    int why = made ? spr_spawn(argv, environment, -1, out[1], err[1], &pid) : errno;
    close_end(&out[1]);
    close_end(&err[1]);
    bool ok = false;
    if (!made) {
        spr_fail_errno(error, SPR_E_EXHAUSTED, why, "no-descriptor", "a pipe to %s", argv[0]);
    } else if (why != 0) {
        spr_fail_errno(error, SPR_E_NOT_FOUND, why, "no-program",
                       "the program %s cannot be started", argv[0]);
    } else {
        ok = take_all(&out[0], &err[0], &result, wait, error) && reap(pid, &result, wait, error);
        if (!ok)
            kill_all(pid);
    }
    close_end(&out[0]);
    close_end(&err[0]);
    if (ok) {
        *ret_result = result;
        result = (SprProgramResult){NULL, NULL, 0};
    }
    return ok;
}

void spr_program_result_clear(SprProgramResult *result)
{
    if (result->out)
        g_string_free(result->out, TRUE);
    if (result->err)
        g_string_free(result->err, TRUE);
    *result = (SprProgramResult){NULL, NULL, 0};
}
