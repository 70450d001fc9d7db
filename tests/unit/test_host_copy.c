/* The rules of host-sim cp, without anything to copy. */
#include <criterion/criterion.h>
#include <string.h>

#include "copyplan.h"
#include "error.h"

Test(copy, an_argument_is_a_place)
{
    static const struct {
        const char *word, *given, *id, *path;
    } places[] = {
        {"work:/a", NULL, "work", "/a"},
        {"work:a/b", NULL, "work", "a/b"},
        {"work:", NULL, "work", "."},
        {"user/1001:dev:/a:b", NULL, "user/1001:dev", "/a:b"},
        {"work:a:b", NULL, "work", "a:b"},
        {":/a", "x:y", "x:y", "/a"},
        {"work:/a", "x:y", "work", "/a"},
        {"file", "x:y", NULL, "file"},
        {"./a:b", NULL, NULL, "./a:b"},
        {"/a:b", NULL, NULL, "/a:b"},
        {"-", NULL, NULL, "-"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        g_auto(HsPlace) place = {0};
        cr_assert(hs_place_parse(places[i].word, places[i].given, &place, NULL), "%zu", i);
        cr_expect_eq(g_strcmp0(place.id, places[i].id), 0, "%zu: %s", i, place.id);
        cr_expect_str_eq(place.path, places[i].path);
    }
    static const char *const wrong[] = {"", ":/a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        g_auto(HsPlace) place = {0};
        g_autoptr(GError) error = NULL;
        cr_assert_not(hs_place_parse(wrong[i], NULL, &place, &error));
        cr_expect_eq(error->code, HS_USAGE);
    }
}

#define FILE_ HS_KIND_FILE
#define DIR_ HS_KIND_DIRECTORY
#define NONE HS_KIND_NOTHING

Test(copy, a_target_is_what_docker_cp_makes_of_it)
{
    static const struct {
        HsCopy copy;
        const char *path, *error;
    } rules[] = {
        {{FILE_, false, "f", "/t", NONE, DIR_}, "/t", NULL},
        {{FILE_, false, "f", "/t", FILE_, DIR_}, "/t", NULL},
        {{FILE_, false, "f", "/t", DIR_, DIR_}, "/t/f", NULL},
        {{FILE_, false, "f", "/t/", DIR_, DIR_}, "/t/f", NULL},
        {{FILE_, false, "f", "/", DIR_, DIR_}, "/f", NULL},
        {{FILE_, false, "f", ".", DIR_, DIR_}, "./f", NULL},
        {{FILE_, false, "f", "/t/", NONE, DIR_}, NULL, "no directory /t/"},
        {{FILE_, false, "f", "/t/", FILE_, DIR_}, NULL, "/t/ is no directory"},
        {{FILE_, false, "f", "/n/t", NONE, NONE}, NULL, "no directory /n"},
        {{FILE_, false, "f", "/n/t", NONE, FILE_}, NULL, "/n is no directory"},
        {{FILE_, false, "f", "/t", HS_KIND_OTHER, DIR_}, NULL, "neither a file nor a directory"},
        {{DIR_, false, "d", "/t", NONE, DIR_}, "/t", NULL},
        {{DIR_, false, "d", "/t//", NONE, DIR_}, "/t", NULL},
        {{DIR_, true, "d", "/t", NONE, DIR_}, "/t", NULL},
        {{DIR_, false, "d", "/t", DIR_, DIR_}, "/t/d", NULL},
        {{DIR_, true, "d", "/t", DIR_, DIR_}, "/t", NULL},
        {{DIR_, false, "d", "/t", FILE_, DIR_}, NULL, "onto the file /t"},
        {{DIR_, true, "d", "/t", FILE_, DIR_}, NULL, "onto the file /t"},
        {{DIR_, false, "d", "/n/t", NONE, NONE}, NULL, "no directory /n"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        g_autofree char *path = NULL;
        g_autoptr(GError) error = NULL;
        bool ok = hs_copy_plan(&rules[i].copy, &path, &error);
        cr_expect_eq(ok, rules[i].path != NULL, "rule %zu", i);
        if (ok)
            cr_expect_str_eq(path, rules[i].path, "rule %zu: %s", i, path);
        else
            cr_expect(strstr(error->message, rules[i].error), "rule %zu: %s", i, error->message);
    }
}

Test(copy, contents_are_asked_for_by_a_dot)
{
    static const char *const yes[] = {".", "./", "a/.", "a/./", "/."};
    static const char *const no[] = {"a", "a/", "a.", "a/..", ".."};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        cr_expect(hs_path_is_contents(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        cr_expect_not(hs_path_is_contents(no[i]), "%s", no[i]);
}
