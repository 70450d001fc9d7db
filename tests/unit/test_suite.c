#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include "check/job.h"

static GPtrArray *all_cases(void)
{
    CheckSetup setup = {.level = 4};
    return check_select(&setup);
}

/* ---- the tables */

Test(suite, every_case_has_an_id_of_its_own_a_level_a_sentence_and_known_gates)
{
    g_autoptr(GPtrArray) cases = all_cases();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < cases->len; i++) {
        const Case *one = cases->pdata[i];
        cr_assert(g_regex_match_simple("^[A-Z]{3}-[0-9]{2}$", one->id, 0, 0), "%s", one->id);
        cr_assert(g_hash_table_add(seen, (char *)one->id), "%s is there twice", one->id);
        cr_assert(one->level >= 1 && one->level <= 4, "%s", one->id);
        cr_assert(strlen(one->sentence) > 10 && one->run != NULL, "%s", one->id);
        cr_assert(check_knows_gates(one->gate), "%s: gate %s", one->id, one->gate);
    }
}

Test(suite, every_case_cites_a_clause_that_the_contract_has)
{
    g_autofree char *text = NULL;
    g_autoptr(GPtrArray) cases = all_cases();
    cr_assert(g_file_get_contents(SOURCE_DIR "/docs/abi.md", &text, NULL, NULL));
    for (guint i = 0; i < cases->len; i++) {
        const Case *one = cases->pdata[i];
        g_autofree char *anchor = g_strdup_printf("<a id=\"%s\">", one->clause);
        cr_assert(strstr(text, anchor), "%s cites %s", one->id, one->clause);
    }
}

Test(suite, level_1_has_at_least_40_cases_and_the_case_of_leaks_is_the_last)
{
    CheckSetup setup = {.level = 1};
    g_autoptr(GPtrArray) cases = check_select(&setup);
    cr_assert(cases->len >= 40);
    const Case *last = cases->pdata[cases->len - 1];
    cr_assert_str_eq(last->id, CHECK_LEAK_ID);
}

Test(suite, globs_select_and_exclude_by_id)
{
    char *include[] = {(char *)"EXE-0*", (char *)"TMO-01", NULL};
    char *exclude[] = {(char *)"*-03", NULL};
    CheckSetup setup = {.level = 1, .include = include, .exclude = exclude};
    g_autoptr(GPtrArray) cases = check_select(&setup);
    bool has_deadline = false;
    cr_assert(cases->len > 3);
    for (guint i = 0; i < cases->len; i++) {
        const Case *one = cases->pdata[i];
        has_deadline |= strcmp(one->id, "TMO-01") == 0;
        cr_assert(g_str_has_prefix(one->id, "EXE-0") || g_str_has_prefix(one->id, "TMO-01"));
        cr_assert_str_neq(one->id, "EXE-03");
    }
    cr_assert(has_deadline);
}

/* ---- verdicts */

#define EXITED(code) ((code) << 8)

static JobVerdict verdict_of(const char *records, int status, bool timed_out)
{
    Job job = {.pidfd = -1,
               .records_fd = -1,
               .output_fd = -1,
               .timed_out = timed_out,
               .records = g_string_new(records),
               .output = g_string_new(NULL)};
    job_judge(&job, status);
    JobVerdict verdict = job.verdict;
    cr_assert((job.message == NULL) == (verdict == JOB_PASS));
    job_clear(&job);
    return verdict;
}

Test(suite, a_case_that_asserted_and_ended_has_passed)
{
    cr_assert_eq(verdict_of("done 3\n", EXITED(0), false), JOB_PASS);
}

Test(suite, a_case_that_asserted_nothing_is_an_error_of_the_suite)
{
    cr_assert_eq(verdict_of("done 0\n", EXITED(0), false), JOB_HARNESS);
}

Test(suite, a_failed_assertion_is_a_failure_and_a_skip_is_none)
{
    cr_assert_eq(verdict_of("fail x.c:1: y\ndone 2\n", EXITED(0), false), JOB_FAIL);
    cr_assert_eq(verdict_of("skip no gate\ndone 0\n", EXITED(0), false), JOB_SKIP);
}

Test(suite, whoever_ends_the_process_early_or_badly_has_crashed_it)
{
    cr_assert_eq(verdict_of("", EXITED(0), false), JOB_CRASH);
    cr_assert_eq(verdict_of("", SIGSEGV, false), JOB_CRASH);
    cr_assert_eq(verdict_of("done 3\n", SIGSEGV, false), JOB_CRASH);
    cr_assert_eq(verdict_of("done 3\n", EXITED(1), false), JOB_CRASH);
    cr_assert_eq(verdict_of("skip no gate\n", SIGABRT, false), JOB_CRASH);
}

Test(suite, a_case_that_was_killed_at_its_limit_has_timed_out)
{
    cr_assert_eq(verdict_of("fail x.c:1: y\n", SIGKILL, true), JOB_TIMEOUT);
}

/* ---- the ledger */

Test(suite, the_ledger_knows_what_was_made_and_what_is_gone)
{
    char path[] = "/tmp/test-suite-ledger-XXXXXX";
    close(g_mkstemp(path));
    check_ledger_made(path, "AAA-01", "one");
    check_ledger_made(path, "AAA-01", "two words\n\"and more\" 100%");
    check_ledger_made(path, "BBB-01", "three");
    check_ledger_gone(path, "AAA-01", "one");
    g_autoptr(GPtrArray) left = check_ledger_left(path, "AAA-01");
    g_autoptr(GPtrArray) all_left = check_ledger_left(path, NULL);
    g_autoptr(GPtrArray) all = check_ledger_all(path);
    g_unlink(path);
    cr_assert_eq(left->len, 1);
    cr_assert_str_eq(left->pdata[0], "two words\n\"and more\" 100%");
    cr_assert_eq(all_left->len, 2);
    cr_assert_eq(all->len, 3);
}
