#include "check/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

#define RECORDS_FD 3
#define KEPT_OUTPUT 8192
#define KEPT_RECORDS 65536

static const struct {
    const char *name;
    JobCounts counts;
} verdicts[] = {
    [JOB_PASS] = {"pass", JOB_COUNTS_PASSED},
    [JOB_FAIL] = {"fail", JOB_COUNTS_FAILED},
    [JOB_SKIP] = {"skip", JOB_COUNTS_SKIPPED},
    [JOB_CRASH] = {"crash", JOB_COUNTS_FAILED},
    [JOB_TIMEOUT] = {"timeout", JOB_COUNTS_FAILED},
    [JOB_HARNESS] = {"harness-error", JOB_COUNTS_FAILED},
    [JOB_WARN] = {"warn", JOB_COUNTS_PASSED},
    [JOB_KNOWN] = {"known-failure", JOB_COUNTS_SKIPPED},
    [JOB_UNEXPECTED_PASS] = {"unexpected-pass", JOB_COUNTS_FAILED},
};

const char *job_verdict_name(JobVerdict verdict)
{
    return verdicts[verdict].name;
}

bool job_verdict_parse(const char *name, JobVerdict *ret_verdict)
{
    for (gsize i = 0; i < G_N_ELEMENTS(verdicts); i++) {
        if (strcmp(verdicts[i].name, name) == 0) {
            *ret_verdict = (JobVerdict)i;
            return true;
        }
    }
    return false;
}

JobCounts job_verdict_counts(JobVerdict verdict)
{
    return verdicts[verdict].counts;
}

static void add(GPtrArray *argv, const char *option, const char *value)
{
    if (!value)
        return;
    g_ptr_array_add(argv, g_strdup(option));
    g_ptr_array_add(argv, g_strdup(value));
}

static GPtrArray *arguments(const CheckSetup *setup, const char *run_one, const char *subject)
{
    g_autofree char *seed = g_strdup_printf("%u", setup->seed);
    g_autofree char *repeat = g_strdup_printf("%d", setup->repeat);
    g_autofree char *command_ms = g_strdup_printf("%" G_GINT64_FORMAT, setup->command_ms);
    char scale[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(scale, sizeof scale, setup->time_scale);
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_strdup("host-sim"));
    g_ptr_array_add(argv, g_strdup("check"));
    g_ptr_array_add(argv, g_strdup(setup->provider));
    add(argv, "--config", setup->config);
    add(argv, "--options", setup->options);
    add(argv, "--seed", seed);
    add(argv, "--time-scale", scale);
    add(argv, "--log-level", levels[setup->log_level]);
    add(argv, "--run-one", run_one);
    add(argv, "--result-fd", G_STRINGIFY(RECORDS_FD));
    add(argv, "--ledger", setup->ledger);
    add(argv, "--run", setup->run);
    add(argv, "--shared-id", setup->shared_id);
    add(argv, "--subject", subject);
    add(argv, "--hooks", setup->hooks);
    add(argv, "--repeat-calls", repeat);
    add(argv, "--command-ms", command_ms);
    g_ptr_array_add(argv, NULL);
    return argv;
}

static _Noreturn void become_child(char **argv, int records, int output)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (records == RECORDS_FD)
        fcntl(records, F_SETFD, 0);
    else
        dup2(records, RECORDS_FD);
    signal(SIGPIPE, SIG_DFL); /* a provider must not need it ignored */
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv("/proc/self/exe", argv);
    _exit(CHECK_EXIT_USAGE);
}

/* The records of a case that ran here, and its verdict. */
static void end_here(Job *job)
{
    char buffer[4096];
    ssize_t size;
    off_t at = 0;
    while ((size = pread(job->records_fd, buffer, sizeof buffer, at)) > 0) {
        g_string_append_len(job->records, buffer, size);
        at += size;
    }
    job->took_ms = g_get_monotonic_time() / 1000 - job->started_ms;
    job_judge(job, 0);
}

typedef struct {
    Job *job;
    const CheckSetup *setup;
} Stranded;

static void strand(void *ctx, Job *none)
{
    const Stranded *stranded = ctx;
    end_here(stranded->job);
    stranded->setup->stranded(stranded->setup->stranded_ctx, stranded->job);
}

/* Without a process of its own: over when this returns. */
static bool run_here(Job *job, const CheckSetup *setup, const char *run_one, const char *subject,
                     GError **error)
{
    int records = memfd_create("records", MFD_CLOEXEC);
    if (records < 0)
        return hs_fail(error, SPROV_E_EXHAUSTED, "no memory file for a case: %s",
                       g_strerror(errno));
    *job = (Job){.run = setup->run,
                 .pidfd = -1,
                 .records_fd = records,
                 .output_fd = -1,
                 .started_ms = g_get_monotonic_time() / 1000,
                 .records = g_string_new(NULL),
                 .output = g_string_new(NULL)};
    Stranded stranded = {job, setup};
    CheckSetup own = *setup;
    own.run_one = run_one;
    own.subject = subject;
    own.result_fd = records;
    own.stranded = strand;
    own.stranded_ctx = &stranded;
    fflush(NULL);
    check_run_one(&own);
    end_here(job);
    return true;
}

