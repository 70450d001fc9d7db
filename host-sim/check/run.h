/*
 * What became of a run: its environment, its gates and one result a case, as the reports tell it.
 * The runner fills one; report_json.c reads others from files, so that several are compared.
 * Main thread of the runner.
 */
#pragma once

#include <jansson.h>

#include "check/job.h"

typedef struct {
    char *id, *sentence, *clause, *gate; /* as in Case */
    int level;
    JobVerdict verdict;
    char *message; /* of a verdict that needs one, else NULL; UTF-8 */
    char *output;  /* what the case and the provider printed; "" when nothing; UTF-8 */
    int asserted;
    gint64 begun_ms, took_ms; /* begun: since the run's begin */
} CheckResult;

typedef struct {
    json_t *environment; /* facts about suite, provider, engine and machine, in reading order */
    json_t *gates;       /* name: null when open, else a string that says why not */
    GPtrArray *results;  /* CheckResult, in the order of the report */
    int passed, failed, skipped;
    gint64 took_ms;
} CheckRun;

CheckRun *check_run_new(void);
void check_run_free(CheckRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckRun, check_run_free)

/* Takes the result and counts it. */
void check_run_add(CheckRun *run, CheckResult *result);
CheckResult *check_result_new(const Case *one, const Job *job);
void check_result_free(CheckResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckResult, check_result_free)

/* A fact, or "" where the run has none of this name. */
const char *check_run_fact(const CheckRun *run, const char *key);

/* ---- the reports, as text; free with g_free() */

char *check_report_json(const CheckRun *run);
char *check_report_junit(const CheckRun *run);
/* One page that needs nothing but itself; runs are CheckRun, the cases of all side by side. */
char *check_report_html(const GPtrArray *runs);

bool check_report_read(const char *path, CheckRun **ret_run, GError **error);
