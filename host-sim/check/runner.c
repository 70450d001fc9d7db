#include "check/check.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "check/job.h"
#include "check/report.h"
#include "error.h"

#define MAX_JOBS 16

/* One case on its way: waiting, its process, the sweep behind it, and its report. */
typedef struct {
    const Case *one;
    enum {
        WAITING,
        RUNNING,
        SWEEPING,
        ENDED,
        REPORTED
    } phase;
    Job job;
    Job sweep;
} Entry;

typedef struct {
    CheckSetup *setup;
    Entry *entries;
    guint count, reported;
    Report report;
    gint64 start_ms; /* calibration */
    bool is_swept;   /* nothing is left of it */
    int signals;     /* signalfd */
    int caught;      /* the signal that ends the run, or 0 */
    char *folder;
} Runner;

/* ---- limits: what this machine takes for a start and a command, with room to spare */

static gint64 limit(const Runner *runner, int patience)
{
    double usual =
        20000.0 + 60.0 * (double)runner->setup->command_ms + 6.0 * (double)runner->start_ms;
    return (gint64)(usual * runner->setup->time_scale * MAX(patience, 1));
}

/* The first start may pull an image. */
static gint64 prepare_limit(const Runner *runner)
{
    return (gint64)(300000 * runner->setup->time_scale);
}

/* ---- waiting */

static void take_signal(Runner *runner)
{
    struct signalfd_siginfo info;
    if (read(runner->signals, &info, sizeof info) == sizeof info && !runner->caught)
        runner->caught = (int)info.ssi_signo;
}

/* Until one of the jobs has something to tell, or soon. */
static void wait_for(Runner *runner, Job *const *jobs, guint count)
{
    struct pollfd fds[3 * MAX_JOBS + 1];
    guint n = 0;
    fds[n++] = (struct pollfd){.fd = runner->signals, .events = POLLIN};
    for (guint i = 0; i < count; i++) {
        fds[n++] = (struct pollfd){.fd = jobs[i]->pidfd, .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = jobs[i]->output_fd, .events = POLLIN};
    }
    /* An output that a grandchild keeps open after its end is no news for ever. */
    int ready = poll(fds, n, 200);
    if (ready > 0 && fds[0].revents)
        take_signal(runner);
}

/* Runs one errand of the runner to its end. */
static bool run_errand(Runner *runner, const char *name, const char *subject, gint64 limit_ms,
                       Job *job)
{
    g_autoptr(GError) error = NULL;
    if (!job_start(job, runner->setup, name, subject, limit_ms, &error)) {
        report_note("%s", error->message);
        return false;
    }
    while (!job_step(job))
        wait_for(runner, &job, 1);
    return true;
}

/* ---- before and after the cases */

/* False when there is no provider to speak of. */
static bool prepare(Runner *runner)
{
    CheckSetup *setup = runner->setup;
    const char *shared_id = setup->shared_id;
    Job job;
    check_ledger_made(setup->ledger, CHECK_SHARED, shared_id);
    if (!run_errand(runner, CHECK_PREPARE, NULL, prepare_limit(runner), &job))
        return false;
    g_autofree char *unloadable = job_record(&job, "unloadable");
    g_autofree char *note = job_record(&job, "note");
    g_autofree char *start = job_record(&job, "start");
    g_autofree char *command = job_record(&job, "command");
    if (note)
        report_note("%s", note);
    if (job.verdict == JOB_PASS && start && command) {
        runner->start_ms = g_ascii_strtoll(start, NULL, 10);
        setup->command_ms = g_ascii_strtoll(command, NULL, 10);
        report_note("seed %u, level %d, ABI %d.%d, start %s ms, command %s ms", setup->seed,
                    setup->level, SPROV_ABI_MAJOR, SPROV_ABI_MINOR, start, command);
    } else if (!unloadable) {
        report_note("seed %u, level %d, ABI %d.%d", setup->seed, setup->level, SPROV_ABI_MAJOR,
                    SPROV_ABI_MINOR);
        report_note("no shared sandbox, cases that need it will fail: %s: %s",
                    job_verdict_name(job.verdict), job.message);
        setup->shared_id = NULL;
    }
    job_clear(&job);
    if (unloadable) {
        check_ledger_gone(setup->ledger, CHECK_SHARED, shared_id);
        report_bail_out(unloadable);
        runner->report.failed++;
    }
    return !unloadable;
}

