#include <criterion/criterion.h>
#include <glib/gstdio.h>

#include "error.h"
#include "values.h"

static gint64 seconds(const char *text)
{
    gint64 ms = 0;
    GError *error = NULL;
    if (hs_parse_seconds(text, &ms, &error))
        return ms;
    cr_assert(error && error->code == HS_USAGE && strstr(error->message, "seconds"));
    g_error_free(error);
    return 0;
}

Test(host_values, seconds_may_have_a_fraction)
{
    cr_assert_eq(seconds("1"), 1000);
    cr_assert_eq(seconds("0.25"), 250);
    cr_assert_eq(seconds(".5"), 500);
    cr_assert_eq(seconds("86400"), 86400000);
}

Test(host_values, no_time_that_was_asked_for_becomes_no_limit)
{
    cr_assert_eq(seconds("0.00001"), 1);
    cr_assert_eq(seconds("99999999999999999999"), INT64_MAX);
}

Test(host_values, zero_seconds_are_no_limit)
{
    cr_assert_eq(seconds("0"), -1);
    cr_assert_eq(seconds("0.0"), -1);
}

Test(host_values, what_is_no_time_is_refused)
{
    const char *const wrong[] = {"", ".", "-1", "1s", "1e3", "0x10", "nan", "inf", " 1", "1.2.3"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++)
        cr_assert_eq(seconds(wrong[i]), 0, "\"%s\" was taken", wrong[i]);
}

Test(host_values, a_mode_is_octal_permission_bits)
{
    guint32 mode = 0;
    cr_assert(hs_parse_mode("0755", &mode, NULL));
    cr_assert_eq(mode, 0755);
    cr_assert(hs_parse_mode("1", &mode, NULL));
    cr_assert_eq(mode, 1);
    const char *const wrong[] = {"", "0", "888", "01000", "-1", "u+x", "7777777777777777777777777"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++)
        cr_assert_not(hs_parse_mode(wrong[i], &mode, NULL), "\"%s\" was taken", wrong[i]);
    cr_assert_eq(mode, 1, "a refused value was stored");
}

Test(host_values, a_log_level_has_one_spelling)
{
    sprov_log_level level = SPROV_LOG_ERROR;
    cr_assert(hs_parse_log_level("debug", &level, NULL));
    cr_assert_eq(level, SPROV_LOG_DEBUG);
    cr_assert_not(hs_parse_log_level("DEBUG", &level, NULL));
    cr_assert_not(hs_parse_log_level("", &level, NULL));
}

Test(host_values, an_environment_entry_needs_a_name)
{
    const char *const good[] = {"A=1", "B=", "C", "D==", NULL};
    const char *const empty[] = {"A=1", "", NULL};
    const char *const nameless[] = {"=1", NULL};
    cr_assert(hs_check_env(NULL, NULL));
    cr_assert(hs_check_env(good, NULL));
    cr_assert_not(hs_check_env(empty, NULL));
    cr_assert_not(hs_check_env(nameless, NULL));
}

Test(host_values, the_nearest_word_is_a_slip_of_the_keys_away)
{
    const char *const known[] = {"timeout", "template", "env", "cwd", "run", "rm", NULL};
    cr_assert_str_eq(hs_nearest("tiemout", known), "timeout");
    cr_assert_str_eq(hs_nearest("time-out", known), "timeout");
    cr_assert_str_eq(hs_nearest("envs", known), "env");
    cr_assert_str_eq(hs_nearest("rnu", known), "run");
    cr_assert_null(hs_nearest("zebra", known));
    cr_assert_null(hs_nearest("", known));
}

Test(host_values, a_very_long_word_is_near_to_none)
{
    const char *const known[] = {"timeout", NULL};
    g_autofree char *word = g_strnfill(5000, 't');
    cr_assert_null(hs_nearest(word, known));
}

Test(host_values, a_json_argument_is_kept_as_it_was_written)
{
    g_autofree char *json = NULL;
    cr_assert(hs_json_argument("--options", "{ \"memory\" : 1.50 }", &json, NULL));
    cr_assert_str_eq(json, "{ \"memory\" : 1.50 }");
}

