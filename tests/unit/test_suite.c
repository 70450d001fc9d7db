#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include "check/hooks.h"
#include "check/profile.h"

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

/* Of records as they are, or each behind the word of the run. */
static JobVerdict verdict_of_raw(const char *records, int status, bool timed_out)
{
    Job job = {.run = "word",
               .pidfd = -1,
               .records_fd = -1,
               .output_fd = -1,
               .timed_out = timed_out,
               .records = g_string_new(records),
               .output = g_string_new(NULL)};
    job_judge(&job, status);
    JobVerdict verdict = job.verdict;
    cr_assert((job.message == NULL) == (verdict == JOB_PASS)); /* all others say why */
    job_clear(&job);
    return verdict;
}

static JobVerdict verdict_of(const char *records, int status, bool timed_out)
{
    g_auto(GStrv) lines = g_strsplit(records, "\n", -1);
    g_autofree char *marked = g_strjoinv("\nword ", lines);
    g_autofree char *all = g_strconcat("word ", marked, NULL);
    return verdict_of_raw(all, status, timed_out);
}

Test(suite, what_others_write_among_the_records_is_none)
{
    cr_assert_eq(verdict_of_raw("done 9\n", EXITED(0), false), JOB_CRASH);
    cr_assert_eq(
        verdict_of_raw("done 9\nskip x\ngarb\nword fail y\nword done 1\n", EXITED(0), false),
        JOB_FAIL);
    cr_assert_eq(verdict_of_raw("words done 9\nword done 0\n", EXITED(0), false), JOB_HARNESS);
}

Test(suite, a_case_that_asserted_and_ended_has_passed)
{
    cr_assert_eq(verdict_of("done 3\n", EXITED(0), false), JOB_PASS);
}

Test(suite, a_case_that_asserted_nothing_is_an_error_of_the_suite)
{
    cr_assert_eq(verdict_of("done 0\n", EXITED(0), false), JOB_HARNESS);
}

Test(suite, a_case_that_warned_has_passed_and_a_failure_beside_it_counts)
{
    cr_assert_eq(verdict_of("warn slow\ndone 3\n", EXITED(0), false), JOB_WARN);
    cr_assert_eq(verdict_of("warn slow\nfail x.c:1: y\ndone 3\n", EXITED(0), false), JOB_FAIL);
    cr_assert_eq(verdict_of("warn slow\ndone 0\n", EXITED(0), false), JOB_HARNESS);
    cr_assert_eq(job_verdict_counts(JOB_WARN), JOB_COUNTS_PASSED);
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

/* ---- reports */

static CheckResult *result(const char *id, const char *gate, JobVerdict verdict,
                           const char *message, const char *output)
{
    Case one = {id, 2, gate, "a <sentence> & \"more\"", "8.1", NULL};
    Job job = {.verdict = verdict,
               .message = (char *)message,
               .asserted = 3,
               .took_ms = 17,
               .output = g_string_new(output)};
    CheckResult *made = check_result_new(&one, &job);
    g_string_free(job.output, TRUE);
    return made;
}

/* One result of each verdict, with bytes that no format takes as they are. */
static CheckRun *run_of_all(void)
{
    CheckRun *run = check_run_new();
    json_object_set_new(run->environment, "provider", json_string("a <b>"));
    json_object_set_new(run->gates, "core", json_null());
    json_object_set_new(run->gates, "proc", json_string("none"));
    for (int verdict = JOB_PASS; verdict <= JOB_UNEXPECTED_PASS; verdict++) {
        g_autofree char *id = g_strdup_printf("EXE-%02d", verdict);
        check_run_add(run, result(id, "core", (JobVerdict)verdict,
                                  verdict == JOB_PASS ? NULL : "why ]]> \033[1m \377\n",
                                  "line <1>\n\001\377"));
    }
    return run;
}

Test(suite, a_report_in_json_reads_back_as_the_same_run)
{
    g_autoptr(CheckRun) run = run_of_all();
    g_autoptr(CheckRun) again = NULL;
    g_autoptr(GError) error = NULL;
    char path[] = "/tmp/test-suite-report-XXXXXX";
    g_autofree char *json = check_report_json(run);
    close(g_mkstemp(path));
    cr_assert(g_file_set_contents(path, json, -1, NULL));
    bool read = check_report_read(path, &again, &error);
    g_unlink(path);
    cr_assert(read, "%s", error ? error->message : "");
    g_autofree char *second = check_report_json(again);
    cr_assert_str_eq(json, second);
    cr_assert_eq(again->passed, 2);
    cr_assert_eq(again->failed, 5);
    cr_assert_eq(again->skipped, 2);
}

Test(suite, what_is_no_report_is_refused_by_its_name)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"format\":5}",
        "{\"format\":\"sprov-conformance/2\"}",
        "{\"format\":\"sprov-conformance/1\",\"cases\":[{}]}",
        "{\"format\":\"sprov-conformance/1\",\"cases\":[5]}",
        ("{\"format\":\"sprov-conformance/1\",\"cases\":[{\"id\":\"A\",\"sentence\":\"\","
         "\"clause\":\"\",\"gate\":\"\",\"verdict\":\"good\"}]}")};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        CheckRun *run = NULL;
        char path[] = "/tmp/test-suite-report-XXXXXX";
        close(g_mkstemp(path));
        cr_assert(g_file_set_contents(path, wrong[i], -1, NULL));
        bool read = check_report_read(path, &run, &error);
        g_unlink(path);
        cr_assert(!read && strstr(error->message, path), "%s", wrong[i]);
    }
}

