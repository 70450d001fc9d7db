/* Keepers without a server around them, so that the test decides in which order what they say, what
 * we do to them, and their ends are heard of. */
#include "supervisor/program/command.h"
#include "supervisor/program/files.h"
#include "supervisor/program/pool.h"
#include "supervisor/program/tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

/* ------------------------------------------------------- the server's part, as far as it goes */

static SupMessage told;
static SupCommand *lost;

bool sup_watch_set(SupWatch *watch, uint32_t events)
{
    watch->events = events;
    return true;
}

void sup_watch_close(SupWatch *watch)
{
    sup_close(&watch->fd);
}

void sup_timer_init(SupTimer *timer, void (*fire)(SupTimer *timer))
{
    sup_list_init(&timer->link);
    timer->fire = fire;
}

void sup_timer_set(SupTimer *timer, int64_t in_ms)
{
}

void sup_command_message(SupCommand *command, const SupMessage *message)
{
    told = *message;
}

void sup_command_lost(SupCommand *command, bool ended_all)
{
    lost = command;
}

bool sup_command_is_use(const SupCommand *command)
{
    return !command->answered;
}

bool sup_files_become(const char *user)
{
    return false;
}

void sup_files_return(void)
{
}

int sup_files_serve(char *const *words, int in, int out, void (*tell)(void))
{
    return 1;
}

/* --------------------------------------------------------------------------------- helpers */

static void set_up(void)
{
    sup_tree_open();
    sup_pool_init();
}

TestSuite(pool, .init = set_up, .timeout = 120);

static void start_true(SupKeeper *keeper)
{
    static char name[] = "true", home[] = "HOME=/";
    static char *argv[] = {name, NULL}, *env[] = {home, NULL, NULL};
    static const int none[3] = {-1, -1, -1};
    *keeper->launch =
        (SupLaunch){.argv = argv, .env = env, .cwd = "", .user = "", .home_given = true};
    cr_assert(sup_keeper_start(keeper, none));
}

static void wait_for_message(const SupKeeper *keeper)
{
    struct pollfd fd = {.fd = keeper->control.fd, .events = POLLIN};
    cr_assert_eq(poll(&fd, 1, PATIENCE_MS), 1);
}

static bool sleeps(pid_t pid)
{
    char path[32], text[512] = "", *name_end;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

/* Behind GONE it rests only when it is ready for the next command, and has said so. */
static SupKeeper *take_and_let_it_end(SupCommand *command)
{
    SupKeeper *keeper = sup_pool_take(command);
    cr_assert_not_null(keeper);
    start_true(keeper);
    wait_for_message(keeper);
    while (!sleeps(keeper->pid))
        poll(NULL, 0, 1);
    return keeper;
}

static void hear(SupKeeper *keeper)
{
    told = (SupMessage){0};
    keeper->control.ready(&keeper->control, EPOLLIN);
}

static void check_works(SupKeeper *keeper)
{
    start_true(keeper);
    wait_for_message(keeper);
    hear(keeper);
    cr_expect(told.type == SUP_EXITED && told.status == 0 && (told.flags & SUP_GONE));
}

static void reap(pid_t pid)
{
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_expect(sup_pool_ended(pid));
}

/* ----------------------------------------------------------------------------------- cases */

/* A tracer held it until it was ended from outside: then it did its work, and all it has to say
 * comes before its end. */
static void check_next_is_another(bool one_is_starting)
{
    SupCommand first = {0}, next = {0};
    SupKeeper *held = take_and_let_it_end(&first);
    pid_t pid = held->pid;
    if (one_is_starting)
        sup_pool_refill();
    cr_expect(sup_keeper_end(held));
    hear(held);
    cr_expect(told.type == SUP_EXITED && (told.flags & SUP_GONE), "its command has ended");
    cr_expect_eq(sup_pool_busy(), 0);
    SupKeeper *other = sup_pool_take(&next);
    cr_assert(other && other->pid != pid, "one that was killed is not used again");
    reap(pid);
    cr_expect_null(lost);
    check_works(other);
}

Test(pool, gives_no_keeper_that_was_ended_to_the_next_command)
{
    check_next_is_another(false);
}

Test(pool, gives_no_keeper_that_was_ended_where_another_is_on_its_way)
{
    check_next_is_another(true);
}

Test(pool, uses_a_keeper_again_whose_command_ended)
{
    SupCommand first = {0}, next = {0};
    SupKeeper *keeper = take_and_let_it_end(&first);
    hear(keeper);
    cr_expect_eq(sup_pool_take(&next), keeper);
    check_works(keeper);
}

/* Two wait. With one left another is not forked while work goes on, which may give it back. */
Test(pool, is_filled_at_once_only_when_nobody_is_left)
{
    SupCommand first = {0}, second = {0};
    while (sup_pool_refill_after() == 0)
        sup_pool_refill();
    SupKeeper *keeper = take_and_let_it_end(&first);
    SupKeeper *other = sup_pool_take(&second);
    cr_assert_not_null(other);
    cr_expect_eq(sup_pool_refill_after(), 0);
    hear(keeper);
    cr_expect_gt(sup_pool_refill_after(), 0);
    check_works(other);
    cr_expect_eq(sup_pool_refill_after(), -1);
}

Test(pool, tells_a_command_whose_keeper_was_killed)
{
    SupCommand first = {0}, next = {0};
    SupKeeper *keeper = sup_pool_take(&first);
    pid_t pid = keeper->pid;
    kill(pid, SIGKILL);
    reap(pid);
    cr_expect_eq(lost, &first);
    check_works(sup_pool_take(&next));
}