Test(host_values, a_json_argument_may_lie_in_a_file)
{
    g_autofree char *folder = g_dir_make_tmp("host-sim-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "options.json", NULL);
    g_autofree char *argument = g_strconcat("@", path, NULL);
    g_autofree char *json = NULL;
    cr_assert(g_file_set_contents(path, "{\"image\":\"a\"}\n", -1, NULL));
    cr_assert(hs_json_argument("--options", argument, &json, NULL));
    cr_assert_str_eq(json, "{\"image\":\"a\"}\n");
    g_unlink(path);
    g_clear_pointer(&json, g_free);
    g_autoptr(GError) error = NULL;
    cr_assert_not(hs_json_argument("--options", argument, &json, &error));
    cr_assert(strstr(error->message, path));
    g_rmdir(folder);
}

Test(host_values, what_is_no_json_object_is_refused_with_its_place)
{
    const struct {
        const char *text, *told;
    } wrong[] = {
        {"", "line 1"},
        {"[1]", "begin with {"},
        {"{\"a\":1,\n\"b\"}", "line 2"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{} {}", "line 1"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        char *json = NULL;
        cr_assert_not(hs_json_argument("--config", wrong[i].text, &json, &error));
        cr_assert(g_str_has_prefix(error->message, "--config is no JSON object"));
        cr_assert(strstr(error->message, wrong[i].told), "%s", error->message);
        cr_assert_not(strchr(error->message, '\n'));
    }
}

Test(host_values, the_id_of_the_command_line_wins_over_that_of_the_options)
{
    g_autofree char *both = NULL;
    g_autofree char *only = NULL;
    g_autofree char *none = NULL;
    cr_assert(hs_options_with_id("{\"id\":\"a\",\"memory\":5}", "b \"c\"", &both, NULL));
    cr_assert_str_eq(both, "{\"id\":\"b \\\"c\\\"\",\"memory\":5}");
    cr_assert(hs_options_with_id(NULL, "b", &only, NULL));
    cr_assert_str_eq(only, "{\"id\":\"b\"}");
    cr_assert(hs_options_with_id(NULL, NULL, &none, NULL));
    cr_assert_null(none);
}

Test(host_values, options_without_an_id_of_ours_are_passed_on_untouched)
{
    g_autofree char *text = NULL;
    cr_assert(hs_options_with_id("{ \"a\": 1e2 }", NULL, &text, NULL));
    cr_assert_str_eq(text, "{ \"a\": 1e2 }");
}

Test(host_values, a_clone_has_all_options_but_id_and_name)
{
    char *json = hs_options_clone("{\"id\":\"a\",\"name\":\"b\",\"env\":{\"X\":\"1\",\"Y\":\"2\"},"
                                  "\"image\":\"i\"}",
                                  "{\"env\":{\"X\":\"3\"},\"name\":\"c\"}");
    cr_assert_str_eq(json, "{\"env\":{\"X\":\"3\"},\"image\":\"i\",\"name\":\"c\"}");
    free(json);
    json = hs_options_clone(NULL, NULL);
    cr_assert_str_eq(json, "{}");
    free(json);
}

Test(host_values, an_age_is_told_in_the_largest_unit_that_fits)
{
    static const struct {
        gint64 seconds;
        const char *text;
    } ages[] = {{-5, "0 s"},       {0, "0 s"},    {119, "119 s"},   {120, "2 min"},
                {7199, "119 min"}, {7200, "2 h"}, {172799, "47 h"}, {172800, "2 d"}};
    for (gsize i = 0; i < G_N_ELEMENTS(ages); i++) {
        g_autofree char *text = hs_age_text(ages[i].seconds);
        cr_assert_str_eq(text, ages[i].text);
    }
}

Test(host_values, an_id_that_json_cannot_hold_is_refused_instead_of_dropped)
{
    char *text = NULL;
    cr_assert_not(hs_options_with_id("{\"id\":\"a\"}", "\xff", &text, NULL));
    cr_assert_not(hs_options_with_id(NULL, "", &text, NULL));
    cr_assert_null(text);
}

Test(host_values, a_message_is_one_line_that_no_terminal_obeys)
{
    g_autofree char *line = hs_one_line("a\nb\tc\x1b[31m\x7f \xff\r\n");
    cr_assert_str_eq(line, "a b c?[31m? \xef\xbf\xbd");
}

Test(host_values, an_error_of_a_provider_keeps_what_came_with_it)
{
    g_autoptr(GError) error = NULL;
    sprov_error from = SPROV_INIT(sprov_error);
    memset(from.reason, 'r', sizeof from.reason);
    strcpy(from.message, "no such image");
    from.native = 404;
    cr_assert_not(hs_fail_call(&error, SPROV_E_NOT_FOUND, &from));
    cr_assert_eq(error->code, SPROV_E_NOT_FOUND);
    cr_assert_str_eq(error->message, "no such image");
    cr_assert_eq(strlen(hs_error_extra(error)->reason), sizeof from.reason);
    cr_assert_eq(hs_error_extra(error)->native, 404);
}

Test(host_values, an_error_without_a_message_tells_its_status)
{
    g_autoptr(GError) error = NULL;
    sprov_error from = SPROV_INIT(sprov_error);
    cr_assert_not(hs_fail_call(&error, SPROV_E_UNAVAILABLE, &from));
    cr_assert(strstr(error->message, "unavailable"));
    cr_assert_str_eq(hs_status_name(-99), "internal");
    cr_assert_str_eq(hs_status_name(SPROV_E_WOULD_BLOCK), "would-block");
}

Test(host_values, an_age_is_a_number_with_a_unit)
{
    static const struct {
        const char *text;
        gint64 ms;
    } ages[] = {{"0s", 0}, {"90s", 90000}, {"30m", 1800000}, {"12h", 43200000}, {"7d", 604800000}};
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
        gint64 ms = -1;
        cr_assert(hs_parse_age(ages[i].text, &ms, NULL), "%s", ages[i].text);
        cr_expect_eq(ms, ages[i].ms, "%s: %" G_GINT64_FORMAT, ages[i].text, ms);
    }
    static const char *const none[] = {"",     "7",  "d",   "-1d",  " 1d",
                                       "1.5h", "1w", "1d ", "1day", "106751991168d"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        gint64 ms;
        cr_expect_not(hs_parse_age(none[i], &ms, NULL), "%s", none[i]);
    }
}

Test(host_values, a_signal_has_a_number_or_a_name)
{
    static const struct {
        const char *text;
        int number;
    } signals[] = {{"1", 1},        {"9", 9},        {"64", 64},  {"TERM", 15},
                   {"SIGTERM", 15}, {"sigterm", 15}, {"kill", 9}, {"USR1", 10}};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int number = 0;
        cr_assert(hs_parse_signal(signals[i].text, &number, NULL), "%s", signals[i].text);
        cr_expect_eq(number, signals[i].number, "%s: %d", signals[i].text, number);
    }
    static const char *const none[] = {"", "0", "65", "-9", "09", "SIG", "FOO", "TERM ", "SIG9"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        int number;
        cr_expect_not(hs_parse_signal(none[i], &number, NULL), "%s", none[i]);
    }
}
