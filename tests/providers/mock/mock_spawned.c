/*
 * The keeper of a spawned process: writes down what it prints and how it ends, where everybody who
 * has a handle can see it, and does what they order. Nothing here allocates or takes a lock.
 */
#include "mock_keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536
#define HELD_AT_ALL 65536 /* what a holding process may print that is not to be kept */

typedef struct {
    MockKeeper keeper; /* first: the rest is found from it */
    MockShared *shared;
    const MockSpawn *spawn;
    int streams[2];
    int input;
    int64_t run_deadline_ms;
    bool past_limit;    /* its time is over, and it was told to end */
    unsigned handled;   /* number of the order that was taken */
    bool in_grace;      /* of that order */
    int64_t kill_ms;    /* the end of a grace; INT64_MAX: none */
    int ordered_signal; /* the last one that was sent */
} Spawned;

static int scope_signal(Spawned *spawned, int scope, int number)
{
    const MockKeeper *keeper = &spawned->keeper;
    bool leads = atomic_load(&spawned->shared->is_running);
    if (scope == SPROV_KILL_TREE)
        return mock_keeper_signal(number, true);
    if (scope == SPROV_KILL_LEADER && !leads)
        return 0;
    return kill(scope == SPROV_KILL_GROUP ? -keeper->leader : keeper->leader, number) == 0;
}

/* ---- output */

static uint64_t waiting(const Spawned *spawned, int which)
{
    const MockShared *shared = spawned->shared;
    return atomic_load(&shared->printed[which]) - atomic_load(&shared->taken[which]);
}

static bool is_full(const Spawned *spawned, int which)
{
    const MockShared *shared = spawned->shared;
    uint64_t most = shared->retain ? shared->retain : HELD_AT_ALL;
    return shared->holds && waiting(spawned, which) >= most;
}

/* False at its end, or when there is nothing more now. */
static bool keep_output(Spawned *spawned, int which)
{
    static char buffer[CHUNK];
    ssize_t size = read(spawned->streams[which], buffer, sizeof buffer);
    if (size <= 0) {
        close(spawned->streams[which]);
        spawned->streams[which] = -1;
        return false;
    }
    for (ssize_t at = 0; at < size;) {
        ssize_t part = write(spawned->spawn->files[which], buffer + at, (size_t)(size - at));
        if (part < 0)
            return false;
        at += part;
    }
    atomic_fetch_add(&spawned->shared->printed[which], (unsigned long long)size);
    return true;
}

/* What is in the pipes now; children that live on may print more, which nobody asked for. */
static void drain(Spawned *spawned)
{
    for (int which = 0; which < 2; which++) {
        int left = 0;
        while (spawned->streams[which] >= 0 &&
               ioctl(spawned->streams[which], FIONREAD, &left) == 0 && left > 0 &&
               keep_output(spawned, which)) {
        }
    }
}

/* ---- ends */

static void close_input(Spawned *spawned)
{
    atomic_store(&spawned->shared->has_input, false);
    if (spawned->input < 0)
        return;
    unlink(spawned->spawn->input_path);
    close(spawned->input);
    spawned->input = -1;
}

static void on_exit_of_leader(MockKeeper *keeper, int status)
{
    Spawned *spawned = (Spawned *)keeper;
    MockShared *shared = spawned->shared;
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == spawned->ordered_signal;
    drain(spawned);
    close_input(spawned);
    atomic_store(&shared->wait_status, status);
    if (was_killed)
        atomic_fetch_or(&shared->flags, SPROV_EXEC_KILLED);
    if (spawned->past_limit) {
        atomic_fetch_or(&shared->flags, SPROV_EXEC_KILLED | SPROV_EXEC_TIMED_OUT);
        atomic_store(&shared->wait_status, SIGKILL);
    }
    atomic_store(&shared->ended_ms, mock_now_ms());
    atomic_store(&shared->is_running, false);
}

static _Noreturn void leave(Spawned *spawned)
{
    unlink(spawned->spawn->orders_path);
    close_input(spawned);
    mock_keeper_leave(&spawned->keeper);
}

