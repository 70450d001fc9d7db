/* Work with one spawned process: its end, its input and output, pushed or pulled. */
#include "mock_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536
#define TICK_NS 2000000

/* ---- what is to be told */

static bool has_ended(const sprov_process *process)
{
    return !atomic_load(&process->shared->is_running) || atomic_load(&process->shared->is_gone) ||
           atomic_load(&process->shared->is_forgotten);
}

/* The first byte that is still shown. */
static uint64_t oldest(const MockShared *shared, int which)
{
    uint64_t printed = atomic_load(&shared->printed[which]);
    uint64_t first = printed > shared->retain ? printed - shared->retain : 0;
    uint64_t taken = atomic_load(&shared->taken[which]);
    return shared->holds && taken < first ? taken : first;
}

static void take(MockShared *shared, int which, uint64_t until)
{
    unsigned long long before = atomic_load(&shared->taken[which]);
    while (before < until && !atomic_compare_exchange_weak(&shared->taken[which], &before, until)) {
    }
}

/* A sink that is paused or stopped is not waited for. */
static bool is_pushed(sprov_process *process)
{
    bool all = true;
    pthread_mutex_lock(&process->mutex);
    for (int which = 0; which < 2; which++) {
        bool is_idle = !process->push[which].sink.write || process->push[which].is_paused ||
                       process->push[which].is_stopped;
        all &= is_idle || process->push[which].at == atomic_load(&process->shared->printed[which]);
    }
    pthread_mutex_unlock(&process->mutex);
    return all;
}

static bool is_told(sprov_process *process, int stream)
{
    int which = stream - 1;
    if (stream == SPROV_STREAM_END)
        return has_ended(process) && is_pushed(process);
    pthread_mutex_lock(&process->mutex);
    uint64_t at = process->cursor[which];
    bool has_told = process->told_end[which];
    pthread_mutex_unlock(&process->mutex);
    uint64_t first = oldest(process->shared, which);
    bool ended = has_ended(process);
    bool has_more = (at > first ? at : first) < atomic_load(&process->shared->printed[which]);
    return has_more || (ended && !has_told);
}

static void refresh(sprov_process *process)
{
    for (int stream = 0; stream < 3; stream++) {
        eventfd_t none;
        bool told = is_told(process, stream);
        pthread_mutex_lock(&process->mutex);
        int fd = process->ready[stream];
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        bool is_set = fd >= 0 && poll(&poller, 1, 0) == 1;
        if (fd >= 0 && told && !is_set)
            eventfd_write(fd, 1);
        if (fd >= 0 && !told && is_set)
            eventfd_read(fd, &none);
        pthread_mutex_unlock(&process->mutex);
    }
}

/* ---- the thread that pushes, and watches for descriptors */

/* False when there was nothing to hand on. */
static bool push_some(sprov_process *process, int which, char *buffer)
{
    pthread_mutex_lock(&process->mutex);
    bool is_idle = process->is_released || !process->push[which].sink.write ||
                   process->push[which].is_paused || process->push[which].is_stopped;
    sprov_sink sink = process->push[which].sink;
    uint64_t at = process->push[which].at;
    unsigned resumes = process->push[which].resumes;
    pthread_mutex_unlock(&process->mutex);
    ssize_t size = is_idle ? 0 : pread(process->files[which], buffer, CHUNK, (off_t)at);
    if (size <= 0)
        return false;
    mock_callback_begin();
    sprov_flow flow = sink.write(sink.ctx, buffer, (size_t)size);
    mock_callback_end();
    take(process->shared, which, at + (uint64_t)size);
    pthread_mutex_lock(&process->mutex);
    process->push[which].at = at + (uint64_t)size;
    process->push[which].is_paused =
        flow == SPROV_FLOW_PAUSE && process->push[which].resumes == resumes;
    process->push[which].is_stopped |= flow == SPROV_FLOW_STOP;
    pthread_mutex_unlock(&process->mutex);
    return true;
}

