#include "check/runner.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "check/orphans.h"
#include "check/report.h"
#include "error.h"

/* ---- limits: what this machine takes for a start and a command, with room to spare */

gint64 runner_limit(const Runner *runner, int patience)
{
    double usual =
        20000.0 + 60.0 * (double)runner->setup->command_ms + 6.0 * (double)runner->start_ms;
    return (gint64)(usual * runner->setup->time_scale * MAX(patience, 1));
}

/* ---- waiting */

static void take_signal(Runner *runner)
{
    struct signalfd_siginfo info;
    while (read(runner->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD && !runner->caught)
            runner->caught = (int)info.ssi_signo;
    }
}

void runner_wait(Runner *runner, Job *const *jobs, guint count)
{
    struct pollfd fds[3 * MAX_JOBS + 1];
    guint n = 0;
    orphans_reap(jobs, count);
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

/* ---- the cases */

static void entry_fail(Entry *entry, JobVerdict verdict, const char *message)
{
    entry->job.verdict = verdict;
    g_free(entry->job.message);
    entry->job.message = g_strdup(message);
}

/* Ends an entry that needs no process. */
static void settle(Entry *entry, JobVerdict verdict, const char *message)
{
    entry->job = (Job){.pidfd = -1,
                       .records_fd = -1,
                       .output_fd = -1,
                       .records = g_string_new(NULL),
                       .output = g_string_new(NULL)};
    entry_fail(entry, verdict, message);
    entry->phase = ENDED;
}

static void settle_gated(Entry *entry, const GateState *gate)
{
    g_autofree char *broken =
        g_strdup_printf("the probe of the gate %s: %s", gate->name, gate->message);
    if (gate->closed)
        settle(entry, JOB_SKIP, gate->closed);
    else
        settle(entry, gate->verdict, broken);
}

static void begin_case(Runner *runner, Entry *entry)
{
    g_autoptr(GError) error = NULL;
    const GateState *gate = runner_gate_against(runner, entry->one);
    if (gate)
        settle_gated(entry, gate);
    else if (job_start(&entry->job, runner->setup, entry->one->id, NULL,
                       runner_limit(runner, entry->one->patience), &error))
        entry->phase = RUNNING;
    else
        settle(entry, JOB_HARNESS, error->message);
}

static void begin_sweep(Runner *runner, Entry *entry)
{
    const CheckSetup *setup = runner->setup;
    g_autoptr(GPtrArray) left = check_ledger_left(setup->ledger, entry->one->id);
    entry->phase = ENDED;
    if (!entry->is_cut && left->len > 0 &&
        job_start(&entry->sweep, setup, CHECK_SWEEP, entry->one->id, runner_limit(runner, 1), NULL))
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

/* The end of the run is its end, too. What it has made is swept with all else. */
static void cut_off(Entry *entry)
{
    if (entry->phase != RUNNING)
        return;
    entry->is_cut = true;
    job_kill(&entry->job);
}

static void report_entry(Runner *runner, Entry *entry)
{
    runner->reported++;
    entry->phase = REPORTED;
    if (entry->is_cut) {
        job_clear(&entry->job);
        return;
    }
    CheckResult *result = check_result_new(entry->one, &entry->job);
    result->begun_ms = entry->job.started_ms ? entry->job.started_ms - runner->begun_ms : 0;
    check_expect(runner->profile, runner->known, result);
    report_case(runner->reported, result);
    check_run_add(runner->run, result);
    job_clear(&entry->job);
}

/* In the order of the entries, each as soon as all before it are there. */
static void report_ended(Runner *runner)
{
    while (runner->reported < runner->count) {
        Entry *entry = &runner->entries[runner->reported];
        if (entry->phase != ENDED)
            return;
        report_entry(runner, entry);
    }
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    return remove(path);
}

/* With what hooks have left there. The ledger stays where sandboxes may. */
static void remove_folder(Runner *runner)
{
    g_autoptr(GPtrArray) left = check_ledger_left(runner->setup->ledger, NULL);
    for (guint i = 0; !runner->is_swept && i < left->len; i++)
        report_note("perhaps left behind: sandbox %s", (char *)left->pdata[i]);
    if (!runner->is_swept && left->len > 0) {
        report_note("the ledger is kept: %s", runner->setup->ledger);
    } else {
        nftw(runner->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    g_free(runner->folder);
}

/* A case in this very process has failed on a thread, or below a frame of the provider, that it
 * cannot return from: this is the end of the run. */
static void stranded(void *ctx, Job *job)
{
    Runner *runner = ctx;
    Entry *entry = &runner->entries[runner->reported];
    if (job == &entry->job) {
        report_entry(runner, entry);
        report_note("--in-process ends with the first failure: %u cases were not run",
                    runner->count - runner->reported);
    } else {
        report_note("%s: %s", job_verdict_name(job->verdict), job->message);
        runner->run->failed++;
    }
    runner->setup->in_process = false; /* what removes its sandboxes has a process of its own */
    runner_sweep_all(runner);
    remove_folder(runner);
    report_end(runner->run);
    _exit(CHECK_EXIT_FAILED);
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
        for (guint i = runner->reported; runner->caught && i < next; i++)
            cut_off(&runner->entries[i]);
        runner_wait(runner, jobs, running);
    }
}

/* A case in this very process has the signals and the children of its provider to itself. */
static bool watch_signals(Runner *runner)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    if (!runner->setup->in_process) {
        orphans_adopt();
        sigaddset(&wanted, SIGCHLD);
    }
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
    if (!runner_prepare(runner))
        return;
    runner_probe_gates(runner);
    run_cases(runner, runner->count - (has_leak_case ? 1 : 0));
    runner_finish(runner);
    if (has_leak_case)
        run_cases(runner, runner->count);
    runner_sweep_all(runner);
}

static void end_orphans(const Runner *runner)
{
    g_autofree char *told = runner->setup->in_process ? NULL : orphans_tell(getpid(), getpid());
    if (!told)
        return;
    report_note("processes of the provider were left behind, and are ended: %s", told);
    orphans_end();
}

/* ---- a run from its command line to its reports */

/* All but the case of leaks, which is the last; the same order for the same seed. */
static void shuffle(GPtrArray *selected, guint32 seed)
{
    guint count = selected->len;
    GRand *random = g_rand_new_with_seed(seed);
    const Case *last = selected->pdata[count - 1];
    if (strcmp(last->id, CHECK_LEAK_ID) == 0)
        count--;
    for (guint i = count; i > 1; i--) {
        guint other = g_rand_int(random) % i;
        gpointer moved = selected->pdata[i - 1];
        selected->pdata[i - 1] = selected->pdata[other];
        selected->pdata[other] = moved;
    }
    g_rand_free(random);
}

static bool write_report(const char *path, char *page)
{
    g_autofree char *text = page;
    g_autoptr(GError) error = NULL;
    if (!path || report_write(path, text, &error))
        return true;
    fprintf(stderr, "host-sim check: %s\n", error->message);
    return false;
}

static bool write_reports(const Runner *runner)
{
    const CheckSetup *setup = runner->setup;
    g_autoptr(GPtrArray) runs = g_ptr_array_new();
    g_ptr_array_add(runs, runner->run);
    bool written = write_report(setup->json, check_report_json(runner->run));
    written &= write_report(setup->junit, check_report_junit(runner->run));
    written &= write_report(setup->html, check_report_html(runs));
    written &= write_report(setup->write_profile, check_profile_of(runner->run));
    return written;
}

/* Before the run: its result would be lost behind it. */
static bool can_write_reports(const CheckSetup *setup, GError **error)
{
    const char *const paths[] = {setup->json, setup->junit, setup->html, setup->write_profile};
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        if (paths[i] && !report_can_be_written(paths[i], error))
            return false;
    }
    return true;
}

static void note_surprises(const Runner *runner)
{
    if (!runner->profile)
        return;
    g_auto(GStrv) lines = check_profile_surprises(runner->profile, runner->run);
    for (char **line = lines; *line; line++)
        report_note("%s", *line);
}

/* Whoever reads a report of such a run must not take it for a whole one. */
static void tell_interruption(const Runner *runner)
{
    if (!runner->caught)
        return;
    g_autofree char *by =
        g_strdup_printf("by signal %d (SIG%s)", runner->caught, sigabbrev_np(runner->caught));
    g_autofree char *why = g_strconcat("interrupted ", by, NULL);
    json_object_set_new(runner->run->environment, "interrupted", json_string(by));
    report_bail_out(why);
}

static int run_entries(Runner *runner)
{
    CheckSetup *setup = runner->setup;
    g_autofree char *ledger = g_build_filename(runner->folder, "ledger", NULL);
    g_autofree char *run = g_strdup_printf("%08x", g_random_int());
    g_autofree char *shared_id = g_strdup_printf("check-%s-shared", run);
    setup->ledger = ledger;
    setup->run = run;
    setup->shared_id = shared_id;
    setup->stranded = stranded;
    setup->stranded_ctx = runner;
    report_begin(runner->count);
    run_all(runner);
    end_orphans(runner);
    runner->run->took_ms = g_get_monotonic_time() / 1000 - runner->begun_ms;
    remove_folder(runner);
    note_surprises(runner);
    tell_interruption(runner);
    bool written = write_reports(runner);
    report_end(runner->run);
    if (runner->caught)
        return 128 + runner->caught;
    if (runner->run->failed > 0 || !written)
        return CHECK_EXIT_FAILED;
    return runner->run->passed > 0 ? CHECK_EXIT_PASSED : CHECK_EXIT_NOTHING;
}

static void clear_gate(gpointer data)
{
    GateState *gate = data;
    g_free(gate->closed);
    g_free(gate->message);
}

int check_run(CheckSetup *setup)
{
    g_autoptr(GPtrArray) selected = check_select(setup);
    g_autoptr(GError) error = NULL;
    g_autoptr(CheckProfile) profile = NULL;
    g_autoptr(CheckHooks) hooks = NULL;
    g_autoptr(GHashTable) known = NULL;
    if (!check_globs(setup, selected))
        return CHECK_EXIT_NOTHING;
    if (!can_write_reports(setup, &error) ||
        (setup->profile && !check_profile_load(setup->profile, &profile, &error)) ||
        (setup->known && !check_known_load(setup->known, &known, &error)) ||
        (setup->hooks && !check_hooks_load(setup->hooks, &hooks, &error))) {
        fprintf(stderr, "host-sim check: %s\n", error->message);
        return CHECK_EXIT_USAGE;
    }
    if (setup->shuffle)
        shuffle(selected, setup->shuffle);
    g_autofree Entry *entries = g_new0(Entry, selected->len);
    for (guint i = 0; i < selected->len; i++)
        entries[i].one = selected->pdata[i];
    g_autoptr(CheckRun) run = check_run_new();
    Runner runner = {.setup = setup,
                     .profile = profile,
                     .known = known,
                     .entries = entries,
                     .count = selected->len,
                     .run = run,
                     .begun_ms = g_get_monotonic_time() / 1000,
                     .load = check_load_now()};
    if (!make_folder(&runner, &error) || !watch_signals(&runner)) {
        fprintf(stderr, "host-sim check: %s\n", error ? error->message : "no signalfd");
        return CHECK_EXIT_FAILED;
    }
    runner.gates = g_array_new(FALSE, FALSE, sizeof(GateState));
    g_array_set_clear_func(runner.gates, clear_gate);
    int exit_code = run_entries(&runner);
    g_array_unref(runner.gates);
    close(runner.signals);
    return exit_code;
}
