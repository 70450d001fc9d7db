/* What is there, and moving it about: sprov.files/1. */
#include "cases/cases.h"

#include <jansson.h>
#include <string.h>

static const sprov_ext_files *files(void)
{
    return case_lib()->files;
}

/* What a call told: each object as "PATH TYPE SIZE MODE", sorted, a line each. */
typedef struct {
    GPtrArray *lines;
} Told;

static Told told_new(void)
{
    return (Told){g_ptr_array_new()};
}

static void take(void *ctx, const char *text, size_t size)
{
    const Told *told = ctx;
    const char *path, *type, *target = "", *mtime;
    json_int_t bytes, mode, uid, gid;
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    int problem = json_unpack(object, "{s:s s:s s:I s:I s:I s:I s:s s?s}", "path", &path, "type",
                              &type, "size", &bytes, "mode", &mode, "uid", &uid, "gid", &gid,
                              "mtime", &mtime, "target", &target);
    CHECK_THAT(problem == 0, "not what the header says: %.*s", (int)size, text);
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(mtime, NULL);
    CHECK_THAT(time && g_str_has_suffix(mtime, "Z"), "mtime is no UTC time: %s", mtime);
    bool sized = strcmp(type, "file") == 0;
    g_ptr_array_add(told->lines,
                    (gpointer)case_text("%s %s %d %o%s%s", path, type, sized ? (int)bytes : 0,
                                        (guint)mode, *target ? " " : "", target));
    json_decref(object);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CaseBytes sorted(const Told *told)
{
    g_autoptr(GString) all = g_string_new(NULL);
    g_ptr_array_sort(told->lines, compare);
    for (guint i = 0; i < told->lines->len; i++)
        g_string_append_printf(all, "%s\n", (char *)told->lines->pdata[i]);
    return case_bytes(case_text("%s", all->str));
}

/* A folder in which the calls work at all; where the provider has no way to it, nothing can be
 * checked. */
static const char *folder(void)
{
    const char *path = case_folder(case_shared());
    Told told = told_new();
    sprov_status status = files()->list(case_shared(), path, 0, NULL, take, &told, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("list() answers SPROV_E_UNSUPPORTED: %s", case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    CHECK_INT(told.lines->len, 0);
    return path;
}

static sprov_status stat_into(Told *told, const char *path, guint32 flags)
{
    return files()->stat(case_shared(), path, flags, NULL, take, told, case_error());
}

static void stat_tells_of_each_kind(void)
{
    const char *in = folder();
    case_sh(
        case_shared(),
        "cd '%s' && printf 12345 > file && chmod 640 file && mkdir -m 750 dir && ln -s file link "
        "&& mkfifo -m 600 pipe && ln -s gone dangling",
        in);
    const char *names[] = {"file", "dir", "link", "pipe"};
    Told told = told_new();
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        CHECK_STATUS(stat_into(&told, case_text("%s/%s", in, names[i]), 0), SPROV_OK);
    CHECK_TEXT(sorted(&told),
               case_text("%s/dir directory 0 750\n%s/file file 5 640\n%s/link file 5 640\n"
                         "%s/pipe other 0 600\n",
                         in, in, in, in));
    Told itself = told_new();
    const char *link = case_text("%s/link", in), *dangling = case_text("%s/dangling", in);
    CHECK_STATUS(stat_into(&itself, link, SPROV_FILES_NO_FOLLOW), SPROV_OK);
    CHECK_TEXT(sorted(&itself), case_text("%s link 0 777 file\n", link));
    Told none = told_new();
    CHECK_STATUS(stat_into(&none, dangling, 0), SPROV_E_NOT_FOUND);
    CHECK_THAT(strstr(case_last_error()->message, "dangling") != NULL, "the path is not named: %s",
               case_last_error()->message);
    CHECK_STATUS(stat_into(&none, dangling, SPROV_FILES_MISSING_OK), SPROV_OK);
    CHECK_INT(none.lines->len, 0);
}

static void list_tells_of_all(void)
{
    const char *in = folder();
    case_sh(case_shared(),
            "cd '%s' && mkdir -p -m 755 a/b && chmod 755 a && printf x > f && printf yz > a/b/g && "
            "chmod 644 f a/b/g && ln -s /nowhere a/l && touch .hidden && chmod 600 .hidden",
            in);
    Told flat = told_new(), deep = told_new(), none = told_new();
    CHECK_STATUS(files()->list(case_shared(), in, 0, NULL, take, &flat, case_error()), SPROV_OK);
    CHECK_TEXT(sorted(&flat), ".hidden file 0 600\na directory 0 755\nf file 1 644\n");
    CHECK_STATUS(
        files()->list(case_shared(), in, SPROV_FILES_RECURSIVE, NULL, take, &deep, case_error()),
        SPROV_OK);
    for (guint i = 0, seen = 0; i < deep.lines->len; i++) {
        const char *line = deep.lines->pdata[i];
        seen |= g_str_has_prefix(line, "a ") ? 1 : g_str_has_prefix(line, "a/b ") ? 2 : 0;
        CHECK_THAT(!g_str_has_prefix(line, "a/") || (seen & 1), "%s comes before a", line);
        CHECK_THAT(!g_str_has_prefix(line, "a/b/") || (seen & 2), "%s comes before a/b", line);
    }
    CHECK_TEXT(sorted(&deep), ".hidden file 0 600\na directory 0 755\na/b directory 0 755\n"
                              "a/b/g file 2 644\na/l link 0 777 /nowhere\nf file 1 644\n");
    CHECK_STATUS(
        files()->list(case_shared(), case_text("%s/f", in), 0, NULL, take, &none, case_error()),
        SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(
        files()->list(case_shared(), case_text("%s/gone", in), 0, NULL, take, &none, case_error()),
        SPROV_E_NOT_FOUND);
    CHECK_STATUS(files()->list(case_shared(), case_text("%s/gone", in), SPROV_FILES_MISSING_OK,
                               NULL, take, &none, case_error()),
                 SPROV_OK);
    CHECK_INT(none.lines->len, 0);
}

static sprov_status make(const char *path, guint32 mode, guint32 flags)
{
    return files()->make_directory(case_shared(), path, mode, flags, NULL, case_error());
}

static void directories_are_made(void)
{
    const char *in = folder();
    CHECK_STATUS(make(case_text("%s/one", in), 0, 0), SPROV_OK);
    CHECK_STATUS(make(case_text("%s/two", in), 0777, 0), SPROV_OK);
    CHECK_STATUS(make(case_text("%s/a/b/c", in), 0700, 0), SPROV_E_NOT_FOUND);
    CHECK_STATUS(make(case_text("%s/a/b/c", in), 0700, SPROV_FILES_RECURSIVE), SPROV_OK);
    CHECK_STATUS(make(case_text("%s/a/b/c", in), 0711, SPROV_FILES_RECURSIVE), SPROV_OK);
    CHECK_STATUS(make(case_text("%s/one", in), 0, 0), SPROV_E_EXISTS);
    CHECK_STATUS(make(case_text("%s/three", in), 01777, 0), SPROV_E_INVALID_ARGUMENT);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && stat -c %%a one two a a/b a/b/c && ls", in).out,
               "755\n777\n755\n755\n700\na\none\ntwo\n");
    CHECK_INT(case_sh(case_shared(), "cd '%s' && touch a/b/c/own one/own", in).result.exit_code, 0);
}

static sprov_status removes(const char *path, guint32 flags)
{
    return files()->remove(case_shared(), path, flags, NULL, case_error());
}

static void what_is_removed_is_gone_and_no_more(void)
{
    const char *in = folder();
    case_sh(
        case_shared(),
        "cd '%s' && mkdir -p kept full/deep empty && touch kept/file full/deep/file file && ln -s "
        "kept link && ln -s ../kept full/link",
        in);
    CHECK_STATUS(removes(case_text("%s/file", in), 0), SPROV_OK);
    CHECK_STATUS(removes(case_text("%s/link", in), SPROV_FILES_RECURSIVE), SPROV_OK);
    CHECK_STATUS(removes(case_text("%s/empty", in), 0), SPROV_OK);
    CHECK_STATUS(removes(case_text("%s/full", in), 0), SPROV_E_CONFLICT);
    CHECK_STATUS(removes(case_text("%s/full", in), SPROV_FILES_RECURSIVE), SPROV_OK);
    CHECK_STATUS(removes(case_text("%s/full", in), 0), SPROV_E_NOT_FOUND);
    CHECK_STATUS(removes(case_text("%s/full", in), SPROV_FILES_MISSING_OK), SPROV_OK);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && find . -mindepth 1 | sort", in).out,
               "./kept\n./kept/file\n");
    /* Not with RECURSIVE: a provider that did it would remove the machine it runs on. */
    CHECK(removes("/", 0) != SPROV_OK);
}

static sprov_status renames(const char *in, const char *from, const char *to)
{
    return files()->rename(case_shared(), case_text("%s/%s", in, from), case_text("%s/%s", in, to),
                           NULL, case_error());
}

static void what_is_renamed_has_the_other_path(void)
{
    const char *in = folder();
    const char *token = case_token();
    case_sh(
        case_shared(),
        "cd '%s' && echo %s > one && echo old > two && mkdir -p dir/in full/in empty && ln -s dir "
        "link",
        in, token);
    CHECK_STATUS(renames(in, "one", "two"), SPROV_OK);
    CHECK_STATUS(renames(in, "dir", "empty"), SPROV_OK);
    CHECK_STATUS(renames(in, "link", "moved"), SPROV_OK);
    CHECK_STATUS(renames(in, "empty", "full"), SPROV_E_CONFLICT);
    CHECK_STATUS(renames(in, "one", "three"), SPROV_E_NOT_FOUND);
    CHECK_STATUS(renames(in, "two", "no/such/two"), SPROV_E_NOT_FOUND);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && cat two && readlink moved && ls", in).out,
               case_text("%s\ndir\nempty\nfull\nmoved\ntwo\n", token));
}

static void flags_are_checked(void)
{
    const char *in = folder();
    Told told = told_new();
    CHECK_STATUS(stat_into(&told, in, SPROV_FILES_RECURSIVE), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(
        files()->list(case_shared(), in, SPROV_FILES_NO_FOLLOW, NULL, take, &told, case_error()),
        SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(make(case_text("%s/x", in), 0, SPROV_FILES_MISSING_OK), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(removes(in, SPROV_FILES_NO_FOLLOW), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(removes(in, 1u << 31), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(removes("", 0), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(stat_into(&told, NULL, 0), SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(told.lines->len, 0);
    CHECK_TEXT(case_sh(case_shared(), "ls -A '%s'", in).out, "");
}

const Case cases_tree[] = {
    {"FIL-01", 1, "files", "stat tells of files, directories, links and all else", "10.9",
     stat_tells_of_each_kind},
    {"FIL-02", 1, "files", "list tells of a directory, or of all below it in order", "10.9",
     list_tells_of_all},
    {"FIL-03", 1, "files", "directories are made with the mode asked for, also below missing ones",
     "10.9", directories_are_made},
    {"FIL-04", 1, "files", "what is removed is gone, and nothing that links lead to", "10.9",
     what_is_removed_is_gone_and_no_more},
    {"FIL-05", 1, "files", "a rename replaces files and empty directories, and no others", "10.9",
     what_is_renamed_has_the_other_path},
    {"FIL-06", 1, "files", "a flag that is not for a function is refused", "10.9",
     flags_are_checked},
    {0},
};
