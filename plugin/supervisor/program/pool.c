#include "pool.h"

#include "command.h"
#include "keeper.h"
#include "tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define IDLE_KEEPERS 2
#define CALM_MS 5 /* while one is left; most commands are over then, and their keeper is back */
#define TRIM_AFTER_MS 5000
#define FORK_PATIENCE_MS 5000
#define WIPE_BEYOND 65536

static struct {
    SupLink idle, busy; /* busy: with a command, or just forked */
    unsigned n_idle, n_starting;
    bool no_fork; /* the last try failed; until a child ends */
    uint64_t last_mark;
    SupTimer trim;
} pool;

static void keeper_free(SupKeeper *keeper)
{
    sup_watch_close(&keeper->control);
    munmap(keeper->launch, SUP_REGION_SIZE);
    sup_list_remove(&keeper->link);
    free(keeper);
}

/* Closing its socket ends it; SIGCHLD then finds no keeper of that pid, which is as well. */
static void trim(SupTimer *timer)
{
    (void)timer;
    while (pool.n_idle > IDLE_KEEPERS) {
        pool.n_idle--;
        keeper_free(SUP_CONTAINER(SupKeeper, link, pool.idle.next));
    }
}

void sup_pool_init(void)
{
    sup_list_init(&pool.idle);
    sup_list_init(&pool.busy);
    sup_timer_init(&pool.trim, trim);
    /* Other users' supervisors mark their keepers as well. */
    uint64_t base = 0;
    if (getrandom(&base, sizeof base, 0) != sizeof base)
        base = (uint64_t)sup_now_ms() << 32;
    pool.last_mark = SUP_MARK_LEAST | (base >> 2 & ~(uint64_t)UINT32_MAX);
}

int sup_pool_refill_after(void)
{
    if (pool.n_idle + pool.n_starting >= IDLE_KEEPERS || pool.no_fork)
        return -1;
    return pool.n_idle > 0 ? CALM_MS : 0;
}

static void become_idle(SupKeeper *keeper)
{
    sup_list_remove(&keeper->link);
    sup_list_append(&pool.idle, &keeper->link);
    pool.n_idle++;
    if (pool.n_idle > IDLE_KEEPERS && sup_list_is_empty(&pool.trim.link))
        sup_timer_set(&pool.trim, TRIM_AFTER_MS);
}

static void on_message(SupKeeper *keeper, const SupMessage *message)
{
    struct SupCommand *command = keeper->command;
    bool over = message->flags & SUP_GONE || message->type == SUP_FAILED;
    if (message->type == SUP_READY) {
        keeper->mark = (uint64_t)message->value;
        keeper->starting = false;
        pool.n_starting--;
        become_idle(keeper);
    }
    if (!command)
        return;
    if (over)
        keeper->command = NULL;
    sup_command_message(command, message);
    if (!over)
        return;
    if (keeper->launch->used > WIPE_BEYOND)
        madvise(keeper->launch, SUP_REGION_SIZE, MADV_REMOVE);
    /* One that was held until we ended it may say so before it dies of that. */
    if (!keeper->ended)
        become_idle(keeper);
}

/* False when nothing (more) has come. */
static bool receive(SupKeeper *keeper)
{
    SupMessage message;
    if (recv(keeper->control.fd, &message, sizeof message, MSG_DONTWAIT) != sizeof message)
        return false;
    on_message(keeper, &message);
    return true;
}

static void on_control(SupWatch *watch, uint32_t events)
{
    SupKeeper *keeper = SUP_CONTAINER(SupKeeper, control, watch);
    while (receive(keeper))
        ;
    /* It died; SIGCHLD does the rest. */
    if (events & EPOLLHUP)
        sup_watch_set(watch, 0);
}

