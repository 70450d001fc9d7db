#include "mock_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC_FLAGS (SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE)

/* ---- the request */

sprov_status mock_check_exec(const sprov_exec_request *request, const sprov_exec_result *result,
                             sprov_error *error)
{
    sprov_status status = mock_check_request(request, sizeof *request, "sprov_exec_request", error);
    if (status == SPROV_OK && result)
        status = mock_check_table(result, sizeof *result, "sprov_exec_result", error);
    if (status == SPROV_OK)
        status = mock_check_sink(request->stdout_sink, "stdout_sink", error);
    if (status == SPROV_OK)
        status = mock_check_sink(request->stderr_sink, "stderr_sink", error);
    if (status == SPROV_OK)
        status = mock_check_source(request->stdin_source, "stdin_source", error);
    if (status != SPROV_OK)
        return status;
    if (request->flags & ~(uint32_t)SPROV_EXEC_WAIT_BACKGROUND)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "unknown-flag", 0,
                         "flags 0x%x of sprov_exec_request are not known", request->flags);
    if (request->argv ? !request->argv[0] || !*request->argv[0]
                      : !request->command || !*request->command)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "no-command", 0,
                         "the request names no command: set command or argv");
    return mock_check_user(request->user, error);
}

typedef struct {
    json_t *env;
    sprov_status status;
    const char *name;
} SecretTaker;

static void take_secret(void *ctx, const char *text, size_t size)
{
    SecretTaker *taker = ctx;
    if (memchr(text, '\0', size))
        taker->status = SPROV_E_INVALID_ARGUMENT;
    else
        json_object_set_new_nocheck(taker->env, taker->name, json_stringn_nocheck(text, size));
}

static sprov_status add_secrets(sprov_sandbox *sandbox, const char *const *names, json_t *env,
                                sprov_error *error)
{
    const sprov_callbacks *callbacks = &sandbox->callbacks;
    for (; names && *names; names++) {
        if (!**names || strchr(*names, '='))
            return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "env-name", 0,
                             "secret_env holds \"%s\", which is no name", *names);
        SecretTaker taker = {.env = env, .name = *names};
        int32_t answer = 1;
        mock_callback_begin();
        if (callbacks->secret)
            answer = callbacks->secret(callbacks->ctx, *names, take_secret, &taker);
        mock_callback_end();
        if (taker.status != SPROV_OK)
            return mock_fail(error, taker.status, "secret-value", 0,
                             "secret \"%s\" holds a NUL and fits no environment", *names);
        if (answer != 0 || !json_object_get(env, *names))
            return mock_fail(error, SPROV_E_NOT_FOUND, "secret-not-found", 0,
                             "the host has no secret \"%s\" for secret_env", *names);
    }
    return SPROV_OK;
}

sprov_status mock_make_env(sprov_sandbox *sandbox, const sprov_exec_request *request,
                           char ***ret_env, sprov_error *error)
{
    json_t *own = json_object();
    sprov_status status = mock_env_add(own, request->env, error);
    if (status == SPROV_OK)
        status = add_secrets(sandbox, request->secret_env, own, error);
    if (status == SPROV_OK)
        *ret_env = mock_env_build(sandbox, own);
    json_decref(own);
    return status;
}

/* ---- the launch */

void mock_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int mock_make_fds(int fds[MOCK_PAIRS][2], bool has_input)
{
    memset(fds, -1, sizeof(int[MOCK_PAIRS][2]));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds[MOCK_CONTROL]) != 0 ||
        pipe2(fds[MOCK_OUT], O_CLOEXEC) != 0 || pipe2(fds[MOCK_ERR], O_CLOEXEC) != 0)
        return errno;
    if (!has_input) {
        fds[MOCK_IN][1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return fds[MOCK_IN][1] < 0 ? errno : 0;
    }
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0)
        return errno;
    fds[MOCK_IN][0] = pair[1];
    fds[MOCK_IN][1] = pair[0];
    return fcntl(fds[MOCK_IN][0], F_SETFL, O_NONBLOCK) != 0 ? errno : 0;
}

static sprov_status refuse_cwd(const char *cwd, int failed, sprov_error *error)
{
    sprov_status code = failed == ENOENT    ? SPROV_E_NOT_FOUND
                        : failed == EACCES  ? SPROV_E_DENIED
                        : failed == ENOTDIR ? SPROV_E_INVALID_ARGUMENT
                                            : SPROV_E_EXHAUSTED;
    return mock_fail(error, code, failed == ENOENT ? "cwd-not-found" : "cwd", failed,
                     "the command could not be started in %s: %s", cwd, strerror(failed));
}

sprov_status mock_launch(sprov_sandbox *sandbox, const sprov_exec_request *request, char **env,
                         int fds[MOCK_PAIRS][2], const MockSpawn *spawn, sprov_error *error)
{
    const char *const shell[] = {"/bin/sh", "-c", request->command, NULL};
    char *work = mock_work(sandbox);
    char *cwd = NULL;
    char *run_dir = NULL;
    bool is_relative = request->cwd && request->cwd[0] != '/';
    if (asprintf(&cwd, "%s%s%s", is_relative || !request->cwd ? work : "", is_relative ? "/" : "",
                 request->cwd ? request->cwd : "") < 0)
        cwd = NULL;
    if (asprintf(&run_dir, "%s/run", sandbox->dir) < 0)
        run_dir = NULL;
    MockLaunch how = {.argv = (char *const *)(request->argv ? request->argv : shell),
                      .env = env,
                      .cwd = cwd,
                      .run_dir = run_dir,
                      .control = fds[MOCK_CONTROL][1],
                      .in = fds[MOCK_IN][1],
                      .out = fds[MOCK_OUT][1],
                      .err = fds[MOCK_ERR][1],
                      .out_read = fds[MOCK_OUT][0],
                      .err_read = fds[MOCK_ERR][0],
                      .spawn = spawn};
    int failed = mock_keeper_fork(&how);
    for (int i = 0; i < MOCK_PAIRS; i++)
        mock_close_fd(&fds[i][1]);
    MockReport report = {.kind = MOCK_FAILED, .value = failed ? failed : EIO};
    if (!failed && recv(fds[MOCK_CONTROL][0], &report, sizeof report, 0) != sizeof report)
        report.kind = MOCK_FAILED;
    sprov_status status =
        report.kind == MOCK_STARTED ? SPROV_OK : refuse_cwd(cwd, report.value, error);
    free(work);
    free(cwd);
    free(run_dir);
    return status;
}