static void parse_text(GMarkupParseContext *parser, const char *text, gsize size, gpointer data,
                       GError **error)
{
}

Test(suite, a_junit_report_is_sound_xml_and_counts_as_the_run_does)
{
    g_autoptr(CheckRun) run = run_of_all();
    g_autoptr(GError) error = NULL;
    g_autofree char *xml = check_report_junit(run);
    GMarkupParser handlers = {.text = parse_text};
    g_autoptr(GMarkupParseContext) parser = g_markup_parse_context_new(&handlers, 0, NULL, NULL);
    bool parsed = g_markup_parse_context_parse(parser, xml, -1, &error) &&
                  g_markup_parse_context_end_parse(parser, &error);
    cr_assert(parsed, "%s", error ? error->message : "");
    cr_assert(strstr(xml, "tests=\"9\" failures=\"5\" skipped=\"2\""));
    for (const char *at = xml; *at; at++)
        cr_assert((guchar)*at >= 0x20 || *at == '\n');
}

Test(suite, a_page_holds_what_was_printed_as_text_alone)
{
    g_autoptr(CheckRun) run = run_of_all();
    g_autoptr(GPtrArray) runs = g_ptr_array_new();
    g_ptr_array_add(runs, run);
    g_ptr_array_add(runs, run);
    g_autofree char *page = check_report_html(runs);
    cr_assert(g_utf8_validate(page, -1, NULL));
    cr_assert(strstr(page, "line &lt;1&gt;") && !strstr(page, "line <1>"));
    cr_assert(!strstr(page, "<sentence>") && !strstr(page, "a <b>"));
    cr_assert(!strstr(page, "http://") && !strstr(page, "https://"), "it needs something else");
}

static CheckRun *run_of(const char *provider, const char *engine)
{
    CheckRun *run = run_of_all();
    json_object_set_new(run->environment, "provider", json_string(provider));
    json_object_set_new(run->environment, "providerVersion", json_string("1"));
    json_object_set_new(run->environment, "engine", json_string(engine));
    return run;
}

Test(suite, a_page_tells_runs_apart_and_names_what_failed)
{
    g_autoptr(CheckRun) one = run_of("docker", "docker 26.1, os linux");
    g_autoptr(CheckRun) two = run_of("docker", "docker 20.10, os linux");
    g_autoptr(GPtrArray) runs = g_ptr_array_new();
    g_ptr_array_add(runs, one);
    g_ptr_array_add(runs, two);
    g_autofree char *page = check_report_html(runs);
    cr_assert(strstr(page, "<th>docker 1, docker 26.1<"));
    cr_assert(strstr(page, "<th>docker 1, docker 20.10<"));
    cr_assert(strstr(page, "<a href=\"#EXE-01\">EXE-01</a>") && !strstr(page, "href=\"#EXE-00\""));
    cr_assert(strstr(page, "<span class=\"failed\">5 failed</span>"));
    g_ptr_array_index(runs, 1) = one;
    g_autofree char *same = check_report_html(runs);
    cr_assert(strstr(same, "<th>docker 1, docker 26.1 (1)<"));
    cr_assert(strstr(same, "<th>docker 1, docker 26.1 (2)<"));
}