static void finish(Runner *runner)
{
    Job job;
    if (!runner->setup->shared_id ||
        !run_errand(runner, CHECK_FINISH, NULL, limit(runner, 1), &job))
        return;
    if (job.verdict != JOB_PASS)
        report_note("the shared sandbox %s was not removed: %s", runner->setup->shared_id,
                    job.message);
    job_clear(&job);
}

/* What is there even so, because destroy() failed, crashed or lied. */
static void sweep_all(Runner *runner)
{
    Job job;
    if (!run_errand(runner, CHECK_SWEEP, NULL, limit(runner, 3), &job))
        return;
    g_autofree char *left = job_record(&job, "left");
    if (job.verdict != JOB_PASS)
        report_note("not all sandboxes can be removed: %s", job.message);
    else if (left)
        report_note("sandbox %s and perhaps others were left behind, and are removed", left);
    runner->is_swept = job.verdict == JOB_PASS;
    job_clear(&job);
}

/* ---- the cases */

static void entry_fail(Entry *entry, JobVerdict verdict, const char *message)
{
    entry->job.verdict = verdict;
    g_free(entry->job.message);
    entry->job.message = g_strdup(message);
}

static void begin_case(Runner *runner, Entry *entry)
{
    g_autoptr(GError) error = NULL;
    if (job_start(&entry->job, runner->setup, entry->one->id, NULL,
                  limit(runner, entry->one->patience), &error)) {
        entry->phase = RUNNING;
        return;
    }
    entry->job = (Job){.pidfd = -1,
                       .records_fd = -1,
                       .output_fd = -1,
                       .records = g_string_new(NULL),
                       .output = g_string_new(NULL)};
    entry_fail(entry, JOB_HARNESS, error->message);
    entry->phase = ENDED;
}

static void begin_sweep(Runner *runner, Entry *entry)
{
    const CheckSetup *setup = runner->setup;
    g_autoptr(GPtrArray) left = check_ledger_left(setup->ledger, entry->one->id);
    entry->phase = ENDED;
    if (left->len > 0 &&
        job_start(&entry->sweep, setup, CHECK_SWEEP, entry->one->id, limit(runner, 1), NULL))
        entry->phase = SWEEPING;
}

static void end_sweep(Entry *entry)
{
    g_autofree char *left = job_record(&entry->sweep, "left");
    if (left && entry->job.verdict == JOB_PASS) {
        g_autofree char *text = g_strdup_printf("leak: sandbox %s was left behind", left);
        entry_fail(entry, JOB_FAIL, text);
    }
    if (entry->sweep.verdict != JOB_PASS)
        report_note("%s left a sandbox, and it cannot be removed: %s", entry->one->id,
                    entry->sweep.message);
    job_clear(&entry->sweep);
    entry->phase = ENDED;
}

static void step_entry(Runner *runner, Entry *entry)
{
    if (entry->phase == RUNNING && job_step(&entry->job))
        begin_sweep(runner, entry);
    else if (entry->phase == SWEEPING && job_step(&entry->sweep))
        end_sweep(entry);
}

/* In the order of the tables, each as soon as all before it are there. */
static void report_ended(Runner *runner)
{
    while (runner->reported < runner->count) {
        Entry *entry = &runner->entries[runner->reported];
        if (entry->phase != ENDED)
            return;
        report_case(&runner->report, ++runner->reported, entry->one, &entry->job);
        job_clear(&entry->job);
        entry->phase = REPORTED;
    }
}

