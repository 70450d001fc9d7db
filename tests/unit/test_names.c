#include "options/names.h"

#include <criterion/criterion.h>
#include <string.h>

Test(names, are_sanitised_as_the_reference_does)
{
    static const char *const golden[][2] = {
        {"user/1001:dev", "user-1001-dev"},
        {"-leading-dash", "s--leading-dash"},
        {"a", "a-sandbox"},
        {"", "s-"},
        {"\u00e9", "s--"},
        {"a\U0001f600b", "a--b"}, /* two UTF-16 units */
        {"_x", "s-_x"},
        {"9.Ok_-", "9.Ok_-"},
        {"a b\nc", "a-b-c"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(golden); i++) {
        g_autofree char *name = dkr_name_sanitise(golden[i][0]);
        cr_expect_str_eq(name, golden[i][1]);
    }
}

Test(names, of_an_id_that_is_a_valid_name_is_the_id)
{
    g_autofree char *name = dkr_name_for_container("docker-sandbox-m1-abc", NULL);
    cr_assert_str_eq(name, "docker-sandbox-m1-abc");
}

Test(names, of_ids_that_sanitise_alike_differ)
{
    g_autofree char *slash = dkr_name_for_container("x/y", NULL);
    g_autofree char *colon = dkr_name_for_container("x:y", NULL);
    cr_assert_str_eq(slash, "x-y-bd3c9047"); /* sha256sum of x/y */
    cr_assert_str_neq(slash, colon);
    g_autofree char *plain = dkr_name_for_container("x-y", NULL);
    cr_assert_str_eq(plain, "x-y");
    g_autofree char *one = dkr_name_for_container("a", NULL);
    g_autofree char *other = dkr_name_for_container("a-sandbox", NULL);
    cr_assert_str_neq(one, other);
}

Test(names, given_by_the_user_get_no_suffix)
{
    g_autofree char *name = dkr_name_for_container("x/y", "my box");
    cr_assert_str_eq(name, "my-box");
}

static bool is_base36(const char *text, size_t length)
{
    return strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") >= length;
}

Test(names, generated_ids_have_a_time_and_six_random_digits)
{
    g_autofree char *id = dkr_name_generate_id();
    g_auto(GStrv) parts = g_strsplit(id, "-", -1);
    cr_assert_eq(g_strv_length(parts), 4, "%s", id);
    cr_assert_str_eq(parts[0], "docker");
    cr_assert_str_eq(parts[1], "sandbox");
    gint64 ms = (gint64)g_ascii_strtoull(parts[2], NULL, 36);
    cr_assert(ABS(ms - g_get_real_time() / 1000) < 60 * 1000, "%s", id);
    cr_assert_eq(strlen(parts[3]), 6, "%s", id);
    cr_assert(is_base36(parts[3], 6), "%s", id);
}

Test(names, generated_ids_differ)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < 100; i++)
        cr_assert(g_hash_table_add(seen, dkr_name_generate_id()));
}
