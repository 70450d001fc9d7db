#include <criterion/criterion.h>

#include <string.h>

#include "wire/rule.h"

static WireRules *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    WireRules *rules = NULL;
    json_error_t where;
    json_auto_t *array = json_loads(text, 0, &where);
    cr_assert_not_null(array, "%s", where.text);
    cr_assert(wire_rules_parse(array, &rules, &error), "%s", error ? error->message : "");
    return rules;
}

/* Which actions are for the request: "drop split", in the order of WireDo. */
static char *asked(WireRules *rules, const char *method, const char *target)
{
    WireFault *faults[WIRE_DO_COUNT] = {NULL};
    g_autoptr(GString) names = g_string_new(NULL);
    wire_rules_apply(rules, method, target, faults);
    for (int i = 0; i < WIRE_DO_COUNT; i++) {
        if (faults[i])
            g_string_append_printf(names, "%s%s", names->len ? " " : "", wire_do_names[i]);
        wire_fault_unref(faults[i]);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static void gives(WireRules *rules, const char *method, const char *target, const char *expected)
{
    g_autofree char *names = asked(rules, method, target);
    cr_assert_str_eq(names, expected, "%s %s: \"%s\"", method, target, names);
}

Test(wire_rules, match_by_method_and_path_without_version_and_query)
{
    g_autoptr(WireRules) rules =
        parse("[{\"method\":\"POST\",\"path\":\"/containers/*/exec\",\"do\":\"stall\"}]");
    gives(rules, "POST", "/v1.45/containers/abc/exec", "stall");
    gives(rules, "POST", "/containers/abc/exec?x=1", "stall");
    gives(rules, "GET", "/containers/abc/exec", "");
    gives(rules, "POST", "/containers/a/b/exec", "");
    gives(rules, "POST", "/containers/abc/exec/more", "");
    gives(rules, "POST", "/v1.45x/containers/abc/exec", "");
}

Test(wire_rules, match_by_the_query_where_the_pattern_has_one)
{
    cr_assert(
        wire_path_matches("/images/create?fromImage=**", "/v1.41/images/create?fromImage=a/b"));
    cr_assert(wire_path_matches("/images/create", "/v1.41/images/create?fromImage=a"));
    cr_assert_not(wire_path_matches("/images/create?tag=*", "/images/create?fromImage=a"));
    cr_assert_not(wire_path_matches("/images/create?*", "/images/create"));
}

Test(wire_rules, cross_slashes_with_two_stars_alone)
{
    cr_assert(wire_path_matches("/images/**/json", "/images/a/b/c/json"));
    cr_assert_not(wire_path_matches("/images/*/json", "/images/a/b/c/json"));
    cr_assert(wire_path_matches("**", "/v1.41/anything/at?all"));
    cr_assert(wire_path_matches("/images/*", "/images/"));
}

Test(wire_rules, name_a_request_by_method_path_or_both)
{
    cr_assert(wire_request_matches("POST /exec/*/start", "POST", "/v1.45/exec/1/start"));
    cr_assert(wire_request_matches("/exec/*/start", "GET", "/exec/1/start"));
    cr_assert(wire_request_matches("* /exec/*/start", "GET", "/exec/1/start"));
    cr_assert(wire_request_matches("POST", "POST", "/x"));
    cr_assert_not(wire_request_matches("POST", "POSTS", "/x"));
    cr_assert_not(wire_request_matches("POS", "POST", "/x"));
    cr_assert_not(wire_request_matches("POST /x", "POST", "/y"));
}

Test(wire_rules, fire_behind_some_at_the_nth_at_every_kth_and_so_many_times)
{
    g_autoptr(WireRules) rules = parse("[{\"path\":\"/a\",\"nth\":2,\"do\":\"stall\"},"
                                       "{\"path\":\"/s\",\"skip\":4,\"do\":\"stall\"},"
                                       "{\"path\":\"/b\",\"every\":3,\"do\":\"stall\"},"
                                       "{\"path\":\"/c\",\"times\":2,\"do\":\"stall\"}]");
    for (int i = 1; i <= 6; i++) {
        gives(rules, "GET", "/a", i == 2 ? "stall" : "");
        gives(rules, "GET", "/s", i > 4 ? "stall" : "");
        gives(rules, "GET", "/b", i % 3 == 0 ? "stall" : "");
        gives(rules, "GET", "/c", i <= 2 ? "stall" : "");
        gives(rules, "GET", "/d", "");
    }
}

Test(wire_rules, fire_by_chance_the_same_way_for_the_same_seed)
{
    static const char text[] = "[{\"chance\":0.3,\"seed\":%d,\"do\":\"stall\"}]";
    g_autofree char *seven = g_strdup_printf(text, 7), *eight = g_strdup_printf(text, 8);
    g_autoptr(WireRules) one = parse(seven);
    g_autoptr(WireRules) same = parse(seven);
    g_autoptr(WireRules) other = parse(eight);
    int fired = 0, differs = 0;
    for (int i = 0; i < 1000; i++) {
        g_autofree char *a = asked(one, "GET", "/"), *b = asked(same, "GET", "/"),
                        *c = asked(other, "GET", "/");
        cr_assert_str_eq(a, b);
        fired += *a != '\0';
        differs += strcmp(a, c) != 0;
    }
    cr_assert(fired > 200 && fired < 400, "%d", fired);
    cr_assert_gt(differs, 100);
}

Test(wire_rules, add_up_and_the_later_of_two_with_the_same_action_counts)
{
    g_autoptr(WireRules) rules = parse("[{\"do\":\"delay\",\"ms\":1},{\"do\":\"delay\",\"ms\":2},"
                                       "{\"do\":\"split\",\"sizes\":[7,13]}]");
    WireFault *faults[WIRE_DO_COUNT] = {NULL};
    wire_rules_apply(rules, "GET", "/", faults);
    cr_assert_eq(faults[WIRE_DO_DELAY]->ms, 2);
    cr_assert_eq(faults[WIRE_DO_SPLIT]->shape.n_sizes, 2);
    cr_assert_eq(faults[WIRE_DO_SPLIT]->shape.sizes[1], 13);
    for (int i = 0; i < WIRE_DO_COUNT; i++)
        wire_fault_unref(faults[i]);
}

Test(wire_rules, give_bytes_as_text_in_base64_or_repeated)
{
    static const char *const bodies[] = {"\"abcab\"", "{\"base64\":\"YWJjYWI=\"}",
                                         "{\"repeat\":\"abc\",\"bytes\":5}"};
    for (gsize i = 0; i < G_N_ELEMENTS(bodies); i++) {
        g_autofree char *text = g_strdup_printf("[{\"do\":\"answer\",\"body\":%s}]", bodies[i]);
        g_autoptr(WireRules) rules = parse(text);
        WireFault *faults[WIRE_DO_COUNT] = {NULL};
        gsize size;
        wire_rules_apply(rules, "GET", "/", faults);
        const char *data = g_bytes_get_data(faults[WIRE_DO_ANSWER]->body, &size);
        cr_assert_eq(size, 5);
        cr_assert_arr_eq(data, "abcab", 5);
        wire_fault_unref(faults[WIRE_DO_ANSWER]);
    }
}

static const struct {
    const char *rules;
    const char *says;
} refused[] = {
    {"{}", "rules are a list"},
    {"[1]", "rules[0]: a rule is an object"},
    {"[{\"do\":\"stall\"},{}]", "rules[1]: \"do\" is one of"},
    {"[{\"do\":\"dorp\"}]", "\"do\" is one of"},
    {"[{\"do\":\"stall\",\"ms\":5}]", "stall has no \"ms\"; it takes: at after"},
    {"[{\"do\":\"stall\",\"mehtod\":\"GET\"}]", "has no \"mehtod\""},
    {"[{\"do\":\"stall\",\"method\":5}]", "\"method\" is a text"},
    {"[{\"do\":\"stall\",\"path\":\"exec\"}]", "\"path\" begins with"},
    {"[{\"do\":\"stall\",\"nth\":0}]", "\"nth\" is a whole number of at least 1"},
    {"[{\"do\":\"stall\",\"chance\":0.5}]", "has a \"seed\""},
    {"[{\"do\":\"stall\",\"chance\":2,\"seed\":1}]", "at most 1"},
    {"[{\"do\":\"stall\",\"at\":\"sent\"}]", "for drop alone"},
    {"[{\"do\":\"drop\",\"at\":\"answer\",\"after\":3}]", "goes with \"at\": \"body\""},
    {"[{\"do\":\"drop\",\"at\":\"nowhere\"}]", "request, sent, answer, body"},
    {"[{\"do\":\"drop\",\"how\":\"stall\"}]", "close or reset"},
    {"[{\"do\":\"delay\"}]", "\"ms\" is missing"},
    {"[{\"do\":\"delay\",\"ms\":-1}]", "\"ms\" is a whole number of at least 0"},
    {"[{\"do\":\"split\"}]", "\"sizes\" is a list"},
    {"[{\"do\":\"split\",\"sizes\":[0]}]", "sizes[0]"},
    {"[{\"do\":\"split\",\"sizes\":[1],\"part\":\"tail\"}]", "all, head, body"},
    {"[{\"do\":\"rewrite\",\"replace\":[{\"from\":\"\",\"to\":\"x\"}]}]", "replace[0]"},
    {"[{\"do\":\"rewrite\",\"headers\":{\"X\":1}}]", "headers.X is a text or null"},
    {"[{\"do\":\"rewrite\",\"chunk\":1}]", "go with \"framing\": \"chunked\""},
    {"[{\"do\":\"answer\",\"body\":{\"repeat\":\"\",\"bytes\":1}}]", "\"body\": bytes are"},
    {"[{\"do\":\"answer\",\"at\":\"body\"}]", "\"at\" of an answer"},
};

Test(wire_rules, refuse_what_they_do_not_know_and_say_where)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        WireRules *rules = NULL;
        json_auto_t *array = json_loads(refused[i].rules, 0, NULL);
        cr_assert_not_null(array, "%s", refused[i].rules);
        cr_assert_not(wire_rules_parse(array, &rules, &error), "%s", refused[i].rules);
        cr_assert(strstr(error->message, refused[i].says), "%s: %s", refused[i].rules,
                  error->message);
    }
}