static SupKeeper *keeper_new(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return NULL;
    SupKeeper *keeper = calloc(1, sizeof *keeper);
    SupLaunch *launch = mmap(NULL, SUP_REGION_SIZE, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pool.last_mark++;
    pid_t pid = keeper && launch != MAP_FAILED ? fork() : -1;
    if (pid == 0)
        sup_keeper_main(pair[1], launch, pool.last_mark);
    close(pair[1]);
    if (pid < 0) {
        int error = errno;
        close(pair[0]);
        if (launch != MAP_FAILED)
            munmap(launch, SUP_REGION_SIZE);
        free(keeper);
        errno = error;
        return NULL;
    }
    /* Keepers forked later have no business in it. */
    madvise(launch, SUP_REGION_SIZE, MADV_DONTFORK);
    keeper->control = (SupWatch){.fd = pair[0], .ready = on_control};
    keeper->pid = pid;
    keeper->launch = launch;
    keeper->starting = true;
    sup_list_append(&pool.busy, &keeper->link);
    pool.n_starting++;
    sup_watch_set(&keeper->control, EPOLLIN);
    return keeper;
}

void sup_pool_refill(void)
{
    if (!keeper_new())
        pool.no_fork = true;
}

static SupKeeper *first_idle(void)
{
    if (sup_list_is_empty(&pool.idle))
        return NULL;
    /* The last used: its memory is warm. */
    return SUP_CONTAINER(SupKeeper, link, pool.idle.prev);
}

/* Waits for one that is on its way, which takes the time of a fork. */
static SupKeeper *wait_for_idle(void)
{
    SupKeeper *keeper = pool.n_starting > 0 ? NULL : keeper_new();
    if (!keeper && pool.n_starting == 0)
        return NULL;
    for (SupLink *at = pool.busy.next; !keeper && at != &pool.busy; at = at->next) {
        SupKeeper *one = SUP_CONTAINER(SupKeeper, link, at);
        if (one->starting)
            keeper = one;
    }
    struct pollfd fd = {.fd = keeper ? keeper->control.fd : -1, .events = POLLIN};
    if (!keeper || poll(&fd, 1, FORK_PATIENCE_MS) <= 0 || !receive(keeper))
        errno = EAGAIN;
    return first_idle();
}

SupKeeper *sup_pool_take(struct SupCommand *command)
{
    SupKeeper *keeper = first_idle();
    if (!keeper)
        keeper = wait_for_idle();
    if (!keeper)
        return NULL;
    pool.n_idle--;
    sup_list_remove(&keeper->link);
    sup_list_append(&pool.busy, &keeper->link);
    keeper->command = command;
    return keeper;
}

bool sup_keeper_start(SupKeeper *keeper, const int given[3])
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    SupMessage message = {.type = SUP_START};
    struct iovec iov = {&message, sizeof message};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    int fds[3];
    size_t n = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (given[i] >= 0) {
            fds[n++] = given[i];
            message.number |= 1u << i;
        }
    }
    if (n > 0) {
        msg.msg_control = space.bytes;
        msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN(n * sizeof(int))};
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    return sendmsg(keeper->control.fd, &msg, MSG_NOSIGNAL) == sizeof message;
}

void sup_pool_give_back(SupKeeper *keeper)
{
    keeper_free(keeper);
}

void sup_keeper_kill(SupKeeper *keeper, const SupMessage *message)
{
    send(keeper->control.fd, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

unsigned sup_pool_busy(void)
{
    unsigned n = 0;
    for (SupLink *at = pool.busy.next; at != &pool.busy; at = at->next) {
        const struct SupCommand *command = SUP_CONTAINER(SupKeeper, link, at)->command;
        n += command && sup_command_is_use(command);
    }
    return n;
}

static SupKeeper *find_keeper(pid_t pid)
{
    SupLink *lists[] = {&pool.busy, &pool.idle};
    for (int i = 0; i < 2; i++) {
        for (SupLink *at = lists[i]->next; at != lists[i]; at = at->next) {
            SupKeeper *keeper = SUP_CONTAINER(SupKeeper, link, at);
            if (keeper->pid == pid)
                return keeper;
        }
    }
    return NULL;
}

static SupReap nap_instead(int wait_ms)
{
    struct timespec time = {0, wait_ms * 100000L};
    nanosleep(&time, NULL);
    return SUP_IDLE;
}

/* Its leader got SIGKILL with it. What else it had is ours now, mixed with the orphans of others:
 * its mark tells it, or a part of it the session. False when some may live on. */
static bool end_remains(const SupKeeper *keeper)
{
    SupTree tree = {.root = getpid(),
                    .leader = keeper->launch->leader,
                    .mark = keeper->mark,
                    .session = keeper->mark == 0};
    if (tree.session && tree.leader <= 0)
        return false;
    return sup_tree_kill(&tree, nap_instead) && !tree.session;
}

bool sup_keeper_end(SupKeeper *keeper)
{
    SupTree tree = {.root = keeper->pid, .leader = keeper->launch->leader};
    bool sure = sup_tree_kill(&tree, nap_instead);
    kill(keeper->pid, SIGKILL);
    keeper->ended = true;
    return sure;
}

/* What killed one, kill -9 -1 as a rule, was sent to all at once: those that seem to wait may be
 * dying. */
static void distrust_waiting(void)
{
    SupLink *lists[] = {&pool.busy, &pool.idle};
    for (int i = 0; i < 2; i++) {
        for (SupLink *at = lists[i]->next, *next; at != lists[i]; at = next) {
            next = at->next;
            SupKeeper *keeper = SUP_CONTAINER(SupKeeper, link, at);
            if (!keeper->command)
                keeper_free(keeper);
        }
    }
    pool.n_idle = pool.n_starting = 0;
}

bool sup_pool_ended(pid_t pid)
{
    pool.no_fork = false;
    SupKeeper *keeper = find_keeper(pid);
    if (!keeper)
        return false;
    while (receive(keeper))
        ;
    struct SupCommand *command = keeper->command;
    bool sure = true;
    if (command) {
        sure = end_remains(keeper);
        keeper_free(keeper);
    }
    distrust_waiting();
    if (command)
        sup_command_lost(command, sure);
    return true;
}

void sup_pool_stopped(pid_t pid)
{
    if (find_keeper(pid))
        kill(pid, SIGCONT);
}