static void *watch(void *data)
{
    sprov_process *process = data;
    char *buffer = malloc(CHUNK);
    bool is_released = false;
    while (!is_released) {
        bool pushed = push_some(process, 0, buffer);
        pushed |= push_some(process, 1, buffer);
        refresh(process);
        if (!pushed)
            nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
        pthread_mutex_lock(&process->mutex);
        is_released = process->is_released;
        pthread_mutex_unlock(&process->mutex);
    }
    free(buffer);
    mock_callback_begin();
    for (int which = 0; which < 2; which++)
        if (process->push[which].sink.done)
            process->push[which].sink.done(process->push[which].sink.ctx);
    mock_callback_end();
    mock_process_free(process);
    return NULL;
}

/* With the mutex held. */
static void need_thread(sprov_process *process)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    if (process->has_thread)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    process->has_thread = pthread_create(&thread, NULL, watch, process) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (process->has_thread)
        pthread_detach(thread);
}

void mock_process_push(sprov_process *process, const sprov_exec_request *exec)
{
    const sprov_sink *sinks[] = {exec->stdout_sink, exec->stderr_sink};
    pthread_mutex_lock(&process->mutex);
    for (int which = 0; which < 2; which++)
        if (sinks[which])
            memcpy(&process->push[which].sink, sinks[which], sizeof *sinks[which]);
    if (sinks[0] || sinks[1])
        need_thread(process);
    pthread_mutex_unlock(&process->mutex);
}

void mock_process_resume(sprov_process *process, sprov_stream stream)
{
    if (!process || stream < SPROV_STREAM_OUT || stream > SPROV_STREAM_ERR)
        return;
    pthread_mutex_lock(&process->mutex);
    process->push[stream - 1].resumes++;
    process->push[stream - 1].is_paused = false;
    pthread_mutex_unlock(&process->mutex);
}

int32_t mock_process_fd(sprov_process *process, sprov_stream stream)
{
    if (!process || stream < SPROV_STREAM_END || stream > SPROV_STREAM_ERR)
        return -1;
    pthread_mutex_lock(&process->mutex);
    if (process->ready[stream] < 0)
        process->ready[stream] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    need_thread(process);
    int fd = process->ready[stream];
    pthread_mutex_unlock(&process->mutex);
    refresh(process);
    return fd;
}

void mock_process_release(sprov_process *process)
{
    if (!process)
        return;
    atomic_fetch_sub(&process->provider->users, 1);
    pthread_mutex_lock(&process->mutex);
    process->is_released = true;
    bool has_thread = process->has_thread;
    pthread_mutex_unlock(&process->mutex);
    if (!has_thread) /* else it does */
        mock_process_free(process);
}

/* ---- the end */

void mock_process_result(const MockShared *shared, sprov_exec_result *result)
{
    int status = atomic_load(&shared->wait_status);
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->flags = atomic_load(&shared->flags);
    result->exit_code = signal ? 128 + signal : WEXITSTATUS(status);
    result->term_signal = signal;
    result->duration_ms =
        (uint64_t)(atomic_load(&shared->ended_ms) - atomic_load(&shared->started_ms));
    result->out_bytes = atomic_load(&shared->printed[0]);
    result->err_bytes = atomic_load(&shared->printed[1]);
}

sprov_status mock_process_wait(sprov_process *process, const sprov_call *call,
                               sprov_exec_result *result, sprov_error *error)
{
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, -1, SPROV_CALL_NOWAIT, error);
    if (status == SPROV_OK && result)
        status = mock_check_table(result, sizeof *result, "sprov_exec_result", error);
    while (status == SPROV_OK && !(has_ended(process) && is_pushed(process)))
        status = mock_process_tick(&wait, process, error);
    if (status == SPROV_OK && result)
        mock_process_result(process->shared, result);
    return status;
}

/* ---- orders to its keeper */

