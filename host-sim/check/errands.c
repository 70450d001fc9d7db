#include "check/runner.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "check/report.h"

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
        runner_wait(runner, &job, 1);
    return true;
}

/* ---- facts */

static void add_fact(Runner *runner, const char *key, const char *value)
{
    if (value && *value)
        json_object_set_new(runner->run->environment, key, json_string(value));
}

static void G_GNUC_PRINTF(3, 4) add_facts(Runner *runner, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *value = g_strdup_vprintf(format, args);
    va_end(args);
    add_fact(runner, key, value);
}

static void add_machine(Runner *runner)
{
    struct utsname name;
    time_t now = time(NULL);
    struct tm utc;
    char when[32] = "";
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    add_fact(runner, "time", when);
    if (uname(&name) == 0)
        add_facts(runner, "machine", "%s %s %s, %ld CPUs", name.sysname, name.release, name.machine,
                  sysconf(_SC_NPROCESSORS_ONLN));
}

/* What the provider told in the records of the preparation. */
static void add_provider(Runner *runner, const Job *job)
{
    static const char *const keys[] = {"provider", "providerVersion", "file", "endpoint", "engine"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *value = job_record(job, keys[i]);
        add_fact(runner, keys[i], value);
    }
    g_autofree char *note = job_record(job, "note");
    const char *engine = check_run_fact(runner->run, "engine");
    if (note)
        report_note("%s", note);
    const char *endpoint = check_run_fact(runner->run, "endpoint");
    if (*engine)
        report_note("engine %s%s%s", engine, *endpoint ? ", at " : "", endpoint);
}

static void add_setup(Runner *runner)
{
    const CheckSetup *setup = runner->setup;
    add_fact(runner, "suite", "host-sim " HS_VERSION);
    add_facts(runner, "abi", "%d.%d", SPROV_ABI_MAJOR, SPROV_ABI_MINOR);
    add_facts(runner, "level", "%d", setup->level);
    add_facts(runner, "seed", "%u", setup->seed);
    if (setup->shuffle)
        add_facts(runner, "shuffle", "%u", setup->shuffle);
    add_facts(runner, "jobs", "%d", setup->jobs);
    add_facts(runner, "timeScale", "%g", setup->time_scale);
    if (setup->repeat > 1)
        add_facts(runner, "repeatCalls", "%d", setup->repeat);
    if (runner->profile)
        add_fact(runner, "profile", runner->profile->name);
}

/* ---- before the cases */

static void note_seed(const Runner *runner, const char *calibration)
{
    const CheckSetup *setup = runner->setup;
    g_autofree char *shuffle =
        setup->shuffle ? g_strdup_printf("shuffle %u, ", setup->shuffle) : g_strdup("");
    report_note("suite host-sim " HS_VERSION ", ABI %d.%d, level %d, %sseed %u%s", SPROV_ABI_MAJOR,
                SPROV_ABI_MINOR, setup->level, shuffle, setup->seed, calibration);
}

/* False when the shared sandbox cannot be had. */
static bool take_calibration(Runner *runner, const Job *job)
{
    g_autofree char *start = job_record(job, "start");
    g_autofree char *command = job_record(job, "command");
    if (job->verdict != JOB_PASS || !start || !command)
        return false;
    runner->start_ms = g_ascii_strtoll(start, NULL, 10);
    runner->setup->command_ms = g_ascii_strtoll(command, NULL, 10);
    g_autofree char *told = g_strdup_printf(", start %s ms, command %s ms", start, command);
    note_seed(runner, told);
    add_facts(runner, "calibration", "start %s ms, command %s ms", start, command);
    return true;
}

/* The first start may pull an image. */
static gint64 prepare_limit(const Runner *runner)
{
    return (gint64)(300000 * runner->setup->time_scale);
}

bool runner_prepare(Runner *runner)
{
    CheckSetup *setup = runner->setup;
    const char *shared_id = setup->shared_id;
    Job job;
    add_setup(runner);
    add_machine(runner);
    check_ledger_made(setup->ledger, CHECK_SHARED, shared_id);
    if (!run_errand(runner, CHECK_PREPARE, NULL, prepare_limit(runner), &job))
        return false;
    g_autofree char *unusable = job_record(&job, "unusable");
    add_provider(runner, &job);
    if (!take_calibration(runner, &job) && !unusable) {
        note_seed(runner, "");
        report_note("no shared sandbox, cases that need it will fail: %s: %s",
                    job_verdict_name(job.verdict), job.message);
        setup->shared_id = NULL;
    }
    job_clear(&job);
    if (unusable) {
        check_ledger_gone(setup->ledger, CHECK_SHARED, shared_id);
        report_bail_out(unusable);
        runner->run->failed++;
    }
    return !unusable;
}

/* ---- gates */

static GateState *find_gate(const Runner *runner, const char *name)
{
    for (guint i = 0; i < runner->gates->len; i++) {
        GateState *gate = &g_array_index(runner->gates, GateState, i);
        if (strcmp(gate->name, name) == 0)
            return gate;
    }
    return NULL;
}

static void probe_gate(Runner *runner, const char *name)
{
    Job job;
    GateState gate = {.name = g_intern_string(name), .verdict = JOB_HARNESS};
    if (strcmp(name, CHECK_GATE_CORE) == 0) {
        gate.verdict = JOB_PASS;
    } else if (run_errand(runner, CHECK_GATE, name, runner_limit(runner, 2), &job)) {
        gate.closed = job_record(&job, "closed");
        gate.verdict = job.verdict;
        gate.message = g_strdup(job.message);
        job_clear(&job);
    }
    const char *told = gate.closed ? gate.closed : gate.message;
    json_object_set_new(runner->run->gates, name, told ? json_string(told) : json_null());
    g_array_append_val(runner->gates, gate);
}

void runner_probe_gates(Runner *runner)
{
    for (guint i = 0; i < runner->count && !runner->caught; i++) {
        g_auto(GStrv) names = g_strsplit(runner->entries[i].one->gate, " ", -1);
        for (char **name = names; *name; name++) {
            if (!find_gate(runner, *name))
                probe_gate(runner, *name);
        }
    }
}

const GateState *runner_gate_against(const Runner *runner, const Case *one)
{
    g_auto(GStrv) names = g_strsplit(one->gate, " ", -1);
    for (char **name = names; *name; name++) {
        const GateState *gate = find_gate(runner, *name);
        if (gate && (gate->closed || gate->verdict != JOB_PASS))
            return gate;
    }
    return NULL;
}

/* ---- behind the cases */

void runner_finish(Runner *runner)
{
    Job job;
    if (!runner->setup->shared_id ||
        !run_errand(runner, CHECK_FINISH, NULL, runner_limit(runner, 1), &job))
        return;
    if (job.verdict != JOB_PASS)
        report_note("the shared sandbox %s was not removed: %s", runner->setup->shared_id,
                    job.message);
    job_clear(&job);
}

void runner_sweep_all(Runner *runner)
{
    Job job;
    add_facts(runner, "load", "%.1f", check_load_since(&runner->load));
    if (!run_errand(runner, CHECK_SWEEP, NULL, runner_limit(runner, 3), &job))
        return;
    g_autofree char *left = job_record(&job, "left");
    if (job.verdict != JOB_PASS)
        report_note("not all sandboxes can be removed: %s", job.message);
    else if (left && !runner->caught)
        report_note("sandbox %s and perhaps others were left behind, and are removed", left);
    runner->is_swept = job.verdict == JOB_PASS;
    job_clear(&job);
}