/* ---- expectations */

static bool load_profile(const char *json, CheckProfile **ret_profile)
{
    char path[] = "/tmp/test-suite-profile-XXXXXX";
    close(g_mkstemp(path));
    cr_assert(g_file_set_contents(path, json, -1, NULL));
    g_autoptr(GError) error = NULL;
    bool loaded = check_profile_load(path, ret_profile, &error);
    g_unlink(path);
    cr_assert(loaded || strstr(error->message, path), "%s", json);
    return loaded;
}

static JobVerdict expect(const CheckProfile *profile, GHashTable *known, const char *id,
                         const char *gate, JobVerdict verdict)
{
    g_autoptr(CheckResult) one = result(id, gate, verdict, "why", "");
    check_expect(profile, known, one);
    return one->verdict;
}

Test(suite, a_skip_of_what_a_profile_asks_for_is_a_failure)
{
    CheckProfile *profile = NULL;
    cr_assert(load_profile("{\"name\":\"p\",\"about\":\"x\",\"gates\":[\"core\",\"image\"],"
                           "\"skips\":{\"EXE-02\":\"no root\"}}",
                           &profile));
    cr_assert_eq(expect(profile, NULL, "EXE-01", "core", JOB_SKIP), JOB_FAIL);
    cr_assert_eq(expect(profile, NULL, "EXE-01", "core image", JOB_SKIP), JOB_FAIL);
    cr_assert_eq(expect(profile, NULL, "EXE-02", "core", JOB_SKIP), JOB_SKIP);
    cr_assert_eq(expect(profile, NULL, "EXE-01", "core proc", JOB_SKIP), JOB_SKIP);
    cr_assert_eq(expect(profile, NULL, "EXE-01", "core", JOB_PASS), JOB_PASS);
    check_profile_free(profile);
}

Test(suite, a_profile_that_names_what_there_is_not_is_refused)
{
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{\"gates\":{}}",
                                        "{\"gates\":[\"nosuch\"]}",
                                        "{\"gates\":[5]}",
                                        "{\"skips\":{\"XXX-01\":\"\"}}",
                                        "{\"skips\":{\"EXE-01\":1}}",
                                        "{\"gate\":[]}"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        CheckProfile *profile = NULL;
        cr_assert(!load_profile(wrong[i], &profile), "%s", wrong[i]);
    }
}

Test(suite, the_profile_of_a_run_is_one_that_the_run_satisfies)
{
    g_autoptr(CheckRun) run = run_of_all();
    CheckProfile *profile = NULL;
    g_autofree char *json = check_profile_of(run);
    cr_assert(load_profile(json, &profile));
    for (guint i = 0; i < run->results->len; i++) {
        CheckResult *one = run->results->pdata[i];
        JobVerdict before = one->verdict;
        check_expect(profile, NULL, one);
        cr_assert_eq(one->verdict, before, "%s", one->id);
    }
    cr_assert(g_hash_table_contains(profile->gates, "core"));
    cr_assert(!g_hash_table_contains(profile->gates, "proc"));
    check_profile_free(profile);
}

