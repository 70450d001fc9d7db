#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "check/job.h"

Test(load, a_limit_grows_with_the_part_of_the_time_that_work_had_to_wait)
{
    cr_assert_float_eq(check_load_factor(0, 1000), 1, 0.001);
    cr_assert_float_eq(check_load_factor(0, 0), 1, 0.001);
    cr_assert_float_eq(check_load_factor(500, 1000), 2, 0.001);
    cr_assert_float_eq(check_load_factor(750, 1000), 4, 0.001);
    cr_assert_float_eq(check_load_factor(999, 1000), CHECK_LOAD_MOST, 0.001);
    cr_assert_float_eq(check_load_factor(2000, 1000), CHECK_LOAD_MOST, 0.001);
    CheckLoad load = check_load_now();
    double since = check_load_since(&load);
    cr_assert(since >= 1 && since <= CHECK_LOAD_MOST, "%f", since);
}

/* A job that began a minute ago, and whether its limit of 40 s from then on ends it when work had
 * to wait so long. */
static bool is_ended_at_load(gint64 stalled_s, gint64 limit_from_s)
{
    CheckLoad now = check_load_now();
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        pause();
    }
    setpgid(pid, pid);
    Job job = {.pid = pid,
               .pidfd = -1,
               .records_fd = fds[0],
               .output_fd = -1,
               .started_ms = g_get_monotonic_time() / 1000 - 60000,
               .limit_ms = 40000,
               .limit_from_ms = limit_from_s * 1000,
               .load = {.at_us = now.at_us - 60000000},
               .records = g_string_new(NULL),
               .output = g_string_new(NULL)};
    for (int i = 0; i < 2; i++)
        job.load.stalled_us[i] = now.stalled_us[i] - (guint64)stalled_s * 1000000;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    job_step(&job);
    bool is_ended = job.timed_out;
    job_kill(&job);
    job_clear(&job);
    close(fds[1]);
    return is_ended;
}

Test(load, a_case_gets_the_time_that_others_took_of_the_machine)
{
    CheckLoad now = check_load_now();
    if (now.stalled_us[0] < 30000000)
        cr_skip_test("this kernel does not count, or not for long");
    cr_assert(is_ended_at_load(0, 0));
    cr_assert_not(is_ended_at_load(30, 0));
}

Test(load, a_limit_that_began_later_counts_from_then_on)
{
    cr_assert(is_ended_at_load(0, 19));
    cr_assert_not(is_ended_at_load(0, 30));
}
