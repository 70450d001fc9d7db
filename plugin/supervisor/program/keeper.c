#include "keeper.h"

#include "base.h"
#include "files.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OOM_SCORE_OF_COMMANDS "100"
#define AGAIN_MS 250
#define AGAIN_MOST_MS 60000

/* One command at a time, one thread: all state is here. */
static struct {
    int control;
    bool inherits_orphans; /* else that no child is left proves nothing */
    SupLaunch *launch;
    int stdio[3]; /* the command's */
    sigset_t while_polling;

    bool running; /* the leader */
    bool children;
    bool killing; /* signals of ours went to the leader */
    int64_t started_us, deadline_ms;
    SupMessage ended; /* what EXITED says */

    int64_t grace_until_ms; /* SUP_NEVER: no kill pends */
    SprWireScope grace_scope;
    uint32_t grace_number;

    int64_t again_at_ms, again_in_ms; /* a tree that did not end is tried again */
} keeper;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The server is gone when this fails; the next poll tells. */
static void tell(SupMessage message)
{
    while (send(keeper.control, &message, sizeof message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void note_leader(const siginfo_t *info)
{
    bool signalled = info->si_code != CLD_EXITED;
    keeper.running = false;
    keeper.ended.type = SUP_EXITED;
    keeper.ended.status = signalled ? 128 + info->si_status : info->si_status;
    keeper.ended.signal = signalled ? (uint32_t)info->si_status : 0;
    keeper.ended.value = now_us() - keeper.started_us;
    if (signalled && keeper.killing)
        keeper.ended.flags |= SPR_WIRE_EXIT_KILLED;
}

/* True when at least one child was reaped; clears `children` once there is none. */
static bool reap_ended(void)
{
    for (bool any = false;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0) {
            if (errno == EINTR)
                continue;
            keeper.children = false;
            return any;
        }
        if (info.si_pid == 0)
            return any;
        any = true;
        if (info.si_pid == keeper.launch->leader && keeper.running)
            note_leader(&info);
    }
}

static SupReap reap_within(int wait_ms)
{
    if (!reap_ended() && keeper.children) {
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        struct timespec time = {0, wait_ms * 1000000L};
        sigtimedwait(&child, NULL, &time);
        if (!reap_ended() && keeper.children)
            return SUP_IDLE;
    }
    return keeper.children ? SUP_REAPED : SUP_NO_CHILD;
}

static SupTree tree_of(SprWireScope scope)
{
    return (SupTree){.root = getpid(), .leader = keeper.launch->leader, .scope = scope};
}

/* SIGKILL to a scope, and the proof. */
static bool finish_off(SprWireScope scope)
{
    SupTree tree = tree_of(scope);
    keeper.killing = keeper.running;
    bool sure =
        sup_tree_kill(&tree, reap_within) && (keeper.inherits_orphans || scope != SPR_WIRE_TREE);
    if (!sure && scope == SPR_WIRE_TREE) {
        keeper.ended.flags |= SPR_WIRE_EXIT_UNCONFIRMED;
        keeper.again_at_ms = sup_after_ms(keeper.again_in_ms);
        if (keeper.again_in_ms < AGAIN_MOST_MS)
            keeper.again_in_ms *= 2;
    }
    return sure;
}

static void answer_kill(uint32_t number, int error, bool sure)
{
    tell((SupMessage){.type = SUP_KILLED,
                      .number = number,
                      .status = error,
                      .flags = sure ? 0 : SPR_WIRE_EXIT_UNCONFIRMED});
}

/* TERM first when there is a grace; the rest comes in check_times(). */
static void begin_end(SprWireScope scope, int64_t grace_ms, uint32_t number)
{
    if (grace_ms <= 0) {
        keeper.grace_until_ms = SUP_NEVER;
        bool sure = finish_off(scope);
        answer_kill(number, 0, sure);
        return;
    }
    SupTree tree = tree_of(scope);
    keeper.killing = keeper.running;
    sup_tree_signal(&tree, SIGTERM);
    keeper.grace_until_ms = sup_after_ms(grace_ms);
    keeper.grace_scope = scope;
    keeper.grace_number = number;
}

static void on_kill(const SupMessage *message)
{
    reap_ended();
    SupTree tree = tree_of((SprWireScope)message->scope);
    bool was_running = keeper.running;
    if (message->signal == SIGKILL) {
        SupTreeCount count = sup_tree_signal(&tree, 0);
        if (count.alive == 0) {
            answer_kill(message->number, ESRCH, true);
            return;
        }
        bool sure = finish_off(tree.scope);
        /* It ended by itself before the signal reached it, and nothing else was there. */
        bool missed = was_running && !keeper.running && keeper.ended.signal != SIGKILL;
        answer_kill(message->number, missed && count.alive == 1 ? ESRCH : 0, sure);
        return;
    }
    keeper.killing |= keeper.running && message->signal != 0;
    SupTreeCount count = sup_tree_signal(&tree, (int)message->signal);
    if (count.alive == 0)
        answer_kill(message->number, ESRCH, true);
    else if (count.denied == count.alive)
        answer_kill(message->number, EPERM, true);
    else if (message->value <= 0)
        answer_kill(message->number, 0, true);
    else {
        keeper.grace_until_ms = sup_after_ms(message->value);
        keeper.grace_scope = tree.scope;
        keeper.grace_number = message->number;
    }
}

/* A killed server: nobody needs the tree any more. */
_Noreturn static void end_orphaned(void)
{
    if (keeper.children)
        finish_off(SPR_WIRE_TREE);
    _exit(0);
}

static void check_times(void)
{
    int64_t now = sup_now_ms();
    if (now >= keeper.deadline_ms) {
        keeper.deadline_ms = SUP_NEVER;
        keeper.ended.flags |= SPR_WIRE_EXIT_TIMED_OUT | SPR_WIRE_EXIT_KILLED;
        begin_end(SPR_WIRE_TREE, keeper.launch->grace_ms, 0);
    }
    if (now >= keeper.grace_until_ms) {
        keeper.grace_until_ms = SUP_NEVER;
        bool sure = finish_off(keeper.grace_scope);
        answer_kill(keeper.grace_number, 0, sure);
    }
    if (now >= keeper.again_at_ms) {
        keeper.again_at_ms = SUP_NEVER;
        finish_off(SPR_WIRE_TREE);
    }
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits for a message, a child's end or the next time; true when there is a message. */
static bool wait_for_something(void)
{
    int64_t until =
        earliest(keeper.again_at_ms, earliest(keeper.deadline_ms, keeper.grace_until_ms));
    struct timespec time, *limit = NULL;
    if (until != SUP_NEVER) {
        int64_t ms = until - sup_now_ms();
        if (ms < 0)
            ms = 0;
        time = (struct timespec){ms / 1000, ms % 1000 * 1000000};
        limit = &time;
    }
    struct pollfd poll_control = {.fd = keeper.control, .events = POLLIN};
    return ppoll(&poll_control, 1, limit, &keeper.while_polling) > 0;
}

/* The descriptors of a START to their places. */
static void spread(const SupMessage *message, const struct cmsghdr *c)
{
    int came[3] = {-1, -1, -1};
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(came, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    for (unsigned i = 0, next = 0; i < 3; i++)
        keeper.stdio[i] = message->number & 1u << i ? came[next++] : -1;
}

static bool receive(SupMessage *message)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } space;
    struct iovec iov = {message, sizeof *message};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = space.bytes,
                         .msg_controllen = sizeof space.bytes};
    ssize_t n;
    while ((n = recvmsg(keeper.control, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (n != sizeof *message)
        return false;
    if (message->type == SUP_START)
        spread(message, CMSG_FIRSTHDR(&msg));
    return true;
}

static void close_stdio(void)
{
    for (int i = 0; i < 3; i++)
        sup_close(&keeper.stdio[i]);
}

/* From the start of the command to the last of its tree. */
static void watch_over(void)
{
    while (keeper.children) {
        bool message_waits = wait_for_something();
        bool was_running = keeper.running;
        reap_ended();
        if (was_running && !keeper.running && !keeper.launch->wait_background &&
            keeper.grace_until_ms == SUP_NEVER)
            keeper.deadline_ms = SUP_NEVER;
        SupMessage message;
        if (message_waits && !receive(&message))
            end_orphaned();
        if (message_waits && message.type == SUP_KILL)
            on_kill(&message);
        check_times();
        if (was_running && !keeper.running && keeper.children)
            tell(keeper.ended);
    }
}

static void forget_request(void)
{
    explicit_bzero(keeper.launch + 1, keeper.launch->used);
}

static void tell_output(void)
{
    tell((SupMessage){.type = SUP_OUTPUT});
}

/* In this process: a child would take as long again. Its streams are how it hears of its client. */
static void serve_files(SupLaunch *launch)
{
    SupMessage ended = {.type = SUP_EXITED, .flags = SUP_GONE};
    int64_t started_us = now_us();
    if (sup_files_become(launch->user)) {
        ended.status =
            sup_files_serve(launch->argv, keeper.stdio[0], keeper.stdio[1], tell_output);
        sup_files_return();
    } else {
        launch->error = errno;
        launch->step = SPR_WIRE_STEP_USER;
        ended = (SupMessage){.type = SUP_FAILED};
    }
    close_stdio();
    forget_request();
    ended.value = now_us() - started_us;
    tell(ended);
}

static void run(void)
{
    SupLaunch *launch = keeper.launch;
    keeper.ended = (SupMessage){.type = SUP_EXITED};
    keeper.grace_until_ms = keeper.again_at_ms = SUP_NEVER;
    keeper.again_in_ms = AGAIN_MS;
    keeper.killing = false;
    keeper.started_us = now_us();

    bool started = sup_launch(launch, keeper.stdio);
    close_stdio();
    bool wanted = launch->tell_start;
    forget_request();
    if (!started) {
        tell((SupMessage){.type = SUP_FAILED});
        return;
    }
    keeper.running = keeper.children = true;
    keeper.deadline_ms = launch->deadline_ms > 0 ? sup_after_ms(launch->deadline_ms) : SUP_NEVER;
    if (wanted)
        tell((SupMessage){.type = SUP_STARTED});
    watch_over();

    if (keeper.grace_until_ms != SUP_NEVER)
        answer_kill(keeper.grace_number, 0, true);
    SupMessage gone = keeper.ended;
    gone.flags |= SUP_GONE;
    tell(gone);
}

static void wake_up(int number)
{
    (void)number;
}

/* The command inherits the score. /proc/self is root's own while we are not dumpable, so for this
 * moment, in which there is nothing to see yet, we are. */
static void raise_oom_score(void)
{
    prctl(PR_SET_DUMPABLE, 1);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, OOM_SCORE_OF_COMMANDS, strlen(OOM_SCORE_OF_COMMANDS));
        close(fd);
    }
    prctl(PR_SET_DUMPABLE, 0);
}

static void set_up(int control, SupLaunch *launch, uint64_t mark)
{
    keeper.control = 3;
    keeper.launch = launch;
    if (control != keeper.control)
        dup3(control, keeper.control, O_CLOEXEC);
    sup_close_from(keeper.control + 1);
    prctl(PR_SET_NAME, "sprov-keeper");
    keeper.inherits_orphans = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    raise_oom_score();
    sup_tree_open();

    sigfillset(&keeper.while_polling);
    sigprocmask(SIG_SETMASK, &keeper.while_polling, NULL);
    sigdelset(&keeper.while_polling, SIGCHLD);
    signal(SIGCHLD, wake_up);
    signal(SIGPIPE, SIG_DFL); /* for the commands; we never write to a pipe */
    tell((SupMessage){.type = SUP_READY, .value = sup_mark_self(mark) ? (int64_t)mark : 0});
}

_Noreturn void sup_keeper_main(int control, SupLaunch *launch, uint64_t mark)
{
    set_up(control, launch, mark);
    for (;;) {
        SupMessage message;
        if (!receive(&message))
            _exit(0);
        if (message.type == SUP_KILL)
            answer_kill(message.number, ESRCH, true);
        else if (launch->files)
            serve_files(launch);
        else
            run();
    }
}