Test(suite, a_known_failure_may_fail_and_must)
{
    char path[] = "/tmp/test-suite-known-XXXXXX";
    g_autoptr(GHashTable) known = NULL;
    g_autoptr(GError) error = NULL;
    close(g_mkstemp(path));
    cr_assert(g_file_set_contents(path, "# why\n\n EXE-01\t too slow\nEXE-02 x\n", -1, NULL));
    bool loaded = check_known_load(path, &known, &error);
    g_unlink(path);
    cr_assert(loaded, "%s", error ? error->message : "");
    static const struct {
        JobVerdict before, after;
    } verdicts[] = {{JOB_PASS, JOB_UNEXPECTED_PASS}, {JOB_WARN, JOB_UNEXPECTED_PASS},
                    {JOB_FAIL, JOB_KNOWN},           {JOB_CRASH, JOB_KNOWN},
                    {JOB_TIMEOUT, JOB_KNOWN},        {JOB_SKIP, JOB_SKIP},
                    {JOB_HARNESS, JOB_HARNESS}};
    for (gsize i = 0; i < G_N_ELEMENTS(verdicts); i++) {
        cr_assert_eq(expect(NULL, known, "EXE-01", "core", verdicts[i].before), verdicts[i].after);
        cr_assert_eq(expect(NULL, known, "EXE-03", "core", verdicts[i].before), verdicts[i].before);
    }
}

Test(suite, a_file_of_known_failures_names_cases_and_reasons)
{
    static const char *const wrong[] = {"XXX-01 x\n", "EXE-01\n", "EXE-01  \n", "EXE-0* x\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        char path[] = "/tmp/test-suite-known-XXXXXX";
        GHashTable *known = NULL;
        g_autoptr(GError) error = NULL;
        close(g_mkstemp(path));
        cr_assert(g_file_set_contents(path, wrong[i], -1, NULL));
        bool loaded = check_known_load(path, &known, &error);
        g_unlink(path);
        cr_assert(!loaded && strstr(error->message, "line 1"), "%s", wrong[i]);
    }
}

Test(suite, the_profiles_that_come_with_it_are_sound)
{
    static const char *const names[] = {"docker-1.41", "docker-1.41-plain", "docker-1.45",
                                        "docker-1.45-plain"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(CheckProfile) profile = NULL;
        g_autofree char *path = g_strdup_printf(SOURCE_DIR "/host-sim/profiles/%s.json", names[i]);
        cr_assert(check_profile_load(path, &profile, &error), "%s", error ? error->message : "");
        cr_assert_str_eq(profile->name, names[i]);
    }
}

/* ---- hooks */

static bool load_hooks(const char *json, CheckHooks **ret_hooks)
{
    char path[] = "/tmp/test-suite-hooks-XXXXXX";
    close(g_mkstemp(path));
    cr_assert(g_file_set_contents(path, json, -1, NULL));
    g_autoptr(GError) error = NULL;
    bool loaded = check_hooks_load(path, ret_hooks, &error);
    g_unlink(path);
    cr_assert(loaded || strstr(error->message, path), "%s", json);
    return loaded;
}

Test(suite, hooks_are_commands_and_a_gate_opens_when_all_of_its_hooks_are_there)
{
    CheckHooks *hooks = NULL;
    cr_assert(load_hooks(
        "{\"stop\":[\"{dir}/x\",\"stop\"],\"pause\":[\"y\"],\"git\":[\"g\"],\"badOptions\":{}}",
        &hooks));
    cr_assert(check_hooks_open(hooks, "@stop") && check_hooks_open(hooks, "@bad"));
    cr_assert(check_hooks_open(hooks, "@git"));
    cr_assert(!check_hooks_open(hooks, "@pause") && !check_hooks_open(hooks, "@remove"));
    g_auto(GStrv) argv = check_hooks_command(hooks, "stop", "an id");
    cr_assert_str_eq(argv[0], "/tmp/x");
    cr_assert_str_eq(argv[1], "stop");
    cr_assert_str_eq(argv[2], "an id");
    cr_assert_null(argv[3]);
    g_auto(GStrv) alone = check_hooks_command(hooks, "git", NULL);
    cr_assert_str_eq(alone[0], "g");
    cr_assert_null(alone[1]);
    check_hooks_free(hooks);
}

Test(suite, wrong_hooks_are_refused)
{
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{\"stop\":\"x\"}",
                                        "{\"stop\":[]}",
                                        "{\"stop\":[1]}",
                                        "{\"nosuch\":[\"x\"]}",
                                        "{\"badOptions\":[]}"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        CheckHooks *hooks = NULL;
        cr_assert(!load_hooks(wrong[i], &hooks), "%s", wrong[i]);
    }
}
