#include "fuzz/fuzz.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "error.h"

#define RESULT_FD "3"

void fuzz_outcome_clear(FuzzOutcome *outcome)
{
    g_free(outcome->message);
    g_free(outcome->culprit);
    g_free(outcome->output);
    if (outcome->order)
        g_array_unref(outcome->order);
    *outcome = (FuzzOutcome){0};
}

static void add(GPtrArray *argv, const char *option, const char *value)
{
    if (!value)
        return;
    g_ptr_array_add(argv, g_strdup(option));
    g_ptr_array_add(argv, g_strdup(value));
}

static GPtrArray *arguments(const Fuzz *fuzz, const char *word, const char *script,
                            const char *errand)
{
    const FuzzSetup *setup = fuzz->setup;
    char scale[G_ASCII_DTOSTR_BUF_SIZE];
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_strdup("host-sim"));
    g_ptr_array_add(argv, g_strdup("fuzz"));
    add(argv, "--provider", setup->provider);
    add(argv, "--config", setup->config);
    add(argv, "--options", setup->options);
    add(argv, "--time-scale", g_ascii_dtostr(scale, sizeof scale, setup->time_scale));
    add(argv, "--word", word);
    add(argv, "--script", script);
    add(argv, "--errand", errand);
    add(argv, "--result-fd", RESULT_FD);
    g_ptr_array_add(argv, NULL);
    return argv;
}