/* ---- the answer */

static void fill_result(const MockRun *run, sprov_exec_result *result)
{
    if (!result)
        return;
    int signal = WIFSIGNALED(run->wait_status) ? WTERMSIG(run->wait_status) : 0;
    result->flags = run->flags;
    result->exit_code = signal ? 128 + signal : WEXITSTATUS(run->wait_status);
    result->term_signal = signal;
    if (run->ending != MOCK_GOING) {
        result->flags |= SPROV_EXEC_KILLED;
        result->flags |= run->ending == MOCK_TIMED_OUT ? SPROV_EXEC_TIMED_OUT : 0;
        result->exit_code = 128 + SIGKILL;
        result->term_signal = SIGKILL;
    }
    int64_t ended = run->has_exited ? run->ended_ms : mock_now_ms();
    result->duration_ms = (uint64_t)(ended - run->started_ms);
    result->out_bytes = run->out_bytes;
    result->err_bytes = run->err_bytes;
}

static sprov_status answer(const MockRun *run, const sprov_sandbox *sandbox,
                           sprov_exec_result *result, sprov_error *error)
{
    if (run->is_gone)
        return mock_fail_gone(error, "sandbox-gone", sandbox->options.id);
    fill_result(run, result);
    if (run->ending == MOCK_CALL_TIMEOUT)
        return mock_fail(error, SPROV_E_TIMEOUT, "timeout", 0,
                         "the call's deadline passed; the command was killed");
    if (run->ending == MOCK_REFUSED)
        return mock_fail(error, SPROV_E_REFUSED, "callback-stopped", 0,
                         "a sink or the source stopped the command");
    if (run->ending == MOCK_WRONG_SIZE)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "source-size", 0,
                         "stdin_source has not the %llu bytes that it told",
                         (unsigned long long)run->request->stdin_source->size);
    return SPROV_OK;
}

static void tell_done(const sprov_exec_request *request)
{
    const sprov_sink *out = request->stdout_sink;
    const sprov_sink *err = request->stderr_sink;
    const sprov_source *in = request->stdin_source;
    mock_callback_begin();
    if (out && out->done)
        out->done(out->ctx);
    if (err && err->done)
        err->done(err->ctx);
    if (in && in->done)
        in->done(in->ctx);
    mock_callback_end();
}

static sprov_status run_started(sprov_sandbox *sandbox, const sprov_exec_request *request,
                                const MockWait *wait, int fds[MOCK_PAIRS][2],
                                sprov_exec_result *result, sprov_error *error)
{
    int64_t limit = request->run_timeout_ms ? request->run_timeout_ms : sandbox->options.timeout_ms;
    MockRun run = {.request = request,
                   .wait = wait,
                   .buffer = malloc(MOCK_CHUNK),
                   .pending = malloc(MOCK_CHUNK),
                   .control = fds[MOCK_CONTROL][0],
                   .out = fds[MOCK_OUT][0],
                   .err = fds[MOCK_ERR][0],
                   .in = fds[MOCK_IN][0],
                   .started_ms = mock_now_ms(),
                   .run_deadline_ms = limit > 0 ? mock_deadline(limit) : INT64_MAX};
    mock_run(&run);
    fds[MOCK_OUT][0] = run.out;
    fds[MOCK_ERR][0] = run.err;
    fds[MOCK_IN][0] = run.in;
    free(run.buffer);
    free(run.pending);
    return answer(&run, sandbox, result, error);
}

static sprov_status exec_ready(sprov_sandbox *sandbox, const sprov_exec_request *request,
                               const MockWait *wait, int lock, sprov_exec_result *result,
                               sprov_error *error)
{
    char **env = NULL;
    int fds[MOCK_PAIRS][2];
    sprov_status status = mock_make_env(sandbox, request, &env, error);
    int failed = mock_make_fds(fds, request->stdin_source != NULL);
    if (status == SPROV_OK && failed)
        status = mock_fail(error, SPROV_E_EXHAUSTED, "descriptors", failed,
                           "no pipes for a command: %s", strerror(failed));
    if (status == SPROV_OK)
        status = mock_launch(sandbox, request, env, fds, NULL, error);
    close(lock);
    mock_env_free(env);
    if (status == SPROV_OK)
        status = run_started(sandbox, request, wait, fds, result, error);
    for (int i = 0; i < MOCK_PAIRS; i++) {
        mock_close_fd(&fds[i][0]);
        mock_close_fd(&fds[i][1]);
    }
    return status;
}

sprov_status mock_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                       const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!sandbox || !request)
        return mock_null(error, sandbox ? "request" : "sandbox");
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, -1, EXEC_FLAGS, error);
    if (status == SPROV_OK)
        status = mock_check_exec(request, result, error);
    if (status != SPROV_OK)
        return status;
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_use(sandbox, &wait, &lock, error);
    if (status == SPROV_OK) {
        status = exec_ready(sandbox, request, &wait, lock, result, error);
        tell_done(request);
    }
    mock_sandbox_unref(sandbox);
    return status;
}