/* OK with *ret_number 0: there is no keeper any more. */
static sprov_status give_order(sprov_process *process, const MockWait *wait, char what,
                               const sprov_kill_request *kill, unsigned *ret_number,
                               sprov_error *error)
{
    char *path = mock_process_path(process->dir, process->id, "orders");
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    free(path);
    *ret_number = 0;
    if (fd < 0)
        return SPROV_OK;
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK && flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = mock_process_tick(wait, process, error);
    if (status == SPROV_OK) {
        MockShared *shared = process->shared;
        shared->order.what = what;
        shared->order.signal = kill ? kill->signal : 0;
        shared->order.scope = kill ? kill->scope : 0;
        shared->order.grace_ms = kill ? kill->grace_ms : 0;
        *ret_number = atomic_fetch_add(&shared->order.number, 1) + 1;
        if (mock_write_quietly(fd, "x", 1) != 1)
            *ret_number = 0;
    }
    close(fd);
    return status;
}

static bool is_keeper_there(const sprov_process *process)
{
    return kill(atomic_load(&process->shared->keeper), 0) == 0 || errno != ESRCH;
}

/* What the keeper answered; fallback when it has gone. */
static sprov_status order(sprov_process *process, const MockWait *wait, char what,
                          const sprov_kill_request *kill, sprov_status fallback,
                          sprov_status *ret_answer, sprov_error *error)
{
    unsigned number;
    sprov_status status = give_order(process, wait, what, kill, &number, error);
    *ret_answer = fallback;
    while (status == SPROV_OK && number) {
        bool is_there = is_keeper_there(process);
        if (atomic_load(&process->shared->answered) >= number) {
            *ret_answer = atomic_load(&process->shared->answer);
            break;
        }
        if (!is_there)
            break;
        status = mock_process_tick(wait, process, error);
    }
    return status;
}

sprov_status mock_process_kill(sprov_process *process, const sprov_kill_request *request,
                               const sprov_call *call, sprov_error *error)
{
    if (!process || !request)
        return mock_null(error, process ? "request" : "process");
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, -1, 0, error);
    if (status == SPROV_OK)
        status = mock_check_request(request, sizeof *request, "sprov_kill_request", error);
    if (status != SPROV_OK)
        return status;
    if (request->signal < 1 || request->signal > 64 || request->scope < SPROV_KILL_TREE ||
        request->scope > SPROV_KILL_LEADER || request->reserved)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "kill", 0,
                         "there is no signal %d for scope %d", request->signal, request->scope);
    sprov_status answer;
    status = order(process, &wait, MOCK_ORDER_KILL, request, SPROV_E_NOT_FOUND, &answer, error);
    if (status == SPROV_OK && answer == SPROV_E_NOT_FOUND)
        return mock_fail(error, answer, "process-ended", 0, "nothing of process %s is left",
                         process->id);
    return status == SPROV_OK ? answer : status;
}

/* ---- input */

static sprov_status no_input(const sprov_process *process, sprov_error *error)
{
    return mock_fail(error, SPROV_E_CONFLICT, "no-input", 0, "process %s has no open input",
                     process->id);
}

/* Locked, so that data of others is not mixed with ours. */
static sprov_status open_input(sprov_process *process, const MockWait *wait, int *ret_fd,
                               sprov_error *error)
{
    char *path = mock_process_path(process->dir, process->id, "in");
    int fd = atomic_load(&process->shared->has_input)
                 ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    free(path);
    if (fd < 0)
        return no_input(process, error);
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK && flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = mock_process_tick(wait, process, error);
    if (status == SPROV_OK)
        *ret_fd = fd;
    else
        close(fd);
    return status;
}

static sprov_status write_all(sprov_process *process, int fd, const char *data, size_t size,
                              size_t *written, const MockWait *wait, sprov_error *error)
{
    while (*written < size) {
        ssize_t part = mock_write_quietly(fd, data + *written, size - *written);
        if (part > 0) {
            *written += (size_t)part;
            continue;
        }
        if (errno != EAGAIN || !atomic_load(&process->shared->has_input))
            return no_input(process, error);
        if (wait->flags & SPROV_CALL_NOWAIT && *written > 0)
            return SPROV_OK;
        sprov_status status = mock_process_tick(wait, process, error);
        if (status != SPROV_OK)
            return status;
    }
    return SPROV_OK;
}