/* Until nothing of the scope is left. */
static void kill_scope(Spawned *spawned, int scope)
{
    spawned->ordered_signal = SIGKILL;
    if (scope == SPROV_KILL_TREE) {
        mock_keeper_kill(&spawned->keeper);
        return;
    }
    for (int round = 0; round < 3000 && scope_signal(spawned, scope, SIGKILL) > 0; round++) {
        mock_keeper_reap(&spawned->keeper);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    mock_keeper_reap(&spawned->keeper);
}

/* ---- orders */

static void answer(Spawned *spawned, sprov_status status)
{
    spawned->in_grace = false;
    spawned->kill_ms = INT64_MAX;
    atomic_store(&spawned->shared->answer, status);
    atomic_store(&spawned->shared->answered, spawned->handled);
}

static void begin_kill(Spawned *spawned)
{
    const MockShared *shared = spawned->shared;
    int scope = shared->order.scope;
    int number = shared->order.signal;
    mock_keeper_reap(&spawned->keeper); /* what has ended already is not killed */
    if (scope_signal(spawned, scope, 0) == 0) {
        answer(spawned, SPROV_E_NOT_FOUND);
        return;
    }
    if (number == SIGKILL) {
        kill_scope(spawned, scope);
        answer(spawned, SPROV_OK);
        return;
    }
    spawned->ordered_signal = number;
    scope_signal(spawned, scope, number);
    spawned->in_grace = shared->order.grace_ms > 0;
    spawned->kill_ms = mock_deadline(shared->order.grace_ms);
    if (!spawned->in_grace)
        answer(spawned, SPROV_OK);
}

static void obey(Spawned *spawned)
{
    char bytes[64];
    if (read(spawned->spawn->orders, bytes, sizeof bytes) <= 0)
        return;
    unsigned number = atomic_load(&spawned->shared->order.number);
    if (number == spawned->handled)
        return;
    spawned->handled = number;
    if (spawned->shared->order.what == MOCK_ORDER_CLOSE) {
        close_input(spawned);
        answer(spawned, SPROV_OK);
    } else {
        begin_kill(spawned);
    }
}

/* ---- the loop */

static void check_time(Spawned *spawned)
{
    int64_t now = mock_now_ms();
    int scope = spawned->past_limit ? SPROV_KILL_TREE : spawned->shared->order.scope;
    bool is_over = spawned->in_grace && scope_signal(spawned, scope, 0) == 0;
    if (now >= spawned->run_deadline_ms && !spawned->past_limit) {
        spawned->past_limit = true;
        spawned->kill_ms = mock_deadline(spawned->shared->grace_ms);
        if (spawned->shared->grace_ms > 0)
            mock_keeper_signal(SIGTERM, true);
    }
    if (!is_over && now >= spawned->kill_ms)
        kill_scope(spawned, scope);
    if (is_over || now >= spawned->kill_ms)
        answer(spawned, SPROV_OK);
}

static int next_step(const Spawned *spawned)
{
    int64_t next = spawned->past_limit || spawned->kill_ms < spawned->run_deadline_ms
                       ? spawned->kill_ms
                       : spawned->run_deadline_ms;
    int64_t left = next - mock_now_ms();
    bool looks_often = spawned->in_grace || spawned->shared->holds;
    int64_t most = looks_often ? 5 : 60000;
    return (int)(left < 0 ? 0 : left < most ? left : most);
}

static void take_signals(Spawned *spawned, int signals)
{
    char info[128];
    if (read(signals, info, sizeof info) != sizeof info || *(uint32_t *)(void *)info != SIGTERM)
        return;
    spawned->keeper.ended = true;
    mock_keeper_kill(&spawned->keeper);
    leave(spawned);
}

static void step(Spawned *spawned, int signals)
{
    bool runs = atomic_load(&spawned->shared->is_running);
    struct pollfd fds[] = {
        {.fd = signals, .events = POLLIN},
        {.fd = spawned->spawn->orders, .events = POLLIN},
        {.fd = runs && is_full(spawned, 0) ? -1 : spawned->streams[0], .events = POLLIN},
        {.fd = runs && is_full(spawned, 1) ? -1 : spawned->streams[1], .events = POLLIN},
    };
    if (poll(fds, 4, next_step(spawned)) < 0)
        return;
    for (int which = 0; which < 2; which++) {
        if (fds[2 + which].revents && runs)
            keep_output(spawned, which);
        else if (fds[2 + which].revents)
            mock_keeper_discard(&spawned->streams[which]);
    }
    if (fds[1].revents)
        obey(spawned);
    if (fds[0].revents)
        take_signals(spawned, signals);
}

_Noreturn void mock_keep_spawned(const MockLaunch *launch)
{
    MockShared *shared = launch->spawn->shared;
    Spawned spawned = {
        .keeper = {.launch = launch, .on_exit = on_exit_of_leader, .control = launch->control},
        .shared = shared,
        .spawn = launch->spawn,
        .streams = {launch->out_read, launch->err_read},
        .input = launch->spawn->input,
        .run_deadline_ms = mock_deadline(shared->limit_ms > 0 ? shared->limit_ms : -1),
        .kill_ms = INT64_MAX};
    int signals = mock_keeper_signals();
    atomic_store(&shared->keeper, getpid());
    atomic_store(&shared->started_ms, mock_now_ms());
    atomic_store(&shared->has_input, spawned.input >= 0);
    atomic_store(&shared->is_running, true);
    mock_keeper_begin(&spawned.keeper);
    while (mock_keeper_reap(&spawned.keeper)) {
        check_time(&spawned);
        step(&spawned, signals);
    }
    if (spawned.in_grace)
        answer(&spawned, SPROV_OK);
    leave(&spawned);
}
