#include "base/redact.h"

#include <criterion/criterion.h>
#include <string.h>

static SprRedactor *knowing(const char *value)
{
    SprRedactor *redactor = spr_redactor_new();
    spr_redactor_add(redactor, value, strlen(value));
    return redactor;
}

static void redacts(const char *value, const char *text, const char *wanted)
{
    g_autoptr(SprRedactor) redactor = knowing(value);
    g_autofree char *safe = spr_redact(redactor, text);
    cr_expect_str_eq(safe, wanted, "%s in %s: %s", value, text, safe);
}

Test(redact, takes_a_value_out_of_a_text)
{
    redacts("hunter22", "password hunter22, again hunter22hunter22.",
            "password ***, again ******.");
    redacts("hunter22", "nothing here: hunter", "nothing here: hunter");
    redacts("a", "banana", "b***n***n***");
    redacts("", "banana", "banana");
}

Test(redact, finds_the_codes_of_a_value)
{
    redacts("p@ss word", "cEBzcyB3b3Jk 70407373 70407373 20776f7264",
            "*** 70407373 70407373 "
            "20776f7264");
    redacts("p@ss word", "hex 7040737320776f7264 or 7040737320776F7264", "hex *** or ***");
    redacts("p@ss word", "url p%40ss%20word", "url ***");
    redacts("token-1234", "eC1hY2Nlc3MtdG9rZW46dG9rZW4tMTIzNA==", "eC1hY2Nlc3MtdG9rZW46***NA==");
}

Test(redact, finds_the_lines_of_a_value_and_its_end_without_line_breaks)
{
    redacts("first-line-of-it\nsecond-line-of-it\n", "> first-line-of-it\n> second-line-of-it",
            "> ***\n> ***");
    redacts("secret-value\n", "x secret-value y", "x *** y");
}

Test(redact, an_unknown_redactor_changes_nothing)
{
    g_autofree char *safe = spr_redact(NULL, "as it is");
    cr_expect_str_eq(safe, "as it is");
}

/* Everything that comes out, whatever the pieces that went in. */
static char *stream(const SprRedactor *redactor, const char *text, gsize piece)
{
    g_autoptr(SprRedactStream) redacted = spr_redact_stream_new(redactor);
    GByteArray *out = g_byte_array_new();
    for (gsize at = 0; at < strlen(text); at += piece)
        spr_redact_stream_push(redacted, text + at, MIN(piece, strlen(text) - at), out);
    spr_redact_stream_finish(redacted, out);
    g_byte_array_append(out, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(out, FALSE);
}

Test(redact, a_value_that_is_cut_into_pieces_is_found)
{
    static const char text[] = "ab abc-secret-value abc-secret-valu abc-secret-value-longer ab";
    g_autoptr(SprRedactor) redactor = knowing("abc-secret-value");
    spr_redactor_add(redactor, "abc-secret-value-longer", 23);
    for (gsize piece = 1; piece < sizeof text; piece++) {
        g_autofree char *safe = stream(redactor, text, piece);
        cr_expect_str_eq(safe, "ab *** abc-secret-valu *** ab", "in pieces of %zu: %s", piece,
                         safe);
    }
}

Test(redact, the_better_part_of_a_value_at_the_end_counts_as_one)
{
    g_autoptr(SprRedactor) redactor = knowing("abc-secret-value");
    g_autofree char *part = stream(redactor, "x abc-secret", 3);
    g_autofree char *begin = stream(redactor, "x abc-s", 3);
    cr_expect_str_eq(part, "x ***");
    cr_expect_str_eq(begin, "x abc-s");
}

Test(redact, random_pieces_never_let_a_value_through)
{
    GRand *random = g_rand_new_with_seed(7);
    g_autoptr(SprRedactor) redactor = knowing("aabaab");
    spr_redactor_add(redactor, "abab", 4);
    for (guint i = 0; i < 2000; i++) {
        char text[64];
        gsize size = (gsize)g_rand_int_range(random, 1, sizeof text - 1);
        for (gsize at = 0; at < size; at++)
            text[at] = "aab"[g_rand_int_range(random, 0, 3)];
        text[size] = '\0';
        g_autofree char *whole = spr_redact(redactor, text);
        g_autofree char *cut = stream(redactor, text, (gsize)g_rand_int_range(random, 1, 9));
        cr_expect_str_eq(cut, whole, "%s", text);
        cr_expect_null(strstr(cut, "aabaab"));
        cr_expect_null(strstr(cut, "abab"));
    }
    g_rand_free(random);
}
