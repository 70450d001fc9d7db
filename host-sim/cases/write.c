/* Writing files. */
#include "cases/cases.h"

#include <string.h>
#include <sys/stat.h>

static void replaces_the_whole(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    const char *versions[] = {case_text("%s a long first version\n", case_token()), case_token(),
                              "", "x", case_text("%s\n%s\n", case_token(), case_token())};
    for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
        case_write(case_shared(), path, case_bytes(versions[i]), 0);
        CHECK_TEXT(case_sh(case_shared(), "cat '%s'", path).out, versions[i]);
        CHECK_TEXT(case_read(case_shared(), path), versions[i]);
    }
}

static void makes_parents(void)
{
    umask(0077); /* the host's is its own affair */
    const char *folder = case_folder(case_shared());
    const char *token = case_token();
    case_write(case_shared(), case_text("%s/a/b/c/file", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cat '%s/a/b/c/file'", folder).out, token);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && stat -c %%a a a/b a/b/c", folder).out,
               "755\n755\n755\n");
    /* All of it belongs to the user who runs commands. */
    CHECK_TEXT(
        case_sh(case_shared(), "cd '%s' && stat -c %%u a a/b/c a/b/c/file | sort -u", folder).out,
        case_text("%.*s", (int)case_sh(case_shared(), "id -u").out.size,
                  case_sh(case_shared(), "id -u").out.data));
    CHECK_INT(case_sh(case_shared(), "cd '%s' && touch a/b/d && chmod 711 a a/b", folder)
                  .result.exit_code,
              0);
    /* Those that are there stay as they are. */
    case_write(case_shared(), case_text("%s/a/b/e/file", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && stat -c %%a a a/b a/b/e && rm -r a", folder).out,
               "711\n711\n755\n");
}

static const char *mode_of(const char *path)
{
    Ran ran = case_sh(case_shared(), "stat -c %%a '%s'", path);
    return case_text("%.*s", (int)ran.out.size, ran.out.data);
}

static void keeps_modes(void)
{
    const char *folder = case_folder(case_shared());
    const char *path = case_text("%s/file", folder);
    case_write(case_shared(), path, case_bytes("#!/bin/sh\necho ran\n"), 0);
    CHECK_TEXT(case_bytes(mode_of(path)), "644\n");
    case_write(case_shared(), path, case_bytes("#!/bin/sh\necho ran\n"), 0755);
    CHECK_TEXT(case_bytes(mode_of(path)), "755\n");
    CHECK_TEXT(case_sh(case_shared(), "'%s'", path).out, "ran\n");
    case_write(case_shared(), path, case_bytes("#!/bin/sh\necho again\n"), 0);
    CHECK_TEXT(case_bytes(mode_of(path)), "755\n");
    CHECK_TEXT(case_sh(case_shared(), "'%s'", path).out, "again\n");
    case_write(case_shared(), path, case_bytes("x"), 0600);
    CHECK_TEXT(case_bytes(mode_of(path)), "600\n");
    case_write(case_shared(), case_text("%s/new", folder), case_bytes("x"), 0700);
    CHECK_TEXT(case_bytes(mode_of(case_text("%s/new", folder))), "700\n");
    CHECK_STATUS(case_try_write(case_shared(), path, case_bytes("y"), 01777),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_TEXT(case_read(case_shared(), path), "x");
}

static void refuses_write(const char *path)
{
    sprov_status status = case_try_write(case_shared(), path, case_bytes("x"), 0);
    CHECK_THAT(status == SPROV_E_INVALID_ARGUMENT || status == SPROV_E_NOT_FOUND,
               "a write to %s is answered by %d", path, status);
}

static void wrong_targets_are_refused(void)
{
    const char *folder = case_folder(case_shared());
    g_autofree char *long_name = g_strnfill(256, 'n');
    case_sh(case_shared(),
            "cd '%s' && mkdir -p dir/inner && echo kept > dir/inner/file && mkfifo fifo", folder);
    CHECK_STATUS(case_try_write(case_shared(), case_text("%s/dir", folder), case_bytes("x"), 0),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(case_try_write(case_shared(), case_text("%s/fifo", folder), case_bytes("x"), 0),
                 SPROV_E_INVALID_ARGUMENT);
    refuses_write(case_text("%s/dir/", folder));
    refuses_write(case_text("%s/absent/", folder)); /* and makes no directory */
    refuses_write(case_text("%s/dir/inner/file/below", folder));
    CHECK_THAT(strstr(case_last_error()->message, "dir/inner/file") != NULL,
               "the path is not named: %s", case_last_error()->message);
    refuses_write(case_text("%s/%s", folder, long_name));
    CHECK_STATUS(case_try_write(case_shared(), folder, case_bytes("x"), 0),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && cat dir/inner/file && ls", folder).out,
               "kept\ndir\nfifo\n");
}

static void links_are_kept(void)
{
    const char *folder = case_folder(case_shared());
    const char *token = case_token();
    case_sh(
        case_shared(),
        "cd '%s' && mkdir real && echo old > real/file && ln -s real/file link && ln -s real dir "
        "&& ln -s real/new dangling",
        folder);
    case_write(case_shared(), case_text("%s/link", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && readlink link && cat real/file", folder).out,
               case_text("real/file\n%s", token));
    case_write(case_shared(), case_text("%s/dir/other", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && readlink dir && cat real/other", folder).out,
               case_text("real\n%s", token));
    case_write(case_shared(), case_text("%s/dangling", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && readlink dangling && cat real/new", folder).out,
               case_text("real/new\n%s", token));
}

static void paths_are_resolved(void)
{
    const char *folder = case_folder(case_shared());
    const char *name = strrchr(folder, '/') + 1;
    const char *token = case_token();
    case_write(case_shared(), case_text("%s/one", name), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cat '%s/one'", folder).out, token);
    case_sh(case_shared(), "mkdir '%s/sub'", folder);
    case_write(case_shared(), case_text("%s/sub/../two", folder), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cat '%s/two'", folder).out, token);
    case_write(case_shared(), case_text("./%s//three", name), case_bytes(token), 0);
    CHECK_TEXT(case_sh(case_shared(), "cat '%s/three'", folder).out, token);
}

static sprov_status write_from(const char *path, CaseSource *source, guint64 told)
{
    sprov_source table = case_source_table(source);
    table.size = told;
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = path;
    request.source = &table;
    sprov_status status = case_api()->write_file(case_shared(), &request, NULL, case_error());
    CHECK_INT(source->dones, 1);
    return status;
}

static void a_failed_write_changes_nothing(void)
{
    const char *folder = case_folder(case_shared());
    const char *path = case_text("%s/file", folder);
    const char *fresh = case_text("%s/new", folder);
    gsize size = case_random(100000, 200000);
    case_write(case_shared(), path, case_bytes("old"), 0);
    CHECK_STATUS(write_from(path, case_source(case_noise(size)), size + 1),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(write_from(path, case_source(case_noise(size)), size - 1),
                 SPROV_E_INVALID_ARGUMENT);
    CaseSource *source = case_source(case_noise(size));
    source->chunk = 10000;
    source->give_up_at = 50000;
    CHECK_STATUS(write_from(path, source, size), SPROV_E_REFUSED);
    source = case_source(case_noise(size));
    source->give_up_at = 0;
    CHECK_STATUS(write_from(fresh, source, UINT64_MAX), SPROV_E_REFUSED);
    CHECK_TEXT(case_read(case_shared(), path), "old");
    CHECK_TEXT(case_sh(case_shared(), "ls -A '%s'", folder).out, "file\n");
    CaseBytes bytes = case_noise(size);
    CHECK_STATUS(write_from(fresh, case_source(bytes), UINT64_MAX), SPROV_OK);
    CHECK_BYTES(case_read(case_shared(), fresh), bytes);
}

typedef struct {
    const char *path;
    gint is_over;
} Versions;

/* As long as there is a reader. */
static gpointer write_versions(gpointer data)
{
    Versions *versions = data;
    while (!g_atomic_int_get(&versions->is_over)) {
        g_autofree char *version = g_strnfill(100000, (char)('a' + case_random(0, 25)));
        case_write(case_shared(), versions->path, case_bytes(version), 0);
    }
    return NULL;
}

static void readers_see_one_version(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    g_autofree char *first = g_strnfill(100000, 'a');
    case_write(case_shared(), path, case_bytes(first), 0);
    Versions versions = {.path = path};
    GThread *threads[3];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(write_versions, &versions);
    Ran ran = case_sh(case_shared(),
                      "i=0; while [ $i -lt 30 ]; do cat '%s' > '%s.seen'; "
                      "n=$(tr -s a-z < '%s.seen' | wc -c) k=$(wc -c < '%s.seen'); "
                      "[ $n = 1 ] && [ $k = 100000 ] || echo mixed; i=$((i+1)); done",
                      path, path, path, path);
    g_atomic_int_set(&versions.is_over, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    CHECK_TEXT(ran.out, "");
    CaseBytes last = case_read(case_shared(), path);
    CHECK_INT(last.size, 100000);
    g_autofree char *one = g_strnfill(last.size, last.data[0]);
    CHECK_TEXT(last, one);
}

static void a_write_is_seen_at_once(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    for (int i = 0; i < 6; i++) {
        const char *token = case_token();
        case_write(case_shared(), path, case_bytes(token), 0);
        CHECK_TEXT(case_sh(case_shared(), "cat '%s'", path).out, token);
        token = case_token();
        case_sh(case_shared(), "printf %%s %s > '%s'", token, path);
        CHECK_TEXT(case_read(case_shared(), path), token);
    }
}

static void time_is_now(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    case_write(case_shared(), path, case_bytes("x"), 0);
    Ran ran = case_sh(case_shared(), "echo $(($(date +%%s) - $(stat -c %%Y '%s')))", path);
    gint64 age = g_ascii_strtoll(ran.out.data, NULL, 10);
    CHECK(age >= -2 && age <= case_within(3000) / 1000);
}

static void kernel_files_are_not_written(void)
{
    CHECK(case_try_write(case_shared(), "/proc/version", case_bytes("x"), 0) != SPROV_OK);
    CHECK(case_try_write(case_shared(), case_text("/proc/%s", case_token()), case_bytes("x"), 0) !=
          SPROV_OK);
}

const Case cases_write[] = {
    {"WRF-01", 1, "core", "a file is made, and replaced by longer and shorter ones", "10.5",
     replaces_the_whole},
    {"WRF-02", 1, "core", "missing directories are made, and belong to the sandbox's user", "10.4",
     makes_parents},
    {"WRF-04", 1, "core", "a mode is what was asked for, what it was, or 0644", "10.4",
     keeps_modes},
    {"WRF-06", 1, "core", "directories, special files and impossible paths are refused", "10.2",
     wrong_targets_are_refused},
    {"WRF-07", 1, "core", "links are followed and stay", "10.2", links_are_kept},
    {"WRF-13", 1, "core", "relative paths, dots and double slashes are resolved", "10.3",
     paths_are_resolved},
    {"WRF-20", 1, "core", "a source of the wrong size, or that gives up, changes nothing", "10.8",
     a_failed_write_changes_nothing},
    {"WRF-16", 2, "core", "writers at the same time leave one whole version, readers see no other",
     "10.5", readers_see_one_version, 2},
    {"WRF-18", 2, "core", "commands and calls see each other's writes at once", "10.1",
     a_write_is_seen_at_once, 2},
    {"WRF-12", 3, "core", "a written file's time is now", "10.1", time_is_now},
    {"WRF-09", 3, "core", "files of the kernel are not written, and it is told", "10.6",
     kernel_files_are_not_written},
    {0},
};