bool job_spawn(Job *job, char **argv, gint64 limit_ms, GError **error)
{
    int records[2];
    int output[2];
    if (pipe2(records, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        return hs_fail(error, SPROV_E_EXHAUSTED, "no pipe for a case: %s", g_strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_child(argv, records[1], output[1]);
    close(records[1]);
    close(output[1]);
    if (pid < 0)
        return hs_fail(error, SPROV_E_EXHAUSTED, "no process for a case: %s", g_strerror(errno));
    setpgid(pid, pid); /* here too, so that the group is there before it is killed */
    fcntl(records[0], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    *job = (Job){.pid = pid,
                 .pidfd = pidfd_open(pid, 0),
                 .records_fd = records[0],
                 .output_fd = output[0],
                 .started_ms = g_get_monotonic_time() / 1000,
                 .limit_ms = limit_ms,
                 .load = check_load_now(),
                 .records = g_string_new(NULL),
                 .output = g_string_new(NULL)};
    return true;
}

bool job_start(Job *job, const CheckSetup *setup, const char *run_one, const char *subject,
               gint64 limit_ms, GError **error)
{
    if (setup->in_process)
        return run_here(job, setup, run_one, subject, error);
    g_autoptr(GPtrArray) argv = arguments(setup, run_one, subject);
    bool started = job_spawn(job, (char **)argv->pdata, limit_ms, error);
    if (started)
        job->run = setup->run;
    return started;
}

/* Descriptors of a child that went wild may never end: no more than is there now is read. */
static void read_some(int *fd, GString *into, gsize most, bool keep_newest)
{
    char buffer[4096];
    for (int i = 0; i < 64 && *fd >= 0; i++) {
        ssize_t size = read(*fd, buffer, sizeof buffer);
        if (size < 0)
            return;
        if (size == 0) {
            close(*fd);
            *fd = -1; /* a poll on its end would never wait again */
            return;
        }
        if (keep_newest || into->len < most)
            g_string_append_len(into, buffer, size);
        if (into->len > most)
            g_string_erase(into, 0, (gssize)(into->len - most));
    }
}

char *job_record(const Job *job, const char *key)
{
    /* Others may have written there, anything. */
    g_autofree char *text = g_memdup2(job->records->str, job->records->len + 1);
    for (gsize i = 0; i < job->records->len; i++)
        text[i] = text[i] ? text[i] : '\n';
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *begin =
        g_strdup_printf("%s%s%s ", job->run ? job->run : "", job->run ? " " : "", key);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, begin))
            return g_strdup(*line + strlen(begin));
    }
    return NULL;
}

static char *describe_end(int status, bool was_done)
{
    const char *when = was_done ? "after its verdict, on the way out" : "in the middle of the case";
    if (WIFSIGNALED(status))
        return g_strdup_printf("the process was ended by signal %d (%s) %s", WTERMSIG(status),
                               strsignal(WTERMSIG(status)), when);
    return g_strdup_printf("the process exited with code %d %s", WEXITSTATUS(status), when);
}

void job_judge(Job *job, int status)
{
    g_autofree char *done = job_record(job, "done");
    g_autofree char *fail = job_record(job, "fail");
    g_autofree char *skip = job_record(job, "skip");
    g_autofree char *warn = job_record(job, "warn");
    job->asserted = done ? atoi(done) : 0;
    bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (job->timed_out) {
        job->verdict = JOB_TIMEOUT;
        job->message = g_strdup_printf("not over after %" G_GINT64_FORMAT
                                       " ms, its limit is %" G_GINT64_FORMAT,
                                       job->took_ms - job->limit_from_ms, job->limit_ms);
    } else if (!done || !ended_well) {
        job->verdict = JOB_CRASH;
        job->message = describe_end(status, done != NULL);
    } else if (fail) {
        job->verdict = JOB_FAIL;
        job->message = g_steal_pointer(&fail);
    } else if (skip) {
        job->verdict = JOB_SKIP;
        job->message = g_steal_pointer(&skip);
    } else if (job->asserted == 0) {
        job->verdict = JOB_HARNESS;
        job->message = g_strdup("the case asserted nothing");
    } else if (warn) {
        job->verdict = JOB_WARN;
        job->message = g_steal_pointer(&warn);
    } else {
        job->verdict = JOB_PASS;
    }
}

static bool is_past_limit(const Job *job)
{
    gint64 took_ms = job->took_ms - job->limit_from_ms;
    return took_ms > job->limit_ms &&
           (double)took_ms > (double)job->limit_ms * check_load_since(&job->load);
}

void job_restart_limit(Job *job)
{
    job->limit_from_ms = job->took_ms;
    job->load = check_load_now();
}

bool job_step(Job *job)
{
    if (job->pid == 0)
        return true; /* it was run here */
    read_some(&job->records_fd, job->records, KEPT_RECORDS, false);
    read_some(&job->output_fd, job->output, KEPT_OUTPUT, true);
    gint64 now = g_get_monotonic_time() / 1000;
    job->took_ms = now - job->started_ms;
    if (!job->timed_out && is_past_limit(job)) {
        job->timed_out = true;
        job_kill(job);
    }
    int status;
    if (waitpid(job->pid, &status, WNOHANG) != job->pid)
        return false;
    job_kill(job); /* what the case has left of its group */
    read_some(&job->records_fd, job->records, KEPT_RECORDS, false);
    read_some(&job->output_fd, job->output, KEPT_OUTPUT, true);
    job_judge(job, status);
    return true;
}

void job_kill(Job *job)
{
    if (job->pid > 0)
        kill(-job->pid, SIGKILL);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

void job_clear(Job *job)
{
    close_if_open(job->pidfd);
    close_if_open(job->records_fd);
    close_if_open(job->output_fd);
    g_string_free(job->records, TRUE);
    g_string_free(job->output, TRUE);
    g_free(job->message);
    *job = (Job){0};
}
