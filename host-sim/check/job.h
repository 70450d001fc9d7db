/*
 * One child of the runner: this program again, with --run-one, in a process group of its own that
 * is killed at its limit and whatever is left of it afterwards. Its records, and the end of what
 * it printed, are kept. Main thread.
 */
#pragma once

#include "check/check.h"

typedef enum {
    JOB_PASS,
    JOB_FAIL,
    JOB_SKIP,
    JOB_CRASH,
    JOB_TIMEOUT,
    JOB_HARNESS
} JobVerdict;

const char *job_verdict_name(JobVerdict verdict);

typedef struct {
    pid_t pid;
    int pidfd;
    int records_fd, output_fd; /* non-blocking */
    gint64 started_ms, limit_ms, took_ms;
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

/* Reads what there is; true once the child has ended, and then the verdict stands. */
bool job_step(Job *job);

/* What became of a child that ended with this wait status, by its records; for tests. */
void job_judge(Job *job, int status);

/* The value of a record, the first with this key, or NULL; free with g_free(). */
char *job_record(const Job *job, const char *key);

/* Kills the whole group. */
void job_kill(Job *job);
void job_clear(Job *job);
