/* Limits, their order, and that each message names operation, argument and value. */
#include "template/canonical.h"
#include "template/recipe.h"

#include <criterion/criterion.h>
#include <string.h>

/* One operation on the default base. */
static char *definition(const char *method, const char *args)
{
    return g_strdup_printf("{\"operations\":[{\"method\":\"%s\",\"args\":[%s]}]}", method, args);
}

/* Checks that json is refused with code, and what message says of it. */
static void refused(const char *json, SprErrorCode code, const char *message)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    cr_expect_not(dkr_template_describe(json, &text, &error), "%.200s", json);
    cr_expect(spr_error_is(error, code, NULL), "%.200s", json);
    cr_expect(error && strstr(error->message, message), "%.200s: %s", json,
              error ? error->message : "accepted");
    cr_expect(!error || !strpbrk(error->message, "\r\n"));
    cr_expect(!error || g_utf8_validate(error->message, -1, NULL), "%.200s", json);
}

static void refused_call(const char *method, const char *args, const char *message)
{
    g_autofree char *json = definition(method, args);
    refused(json, SPR_E_INVALID_ARGUMENT, message);
}

static void unsupported_call(const char *method, const char *args, const char *message)
{
    g_autofree char *json = definition(method, args);
    refused(json, SPR_E_UNSUPPORTED, message);
}

static void accepted(const char *json)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    cr_expect(dkr_template_describe(json, &text, &error), "%.200s: %s", json,
              error ? error->message : "");
}

static void accepted_call(const char *method, const char *args)
{
    g_autofree char *json = definition(method, args);
    accepted(json);
}

/* "item","item",... n times between brackets. */
static char *list(guint n, const char *item)
{
    GString *out = g_string_new("[");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(out, "%s\"%s\"", i > 0 ? "," : "", item);
    g_string_append_c(out, ']');
    return g_string_free(out, FALSE);
}

static char *repeated(const char *text, guint n)
{
    GString *out = g_string_new("\"");
    for (guint i = 0; i < n; i++)
        g_string_append(out, text);
    g_string_append_c(out, '"');
    return g_string_free(out, FALSE);
}

Test(template_limits, a_definition_is_one_object_with_known_members)
{
    refused("", SPR_E_INVALID_ARGUMENT, "no JSON object");
    refused("{\"\\ud8é\"}", SPR_E_INVALID_ARGUMENT, "no JSON object: line 1");
    refused("[]", SPR_E_INVALID_ARGUMENT, "must be an object, got a list");
    refused("{\"baseImage\":\"a\",\"baseImage\":\"b\"}", SPR_E_INVALID_ARGUMENT, "duplicate");
    refused("{\"operation\":[]}", SPR_E_INVALID_ARGUMENT, "got \"operation\"");
    refused("{\"operations\":{}}", SPR_E_INVALID_ARGUMENT, "operations must be a list");
    refused("{\"operations\":[7]}", SPR_E_INVALID_ARGUMENT, "operations[0] must be an object");
    refused("{\"operations\":[{\"method\":\"runCmd\",\"arg\":[]}]}", SPR_E_INVALID_ARGUMENT,
            "operations[0] can only hold \"method\" and \"args\", got \"arg\"");
    refused("{\"operations\":[{\"method\":\"runCmd\",\"args\":\"x\"}]}", SPR_E_INVALID_ARGUMENT,
            "operations[0] runCmd: args must be a list, got \"x\"");
    refused("{\"operations\":[{\"args\":[]}]}", SPR_E_INVALID_ARGUMENT, "no method nothing");
}

Test(template_limits, a_slip_in_a_method_name_is_answered_with_the_right_one)
{
    refused_call("runcmd", "\"x\"", "no method \"runcmd\", did you mean \"runCmd\"?");
    refused_call("from", "\"x\"", "set \"baseImage\" instead");
}

