#include "check/run.h"

CheckRun *check_run_new(void)
{
    CheckRun *run = g_new0(CheckRun, 1);
    run->environment = json_object();
    run->gates = json_object();
    run->results = g_ptr_array_new_with_free_func((GDestroyNotify)check_result_free);
    return run;
}

void check_run_free(CheckRun *run)
{
    if (!run)
        return;
    json_decref(run->environment);
    json_decref(run->gates);
    g_ptr_array_unref(run->results);
    g_free(run);
}

void check_run_add(CheckRun *run, CheckResult *result)
{
    switch (job_verdict_counts(result->verdict)) {
    case JOB_COUNTS_PASSED:
        run->passed++;
        break;
    case JOB_COUNTS_SKIPPED:
        run->skipped++;
        break;
    case JOB_COUNTS_FAILED:
        run->failed++;
        break;
    }
    g_ptr_array_add(run->results, result);
}

CheckResult *check_result_new(const Case *one, const Job *job)
{
    CheckResult *result = g_new0(CheckResult, 1);
    result->id = g_strdup(one->id);
    result->sentence = g_strdup(one->sentence);
    result->clause = g_strdup(one->clause);
    result->gate = g_strdup(one->gate);
    result->level = one->level;
    result->verdict = job->verdict;
    /* Both come from the provider and may be any bytes. */
    result->message = job->message ? g_utf8_make_valid(job->message, -1) : NULL;
    result->output = g_utf8_make_valid(job->output->str, -1);
    result->asserted = job->asserted;
    result->took_ms = job->took_ms;
    return result;
}

void check_result_free(CheckResult *result)
{
    if (!result)
        return;
    g_free(result->id);
    g_free(result->sentence);
    g_free(result->clause);
    g_free(result->gate);
    g_free(result->message);
    g_free(result->output);
    g_free(result);
}

const char *check_run_fact(const CheckRun *run, const char *key)
{
    const char *value = json_string_value(json_object_get(run->environment, key));
    return value ? value : "";
}