/* All of the first until, some at a time. */
static void run_cases(Runner *runner, guint until)
{
    guint next = runner->reported;
    for (;;) {
        Job *jobs[MAX_JOBS];
        guint running = 0;
        for (guint i = runner->reported; i < next; i++) {
            Entry *entry = &runner->entries[i];
            step_entry(runner, entry);
            if (entry->phase == RUNNING || entry->phase == SWEEPING)
                jobs[running++] = entry->phase == RUNNING ? &entry->job : &entry->sweep;
        }
        report_ended(runner);
        bool more = next < until && !runner->caught;
        if (more && running < (guint)runner->setup->jobs) {
            begin_case(runner, &runner->entries[next++]);
            continue;
        }
        if (running == 0 && !more)
            return;
        for (guint i = 0; runner->caught && i < running; i++)
            job_kill(jobs[i]);
        wait_for(runner, jobs, running);
    }
}

static bool watch_signals(Runner *runner)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    runner->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return runner->signals >= 0;
}

static bool make_folder(Runner *runner, GError **error)
{
    g_autofree char *pattern = g_build_filename(g_get_tmp_dir(), "host-sim-check-XXXXXX", NULL);
    if (!g_mkdtemp(pattern))
        return hs_fail(error, SPROV_E_EXHAUSTED, "no folder for the ledger: %s: %s", pattern,
                       g_strerror(errno));
    runner->folder = g_steal_pointer(&pattern);
    return true;
}

static void run_all(Runner *runner)
{
    const Entry *last = &runner->entries[runner->count - 1];
    bool has_leak_case = strcmp(last->one->id, CHECK_LEAK_ID) == 0;
    if (!prepare(runner))
        return;
    run_cases(runner, runner->count - (has_leak_case ? 1 : 0));
    finish(runner);
    if (has_leak_case)
        run_cases(runner, runner->count);
    sweep_all(runner);
}

/* The ledger stays where sandboxes may. */
static void remove_ledger(Runner *runner)
{
    g_autoptr(GPtrArray) left = check_ledger_left(runner->setup->ledger, NULL);
    for (guint i = 0; !runner->is_swept && i < left->len; i++)
        report_note("perhaps left behind: sandbox %s", (char *)left->pdata[i]);
    if (!runner->is_swept && left->len > 0) {
        report_note("the ledger is kept: %s", runner->setup->ledger);
    } else {
        g_unlink(runner->setup->ledger);
        g_rmdir(runner->folder);
    }
    g_free(runner->folder);
}

int check_run(CheckSetup *setup)
{
    g_autoptr(GPtrArray) selected = check_select(setup);
    if (selected->len == 0) {
        fprintf(stderr, "host-sim check: no case is selected (host-sim check --list shows them)\n");
        return CHECK_EXIT_NOTHING;
    }
    Runner runner = {.setup = setup, .count = selected->len};
    g_autoptr(GError) error = NULL;
    if (!make_folder(&runner, &error) || !watch_signals(&runner)) {
        fprintf(stderr, "host-sim check: %s\n", error ? error->message : "no signalfd");
        return CHECK_EXIT_FAILED;
    }
    g_autofree char *ledger = g_build_filename(runner.folder, "ledger", NULL);
    g_autofree char *run = g_strdup_printf("%08x", g_random_int());
    g_autofree char *shared_id = g_strdup_printf("check-%s-shared", run);
    g_autofree Entry *entries = g_new0(Entry, selected->len);
    for (guint i = 0; i < selected->len; i++)
        entries[i].one = selected->pdata[i];
    runner.entries = entries;
    setup->ledger = ledger;
    setup->run = run;
    setup->shared_id = shared_id;

    report_begin(runner.count);
    run_all(&runner);
    remove_ledger(&runner);
    report_end(&runner.report);
    close(runner.signals);
    if (runner.caught)
        return 128 + runner.caught;
    if (runner.report.failed > 0)
        return CHECK_EXIT_FAILED;
    return runner.report.passed > 0 ? CHECK_EXIT_PASSED : CHECK_EXIT_NOTHING;
}
