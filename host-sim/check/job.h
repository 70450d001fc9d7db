/*
 * One child of the runner: this program again, with --run-one, in a process group of its own that
 * is killed at its limit and whatever is left of it afterwards. Its records, and the end of what
 * it printed, are kept. Main thread.
 */
#pragma once

#include "check/check.h"
#include "check/load.h"

typedef enum {
    JOB_PASS,
    JOB_FAIL,
    JOB_SKIP,
    JOB_CRASH,
    JOB_TIMEOUT,
    JOB_HARNESS,
    JOB_WARN,           /* passed, but slower than it should be, say */
    JOB_KNOWN,          /* failed, as a file of known failures says */
    JOB_UNEXPECTED_PASS /* passed, though that file says otherwise */
} JobVerdict;

typedef enum {
    JOB_COUNTS_PASSED,
    JOB_COUNTS_FAILED,
    JOB_COUNTS_SKIPPED
} JobCounts;

const char *job_verdict_name(JobVerdict verdict);
bool job_verdict_parse(const char *name, JobVerdict *ret_verdict);
/* What it is in the line that counts. */
JobCounts job_verdict_counts(JobVerdict verdict);

typedef struct Job {
    pid_t pid;       /* 0: it was run in this process, and is over */
    const char *run; /* word that its records begin with, or NULL */
    int pidfd;
    int records_fd, output_fd; /* non-blocking */
    gint64 started_ms, took_ms;
    gint64 limit_ms, limit_from_ms; /* of what took_ms counts: so long, from then on */
    CheckLoad load;                 /* at the beginning of the limit: under load it is further */
    bool timed_out;
    GString *records;
    GString *output; /* the newest of it */

    JobVerdict verdict; /* valid once it has ended */
    char *message;      /* of a verdict that needs one, else NULL */
    int asserted;
} Job;

/* Starts run_one of setup, for setup->subject if that is set. */
bool job_start(Job *job, const CheckSetup *setup, const char *run_one, const char *subject,
               gint64 limit_ms, GError **error);

/* The same with any arguments of this program, in a process of its own. */
bool job_spawn(Job *job, char **argv, gint64 limit_ms, GError **error);

/* Gives it the time of its limit from now on, again. */
void job_restart_limit(Job *job);

/* Reads what there is; true once the child has ended, and then the verdict stands. */
bool job_step(Job *job);

/* What became of a child that ended with this wait status, by its records; for tests. */
void job_judge(Job *job, int status);

/* The value of a record, the first with this key, or NULL; free with g_free(). */
char *job_record(const Job *job, const char *key);

/* Kills the whole group. */
void job_kill(Job *job);
void job_clear(Job *job);
