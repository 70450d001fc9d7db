#include "mock_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONFIRM_MS 10000

static void order(MockRun *run, char what)
{
    send(run->control, &what, 1, MSG_NOSIGNAL);
}

/* Ends the command for a reason of ours; its tree is dead before the call returns. */
static void end_command(MockRun *run, MockEnding why)
{
    if (run->ending != MOCK_GOING)
        return;
    run->ending = why;
    int64_t grace = run->request->grace_ms;
    run->kill_ms = mock_now_ms() + (grace > 0 ? grace : 0);
    if (grace > 0)
        order(run, MOCK_ORDER_TERM);
}

/* ---- output */

static void hand_over(MockRun *run, const sprov_sink *sink, size_t size)
{
    if (!sink || run->ending == MOCK_REFUSED)
        return;
    mock_callback_begin();
    sprov_flow flow = sink->write(sink->ctx, run->buffer, size);
    mock_callback_end();
    if (flow != SPROV_FLOW_CONTINUE)
        end_command(run, MOCK_REFUSED);
}

static void read_output(MockRun *run, int *fd)
{
    ssize_t size = read(*fd, run->buffer, MOCK_CHUNK); /* as much as a pipe holds */
    if (size <= 0) {
        close(*fd);
        *fd = -1;
        return;
    }
    bool is_out = fd == &run->out;
    *(is_out ? &run->out_bytes : &run->err_bytes) += (uint64_t)size;
    hand_over(run, is_out ? run->request->stdout_sink : run->request->stderr_sink, (size_t)size);
}

/* ---- input */

static void close_input(MockRun *run)
{
    if (run->in >= 0)
        close(run->in);
    run->in = -1;
}

static void take_input(MockRun *run)
{
    const sprov_source *source = run->request->stdin_source;
    size_t count = 0;
    mock_callback_begin();
    sprov_source_status answer = source->read(source->ctx, run->pending, MOCK_CHUNK, &count);
    mock_callback_end();
    run->source_waits = answer == SPROV_SOURCE_AGAIN && source->fd > 0;
    if (run->source_waits)
        return;
    if (answer != SPROV_SOURCE_OK || count > MOCK_CHUNK) {
        end_command(run, MOCK_REFUSED);
        close_input(run);
        return;
    }
    run->taken += count;
    run->pending_at = 0;
    run->pending_size = count;
    bool is_wrong = run->taken > source->size ||
                    (count == 0 && source->size != UINT64_MAX && run->taken != source->size);
    if (is_wrong)
        end_command(run, MOCK_WRONG_SIZE);
    if (is_wrong || count == 0)
        close_input(run);
}

ssize_t mock_write_quietly(int fd, const void *data, size_t size)
{
    sigset_t pipe_only;
    sigset_t before;
    sigset_t waiting;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t written = write(fd, data, size);
    int failed = errno;
    if (written < 0 && failed == EPIPE && !sigismember(&waiting, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return written;
}

static void feed(MockRun *run)
{
    if (run->pending_size == run->pending_at) {
        take_input(run);
        return;
    }
    ssize_t size = mock_write_quietly(run->in, run->pending + run->pending_at,
                                      run->pending_size - run->pending_at);
    if (size > 0)
        run->pending_at += (size_t)size;
    else if (errno != EAGAIN && errno != EINTR)
        close_input(run); /* it reads no more, which is its own affair */
}

/* ---- the loop */

static void hear(MockRun *run)
{
    MockReport message;
    ssize_t size = recv(run->control, &message, sizeof message, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size != sizeof message) { /* the keeper itself was killed */
        run->is_gone = run->is_over = true;
        return;
    }
    bool waits_for_all = run->request->flags & SPROV_EXEC_WAIT_BACKGROUND;
    switch (message.kind) {
    case MOCK_EXITED:
        run->has_exited = true;
        run->wait_status = message.value;
        run->ended_ms = mock_now_ms();
        run->is_over = run->ending == MOCK_GOING && !waits_for_all;
        break;
    case MOCK_EMPTY:
        run->is_empty = true;
        run->is_over = run->ending == MOCK_GOING && waits_for_all;
        break;
    case MOCK_KILLED:
        run->is_over = true;
        if (message.value != 0)
            run->flags |= SPROV_EXEC_UNCONFIRMED;
        break;
    case MOCK_GONE:
        run->is_gone = run->is_over = true;
        break;
    default:
        break;
    }
}

static void check_time(MockRun *run)
{
    int64_t now = mock_now_ms();
    if (mock_is_cancelled(run->wait->cancel))
        end_command(run, MOCK_CANCELLED);
    if (now >= run->wait->deadline_ms)
        end_command(run, MOCK_CALL_TIMEOUT);
    if (now >= run->run_deadline_ms)
        end_command(run, MOCK_TIMED_OUT);
    if (run->ending == MOCK_GOING)
        return;
    if (!run->kill_ordered && (now >= run->kill_ms || run->is_empty)) {
        run->kill_ordered = true;
        run->confirm_ms = now + CONFIRM_MS;
        order(run, MOCK_ORDER_KILL);
    } else if (run->kill_ordered && now >= run->confirm_ms) {
        run->flags |= SPROV_EXEC_UNCONFIRMED;
        run->is_over = true;
    }
}

static int next_step(const MockRun *run)
{
    int64_t next = run->run_deadline_ms < run->wait->deadline_ms ? run->run_deadline_ms
                                                                 : run->wait->deadline_ms;
    if (run->ending != MOCK_GOING)
        next = run->kill_ordered ? run->confirm_ms : run->kill_ms;
    int64_t left = next - mock_now_ms();
    const sprov_cancel *cancel = run->wait->cancel;
    int64_t most = cancel && cancel->is_cancelled ? 50 : 60000;
    return (int)(left < 0 ? 0 : left < most ? left : most);
}

static void step(MockRun *run)
{
    const sprov_source *source = run->request->stdin_source;
    bool feeds = run->in >= 0 && run->ending == MOCK_GOING;
    enum {
        CONTROL,
        OUT,
        ERR,
        IN,
        SOURCE,
        CANCEL,
        COUNT
    };
    struct pollfd fds[COUNT] = {
        [CONTROL] = {.fd = run->control, .events = POLLIN},
        [OUT] = {.fd = run->out, .events = POLLIN},
        [ERR] = {.fd = run->err, .events = POLLIN},
        [IN] = {.fd = feeds && !run->source_waits ? run->in : -1, .events = POLLOUT},
        [SOURCE] = {.fd = feeds && run->source_waits ? source->fd : -1, .events = POLLIN},
        [CANCEL] = {.fd = run->ending == MOCK_GOING ? mock_cancel_fd(run->wait->cancel) : -1,
                    .events = POLLIN},
    };
    if (poll(fds, COUNT, next_step(run)) < 0)
        return;
    if (fds[OUT].revents)
        read_output(run, &run->out);
    if (fds[ERR].revents)
        read_output(run, &run->err);
    if (fds[SOURCE].revents)
        run->source_waits = false;
    if (fds[IN].revents & POLLERR)
        close_input(run);
    else if (fds[IN].revents)
        feed(run);
    if (fds[CONTROL].revents)
        hear(run);
}

/* Output that was printed before the end is there when the end is told, and is read first. */
void mock_run(MockRun *run)
{
    while (!run->is_over) {
        check_time(run);
        if (!run->is_over)
            step(run);
    }
    if (!run->kill_ordered)
        order(run, MOCK_ORDER_LEAVE);
}