static void wait_for(Fuzz *fuzz, const Job *job)
{
    struct pollfd fds[] = {{.fd = fuzz->signals, .events = POLLIN},
                           {.fd = job->pidfd, .events = POLLIN},
                           {.fd = job->records_fd, .events = POLLIN},
                           {.fd = job->output_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    if (poll(fds, G_N_ELEMENTS(fds), 200) > 0 && fds[0].revents &&
        read(fuzz->signals, &info, sizeof info) == sizeof info) {
        fuzz->caught = fuzz->caught ? fuzz->caught : (int)info.ssi_signo;
        job_kill((Job *)job);
    }
}

gint64 fuzz_setup_limit_ms(const FuzzSetup *setup)
{
    return (gint64)(setup->limit_s * 1000 * setup->time_scale);
}

/* A child is given time from each record to the next. ret_longest_ms: the longest that it took. */
static bool run_child(Fuzz *fuzz, const char *word, const char *script, const char *errand,
                      Job *job, gint64 *ret_longest_ms, GError **error)
{
    g_autoptr(GPtrArray) argv = arguments(fuzz, word, script, errand);
    gsize told = 0;
    *ret_longest_ms = 0;
    gint64 limit_ms = script ? fuzz->limit_ms : fuzz_setup_limit_ms(fuzz->setup);
    if (!job_spawn(job, (char **)argv->pdata, limit_ms, error))
        return false;
    while (!job_step(job)) {
        if (job->records->len != told) {
            *ret_longest_ms = MAX(*ret_longest_ms, job->took_ms - job->limit_from_ms);
            job_restart_limit(job);
        }
        told = job->records->len;
        wait_for(fuzz, job);
    }
    return true;
}

/* The index of each lane's call that begins next; script->calls->len: none. */
static guint next_of_lane(const FuzzScript *script, guint lane, guint from)
{
    while (from < script->calls->len && fuzz_script_call(script, from)->lane != lane)
        from++;
    return from;
}

/* A line of the records: "at ROUND LANE CALL". */
static void note_order(FuzzOutcome *outcome, const FuzzScript *script, const char *text)
{
    guint next[FUZZ_LANES] = {0};
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    outcome->order = g_array_new(FALSE, FALSE, sizeof(guint));
    for (char **line = lines; *line; line++) {
        guint round, lane;
        if (sscanf(*line, "at %u %u ", &round, &lane) != 2 || lane >= FUZZ_LANES)
            continue;
        guint index = next_of_lane(script, lane, next[lane]);
        if (index < script->calls->len)
            g_array_append_val(outcome->order, index);
        next[lane] = index + 1;
    }
}

/* What began and was not over, in each lane; the first is to blame. */
static void note_open(FuzzOutcome *outcome, const char *text)
{
    g_autofree char *open[FUZZ_LANES] = {NULL};
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = g_strsplit(*line, " ", 4);
        guint count = g_strv_length(words);
        if (count < 2 || (strcmp(words[0], "at") != 0 && strcmp(words[0], "over") != 0))
            continue;
        bool begins = strcmp(words[0], "at") == 0 && count >= 4;
        guint lane = (guint)atoi(words[begins ? 2 : 1]) % FUZZ_LANES;
        g_free(open[lane]);
        open[lane] = begins ? g_strdup(words[3]) : NULL;
        if (begins)
            outcome->round = (guint)atoi(words[1]);
    }
    g_autoptr(GString) all = g_string_new(outcome->message);
    for (guint lane = 0; lane < FUZZ_LANES; lane++) {
        if (!open[lane])
            continue;
        g_string_append_printf(all, "; lane %u was in \"%s\"", lane, open[lane]);
        if (!outcome->culprit)
            outcome->culprit = g_strndup(open[lane], strcspn(open[lane], " "));
    }
    for (guint lane = 0; lane < FUZZ_LANES; lane++)
        g_clear_pointer(&open[lane], g_free);
    if (outcome->verdict != JOB_FAIL && outcome->message) {
        g_free(outcome->message);
        outcome->message = g_strdup(all->str);
    }
}

/* What a child left that did not end well. */
static void sweep_after(Fuzz *fuzz, const char *word, const Job *ended)
{
    Job job;
    gint64 longest_ms;
    g_autofree char *unused = job_record(ended, FUZZ_UNUSED);
    if (ended->verdict == JOB_PASS || unused)
        return;
    if (!run_child(fuzz, word, NULL, FUZZ_SWEEP_ERRAND, &job, &longest_ms, NULL))
        return;
    if (job.verdict != JOB_PASS)
        fprintf(stderr, "host-sim fuzz: the sandboxes fuzz-%s-a and -b may be left: %s\n", word,
                job.message);
    job_clear(&job);
}

bool fuzz_replay(Fuzz *fuzz, const FuzzScript *script, FuzzOutcome *outcome, GError **error)
{
    Job job;
    g_autofree char *word = g_strdup_printf("%s-%u", fuzz->run, ++fuzz->number);
    g_autofree char *path = g_build_filename(fuzz->folder, "script", NULL);
    g_autofree char *text = fuzz_script_text(script);
    *outcome = (FuzzOutcome){0};
    if (fuzz->caught)
        return hs_fail(error, SPROV_E_CANCELLED, "ended by signal %d", fuzz->caught);
    if (!g_file_set_contents(path, text, -1, error) ||
        !run_child(fuzz, word, path, NULL, &job, &outcome->longest_ms, error))
        return false;
    outcome->verdict = job.verdict;
    outcome->message = g_strdup(job.message);
    outcome->culprit = job_record(&job, "culprit");
    outcome->output = g_strdup(job.output->str);
    note_open(outcome, job.records->str);
    note_order(outcome, script, job.records->str);
    sweep_after(fuzz, word, &job);
    job_clear(&job);
    return !fuzz->caught || hs_fail(error, SPROV_E_CANCELLED, "ended by signal %d", fuzz->caught);
}

bool fuzz_ask_gates(Fuzz *fuzz, GError **error)
{
    Job job;
    gint64 longest_ms;
    g_autofree char *word = g_strdup_printf("%s-0", fuzz->run);
    if (!run_child(fuzz, word, NULL, FUZZ_GATES_ERRAND, &job, &longest_ms, error))
        return false;
    g_autofree char *gates = job_record(&job, "gates");
    /* That its end failed is for the scripts to find. */
    bool is_told = gates != NULL;
    if (is_told)
        fuzz->gates = (guint)atoi(gates);
    else
        hs_fail(error, SPROV_E_UNAVAILABLE, "%s cannot be used: %s", fuzz->setup->provider,
                job.message);
    sweep_after(fuzz, word, &job);
    job_clear(&job);
    return is_told;
}