sprov_status mock_process_write(sprov_process *process, const void *data, size_t size,
                                size_t *written, const sprov_call *call, sprov_error *error)
{
    if (!process || (!data && size > 0) || !written)
        return mock_null(error, !process ? "process" : !written ? "written" : "data");
    MockWait wait;
    int fd = -1;
    *written = 0;
    sprov_status status =
        mock_wait_begin(&wait, process->provider, call, -1, SPROV_CALL_NOWAIT, error);
    if (status != SPROV_OK || size == 0)
        return status;
    status = mock_process_check(process, error);
    if (status == SPROV_OK)
        status = open_input(process, &wait, &fd, error);
    if (status != SPROV_OK)
        return status;
    status = write_all(process, fd, data, size, written, &wait, error);
    close(fd);
    return status;
}

sprov_status mock_process_close(sprov_process *process, const sprov_call *call, sprov_error *error)
{
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, MOCK_REQUEST_MS, 0, error);
    sprov_status answer;
    if (status == SPROV_OK)
        status = order(process, &wait, MOCK_ORDER_CLOSE, NULL, SPROV_OK, &answer, error);
    return status == SPROV_OK ? answer : status;
}

sprov_status mock_process_resize(sprov_process *process, uint16_t rows, uint16_t columns,
                                 const sprov_call *call, sprov_error *error)
{
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, MOCK_REQUEST_MS, 0, error);
    if (status != SPROV_OK)
        return status;
    if (rows == 0 || columns == 0)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "size", 0,
                         "a terminal has at least one row and one column");
    return mock_fail(error, SPROV_E_CONFLICT, "no-terminal", 0, "process %s has no terminal",
                     process->id);
}

/* ---- output */

static sprov_status check_read(sprov_stream stream, size_t capacity, sprov_error *error)
{
    if (stream != SPROV_STREAM_OUT && stream != SPROV_STREAM_ERR)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "stream", 0,
                         "there is no stream %d to read", stream);
    if (capacity == 0)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "capacity", 0,
                         "there is no room for a byte");
    return SPROV_OK;
}

/* False: nothing yet. *at moves past what is gone. */
static bool read_some(sprov_process *process, int which, uint64_t *at, void *buffer,
                      size_t capacity, size_t *count)
{
    bool ended = has_ended(process);
    uint64_t first = oldest(process->shared, which);
    uint64_t printed = atomic_load(&process->shared->printed[which]);
    if (*at < first)
        *at = first;
    *count = 0;
    if (*at >= printed)
        return ended;
    size_t most = printed - *at < capacity ? (size_t)(printed - *at) : capacity;
    ssize_t size = pread(process->files[which], buffer, most, (off_t)*at);
    *count = size > 0 ? (size_t)size : 0;
    *at += *count;
    take(process->shared, which, *at);
    return true;
}

sprov_status mock_process_read(sprov_process *process, sprov_stream stream, uint64_t *offset,
                               void *buffer, size_t capacity, size_t *count, const sprov_call *call,
                               sprov_error *error)
{
    if (!process || !buffer || !count)
        return mock_null(error, !process ? "process" : !buffer ? "buffer" : "count");
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, -1, SPROV_CALL_NOWAIT, error);
    if (status == SPROV_OK)
        status = check_read(stream, capacity, error);
    if (status != SPROV_OK)
        return status;
    int which = stream - 1;
    pthread_mutex_lock(&process->mutex);
    uint64_t at = offset ? *offset : process->cursor[which];
    pthread_mutex_unlock(&process->mutex);
    size_t got;
    while (status == SPROV_OK && !read_some(process, which, &at, buffer, capacity, &got))
        status = mock_process_tick(&wait, process, error);
    if (status != SPROV_OK)
        return status;
    *count = got;
    if (offset) {
        *offset = at;
        return SPROV_OK;
    }
    pthread_mutex_lock(&process->mutex);
    process->cursor[which] = at;
    process->told_end[which] |= got == 0;
    pthread_mutex_unlock(&process->mutex);
    refresh(process);
    return SPROV_OK;
}