Test(template_limits, a_base_image_is_a_short_word)
{
    g_autofree char *long_base = repeated("b", 32769);
    g_autofree char *json = g_strdup_printf("{\"baseImage\":%s}", long_base);
    refused(json, SPR_E_INVALID_ARGUMENT, "baseImage cannot exceed 32768 characters and has 32769");
    refused("{\"baseImage\":\"\"}", SPR_E_INVALID_ARGUMENT, "baseImage must not be empty");
    refused("{\"baseImage\":null}", SPR_E_INVALID_ARGUMENT, "must be a string, got null");
    refused("{\"baseImage\":\"a\\u3000b\"}", SPR_E_UNSUPPORTED, "baseImage cannot hold white");
    refused("{\"baseImage\":\"a\\u007f\"}", SPR_E_UNSUPPORTED, "baseImage cannot hold white");
    refused("{\"baseImage\":\"--platform=x\"}", SPR_E_UNSUPPORTED, "baseImage cannot begin with");
}

Test(template_limits, strings_are_counted_in_utf16_units)
{
    g_autofree char *two_bytes = repeated("é", 20000);
    g_autofree char *pairs = repeated("😀", 16384);
    g_autofree char *one_pair_more = repeated("😀", 16385);
    accepted_call("runCmd", two_bytes);
    accepted_call("runCmd", pairs);
    refused_call("runCmd", one_pair_more, "command cannot exceed 32768 characters and has 32770");
}

Test(template_limits, lists_hold_512_items)
{
    g_autofree char *most = list(512, "x"), *more = list(513, "x");
    g_autofree char *secrets = g_strdup_printf("\"x\",{\"secrets\":%s,\"output\":\"/o\"}", more);
    g_autofree char *last_wrong = g_strdup_printf("%.*s,\"\"]", (int)strlen(most) - 5, most);
    accepted_call("runCmd", most);
    accepted_call("aptInstall", most);
    refused_call("runCmd", more, "command cannot hold more than 512 items");
    refused_call("pipInstall", more, "packages cannot hold more than 512 items");
    refused_call("runWithSecrets", secrets, "secrets cannot hold more than 512 items");
    refused_call("runCmd", last_wrong, "command[511] must not be empty");
}

Test(template_limits, environments_hold_512_values_of_any_length)
{
    GString *envs = g_string_new("{");
    for (guint i = 0; i < 512; i++)
        g_string_append_printf(envs, "%s\"K%u\":\"\"", i > 0 ? "," : "", i);
    g_autofree char *most = g_strconcat(envs->str, "}", NULL);
    g_autofree char *more = g_strconcat(envs->str, ",\"L\":\"\"}", NULL);
    g_autofree char *long_value = repeated("v", 40000);
    g_autofree char *with_long_value = g_strdup_printf("{\"A\":%s}", long_value);
    g_autofree char *with_long_name = g_strdup_printf("{%s:\"\"}", long_value);
    accepted_call("setEnvs", most);
    accepted_call("setEnvs", with_long_value);
    accepted_call("setEnvs", "{}");
    refused_call("setEnvs", more, "envs cannot hold more than 512 items");
    refused_call("setEnvs", with_long_name, "a name in envs cannot exceed 32768");
    refused_call("setEnvs", "{\"\":\"x\"}", "a name in envs must not be empty");
    refused_call("setEnvs", "{\"\":7}", "envs[\"\"] must be a string, got 7");
    g_string_free(envs, TRUE);
}

Test(template_limits, operations_are_256_and_their_arguments_come_first)
{
    GString *json = g_string_new("{\"operations\":[");
    for (guint i = 0; i < 256; i++)
        g_string_append_printf(json, "%s{\"method\":\"runCmd\",\"args\":[\"c\"]}", i ? "," : "");
    g_autofree char *most = g_strconcat(json->str, "]}", NULL);
    g_autofree char *more =
        g_strconcat(json->str, ",{\"method\":\"setWorkdir\",\"args\":[\"/\"]}]}", NULL);
    g_autofree char *more_and_wrong =
        g_strconcat(json->str, ",{\"method\":\"setWorkdir\",\"args\":[\"\"]}]}", NULL);
    accepted(most);
    refused(more, SPR_E_INVALID_ARGUMENT,
            "operations[256] setWorkdir: a template cannot hold more than 256 operations");
    refused(more_and_wrong, SPR_E_INVALID_ARGUMENT,
            "operations[256] setWorkdir: path must not be empty");
    g_string_free(json, TRUE);
}

Test(template_limits, an_argument_too_many_is_refused_and_null_counts_as_none)
{
    refused_call("runCmd", "\"a\",\"b\"", "args[1] is one argument too many, got \"b\"");
    refused_call("aptInstall", "\"a\",{},true", "args[2] is one argument too many, got true");
    refused_call("aptInstall", "null", "packages must be a string or a list of strings");
    refused_call("aptInstall", "\"git\",5", "options must be an object, got 5");
    accepted_call("runCmd", "\"a\",null");
    accepted_call("npmInstall", "");
}

Test(template_limits, secret_steps_check_names_then_output_then_command)
{
    refused_call("runWithSecrets", "\"x\",7", "options must be an object with");
    refused_call("runWithSecrets", "\"\",{\"secrets\":\"A\"}", "secrets must be a list");
    refused_call("runWithSecrets", "\"\",{\"secrets\":[\"A\",5]}",
                 "secrets[1] must be the name of an environment variable, got 5");
    refused_call("runWithSecrets", "\"\",{\"secrets\":[],\"output\":\"o\"}",
                 "output must be an absolute path, got \"o\"");
    refused_call("runWithSecrets", "\"\",{\"secrets\":[],\"output\":\"/o\"}",
                 "command must not be empty");
    refused_call("runWithSecrets", "\"x\",{\"secrets\":[],\"output\":\"/o\",\"exact\":1}",
                 "exact must be true or false, got 1");
}

Test(template_limits, what_no_image_can_keep_is_refused_by_name)
{
    unsupported_call(
        "runCmd", "\"a\\u0000b\"",
        "operations[0] runCmd: command holds a NUL character, which no image can keep, "
        "got \"a\\u0000b\"");
    unsupported_call("runCmd", "[\"a\",\" \\t\"]", "command[1] is only white space");
    unsupported_call("setEnvs", "{\"TOKEN\":\"hush\\u0000\"}", "envs[\"TOKEN\"] holds a NUL");
    unsupported_call("setEnvs", "{\"A=B\":\"\"}", "a name in envs cannot hold");
    unsupported_call("setEnvs", "{\"A\\u00a0B\":\"\"}", "a name in envs cannot hold");
    unsupported_call("setEnvs", "{\"A\\u0085B\":\"\"}", "a name in envs cannot hold");
    unsupported_call("setEnvs", "{\"SPROV_BUILD_0_0\":\"\"}", "cannot begin with SPROV_BUILD_");
    unsupported_call("setWorkdir", "\"/a\\u007f\"", "path cannot hold control characters");
}

Test(template_limits, the_value_of_a_variable_is_in_no_message)
{
    g_autofree char *json = definition("setEnvs", "{\"TOKEN\":\"hush\\u0000\"}"), *text = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(dkr_template_describe(json, &text, &error));
    cr_assert_null(strstr(error->message, "hush"));
}

Test(template_limits, a_long_value_is_shown_short_and_cut_at_a_character)
{
    g_autofree char *path = repeated("é", 50);
    g_autofree char *args = g_strdup_printf("%.*s\\n\"", (int)strlen(path) - 1, path);
    g_autofree char *json = definition("setWorkdir", args), *text = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(dkr_template_describe(json, &text, &error));
    cr_assert(g_utf8_validate(error->message, -1, NULL));
    cr_assert(g_str_has_suffix(error->message, "é\"..."), "%s", error->message);
}

Test(template_limits, numbers_are_written_as_javascript_writes_them)
{
    static const char *const pairs[][2] = {
        {"0", "0"},
        {"-0", "0"},
        {"1.0", "1"},
        {"-12", "-12"},
        {"0.1", "0.1"},
        {"1e21", "1e+21"},
        {"123e18", "123000000000000000000"},
        {"1.5e300", "1.5e+300"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-7"},
        {"1.25e-9", "1.25e-9"},
        {"9007199254740993", "9007199254740992"},
        {"1234.5678", "1234.5678"},
        {"5e-324", "5e-324"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        json_t *value = json_loads(pairs[i][0], JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
        GString *out = g_string_new(NULL);
        dkr_canonical_append(out, value);
        cr_expect_str_eq(out->str, pairs[i][1]);
        g_string_free(out, TRUE);
        json_decref(value);
    }
}
