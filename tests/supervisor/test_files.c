/* Files through the supervisor: what is read and written, and what a request that breaks off leaves
 * behind. */
#include "files_fixture.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

FILES_SUITE(files);

/* ----------------------------------------------------------------------- read and write */

Test(files, every_size_comes_back_equal)
{
    static const gsize sizes[] = {0,    1,    1024,  3900,  4000,  4030,   4096,
                                  5000, 8192, 65535, 65536, 65537, 131072, 3 << 20};
    char *data = noise(3 << 20);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GError) error = NULL;
        SprFileEntry entry;
        cr_assert(write_bytes(in("f"), data, sizes[i], 0, &error), "%s", error->message);
        GString *bytes = read_range(in("f"), 0, 0, &entry, &error);
        cr_assert(!error && bytes->len == sizes[i] && memcmp(bytes->str, data, sizes[i]) == 0);
        cr_expect(entry.size == sizes[i] && entry.length == sizes[i] && entry.mode == 0644);
    }
    sh("[ \"$(ls -A)\" = f ]");
}

Test(files, a_part_is_read_by_offset_and_length)
{
    char *data = noise(200000);
    static const struct {
        guint64 offset, most, count;
    } parts[] = {{0, 1, 1},           {199999, 0, 1},      {200000, 0, 0},
                 {G_MAXUINT64, 0, 0}, {511, 70000, 70000}, {100, G_MAXUINT64, 199900}};
    cr_assert(write_bytes(in("f"), data, 200000, 0, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autoptr(GError) error = NULL;
        GString *bytes = read_range(in("f"), parts[i].offset, parts[i].most, NULL, &error);
        cr_assert(!error && bytes->len == parts[i].count, "part %zu: %zu", i, bytes->len);
        cr_expect(bytes->len == 0 || memcmp(bytes->str, data + parts[i].offset, bytes->len) == 0);
    }
}

Test(files, files_of_the_kernel_are_read_to_their_end_and_not_written)
{
    g_autoptr(GError) error = NULL;
    GString *bytes = read_range("/proc/self/status", 0, 0, NULL, &error);
    cr_assert(!error && strstr(bytes->str, "sprov-keeper"), "%s", bytes->str);
    GString *large = read_range("/proc/kallsyms", 0, 0, NULL, &error);
    cr_assert(!error && large->len > 100000, "%zu", large->len);
    GString *part = read_range("/proc/kallsyms", 1000, 100000, NULL, &error);
    cr_assert(!error && part->len == 100000 && memcmp(part->str, large->str + 1000, 100000) == 0);
    GString *page = read_range("/sys/kernel/mm/transparent_hugepage/enabled", 0, 0, NULL, &error);
    cr_assert(!error && page->len > 5 && page->len < 100, "%zu", page->len);
    GError *refused = NULL;
    write_bytes("/proc/self/comm", "x", 1, 0, &refused);
    expect_failure(refused, SPR_E_DENIED, "permission", "/proc/self/comm");
}

Test(files, what_is_no_file_is_refused_with_its_reason_and_left_alone)
{
    sh("mkdir dir && echo y >dir/kept && mkfifo fifo && echo x >file && ln -s loop loop && "
       "ln -s dir link");
    static const struct {
        const char *name, *reason;
        SprErrorCode code;
    } cases[] = {{"dir", "is-directory", SPR_E_INVALID_ARGUMENT},
                 {"dir/", "is-directory", SPR_E_INVALID_ARGUMENT},
                 {"dir/..", "is-directory", SPR_E_INVALID_ARGUMENT},
                 {"link", "is-directory", SPR_E_INVALID_ARGUMENT},
                 {"fifo", "not-regular", SPR_E_INVALID_ARGUMENT},
                 {"file/below", "not-directory", SPR_E_INVALID_ARGUMENT},
                 {"file/", "not-directory", SPR_E_INVALID_ARGUMENT},
                 {"loop", "link-loop", SPR_E_INVALID_ARGUMENT}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autofree char *path = g_strdup_printf("%s/%s", folder, cases[i].name);
        read_range(path, 0, 0, NULL, &error);
        expect_failure(g_steal_pointer(&error), cases[i].code, cases[i].reason, cases[i].name);
        write_bytes(path, "z", 1, 0, &error);
        expect_failure(error, cases[i].code, cases[i].reason, cases[i].name);
    }
    GError *error = NULL;
    read_range(in("none/deep"), 0, 0, NULL, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_NOT_FOUND, "no-such-file", "none");
    write_bytes("/dev/null", "z", 1, 0, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_INVALID_ARGUMENT, "not-regular", "/dev/null");
    g_autofree char *long_name = g_strnfill(256, 'n');
    write_bytes(in(long_name), "z", 1, 0, &error);
    expect_failure(error, SPR_E_INVALID_ARGUMENT, "name-too-long", "a long name");
    sh("[ \"$(cat dir/kept file)\" = \"$(printf 'y\\nx')\" ] && [ -p fifo ] && [ $(ls -A | wc -l) "
       "= 5 ]");
}

Test(files, links_are_followed_also_to_what_is_not_there_yet)
{
    sh("mkdir real && ln -s real dir && ln -s real/f one && ln -s %s/one two && "
       "ln -s new/deep/file dangling",
       folder);
    must_write(in("two"), "through");
    must_write(in("dir/g"), "in");
    must_write(in("dangling"), "made");
    expect_text(in("two"), "through");
    sh("[ -L one -a -L two -a -L dir -a -L dangling ] && [ \"$(cat real/f real/g new/deep/file)\" "
       "= "
       "throughinmade ]");
}

Test(files, mode_and_owner_are_what_they_were_or_what_was_asked_for)
{
    sh("echo old >f && chown 1234:4321 f && chmod 4751 f");
    cr_assert(write_bytes(in("f"), "new", 3, 0, NULL));
    sh("[ \"$(stat -c '%%a %%u:%%g' f)\" = '4751 1234:4321' ] && [ \"$(cat f)\" = new ]");
    cr_assert(write_bytes(in("f"), "new", 3, 0600, NULL));
    sh("[ \"$(stat -c '%%a %%u:%%g' f)\" = '600 1234:4321' ]");
    cr_assert(write_bytes(in("a/b/g"), "", 0, 0755, NULL));
    sh("[ \"$(stat -c %%a a a/b a/b/g | tr '\\n' ' ')\" = '755 755 755 ' ]");
}

Test(files, a_mount_and_a_full_directory_are_written_in_place)
{
    sh("echo old >mounted && mkdir tight && echo old >tight/f && echo old >source");
    sh("unshare --mount --propagation private sh -c 'true'");
    cr_assert(unshare(CLONE_NEWNS) == 0);
    cr_assert(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    cr_assert(mount(in("source"), in("mounted"), NULL, MS_BIND, NULL) == 0);
    cr_assert(mount(in("tight"), in("tight"), NULL, MS_BIND, NULL) == 0);
    cr_assert(mount(in("tight/f"), in("tight/f"), NULL, MS_BIND, NULL) == 0);
    cr_assert(mount(NULL, in("tight"), NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    /* A supervisor that sees these. */
    Sandbox inner = sandbox_serve();
    SprSupervisor *outer = supervisor;
    supervisor = sandbox_connect(&inner);
    must_write(in("mounted"), "in place");
    must_write(in("tight/f"), "as well");
    GError *error = NULL;
    write_bytes(in("tight/g"), "x", 1, 0, &error);
    expect_failure(error, SPR_E_DENIED, "read-only", "tight/g");
    expect_text(in("mounted"), "in place");
    expect_text(in("tight/f"), "as well");
    spr_supervisor_unref(supervisor);
    supervisor = outer;
    sandbox_stop(&inner);
    umount(in("tight/f"));
    umount(in("tight"));
    umount(in("mounted"));
    sh("[ \"$(cat source)\" = 'in place' ] && [ $(ls -A | wc -l) = 3 ] && [ $(ls -A tight) = f ]");
}

/* A large file that was replaced may outlive the answer, but not by much. */
Test(files, nothing_holds_what_was_replaced)
{
    g_autofree char *held =
        g_strdup_printf("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q '%s.*deleted'", folder);
    char *data = noise(2 << 20);
    for (int i = 0; i < 3; i++)
        cr_assert(write_bytes(in("f"), data, (2 << 20) - (gsize)i, 0, NULL));
    int left = 500;
    while (left > 0 && system(held) == 0) {
        g_usleep(10000);
        left--;
    }
    cr_expect_gt(left, 0);
    sh("[ $(stat -c %%s f) = %d ]", (2 << 20) - 2);
}

Test(files, one_written_beside_another_takes_its_place_if_it_is_whole)
{
    GError *error = NULL;
    sh("echo old >f && ln -s f link && echo new >.t && echo longer >.u && mkdir d");
    cr_assert(spr_files_can_replace(supervisor));
    cr_expect(spr_files_replace(supervisor, in("link"), ".t", 4, &patient, NULL));
    spr_files_replace(supervisor, in("f"), ".u", 4, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_IO, NULL, "another size");
    sh("[ \"$(cat f)\" = new ] && [ -L link ] && [ $(ls -A | wc -l) = 3 ] && echo x >.t");
    spr_files_replace(supervisor, in("d"), ".t", 2, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_INVALID_ARGUMENT, "is-directory", "d");
    spr_files_replace(supervisor, in("f"), ".none", 2, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_NOT_FOUND, "no-such-file", ".none");
    sh("[ \"$(cat f)\" = new ] && [ $(ls -A | wc -l) = 3 ] && echo more >.t");
    cr_expect(spr_files_replace(supervisor, in("fresh"), ".t", 5, &patient, NULL));
    sh("[ \"$(cat fresh)\" = more ] && [ $(ls -A | wc -l) = 4 ]");
}

static bool note_place(void *ctx, const SprFileEntry *entry)
{
    g_string_printf(ctx, "%s %o %u:%u %" G_GUINT64_FORMAT, entry->path, entry->mode, entry->uid,
                    entry->gid, entry->size);
    return true;
}

Test(files, where_one_belongs_is_told_without_links_and_with_what_it_keeps)
{
    g_autoptr(GString) place = g_string_new(NULL);
    GError *error = NULL;
    sh("mkdir real && ln -s real dir && echo old >real/f && chown 12:34 real/f && "
       "chmod 4751 real/f && ln -s dir/f link");
    cr_assert(spr_files_locate(supervisor, in("link"), note_place, place, &patient, NULL));
    cr_expect_str_eq(place->str, g_strconcat(in("real/f"), " 4751 12:34 4", NULL));
    cr_assert(spr_files_locate(supervisor, in("dir/a/b"), note_place, place, &patient, NULL));
    cr_expect_str_eq(place->str, g_strconcat(in("real/a/b"), " 644 0:0 0", NULL));
    sh("[ -d real/a ] && [ ! -e real/a/b ]");
    spr_files_locate(supervisor, in("real"), note_place, place, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_INVALID_ARGUMENT, "is-directory", "real");
    spr_files_locate(supervisor, "/proc/self/comm", note_place, place, &patient, &error);
    expect_failure(error, SPR_E_DENIED, NULL, "/proc");
}

/* ------------------------------------------------------------------------- breaking off */

Test(files, a_write_that_breaks_off_leaves_the_old_file_alone)
{
    char *data = noise(2 << 20);
    must_write(in("f"), "old");
    Given given = {data, 2 << 20, 0, 1 << 20};
    SprSource source = {&given, -1, give};
    SprFileWrite files[] = {{in("first"), 0, &source, -1}, {in("f"), 0, &source, -1}};
    given.give_up_at = 0;
    Given broken = {data, 2 << 20, 0, 1 << 20};
    SprSource broken_source = {&broken, -1, give};
    files[1].source = &broken_source;
    files[0].large = true;
    GError *error = NULL;
    cr_assert_not(spr_files_write(supervisor, files, 2, &patient, &error));
    expect_failure(error, SPR_E_REFUSED, NULL, "a source that gives up");
    sh("[ \"$(cat f)\" = old ] && [ $(ls -A | wc -l) = 2 ] && [ $(stat -c %%s first) = 2097152 ]");
}

static SprFlow stop_at_once(void *ctx, const void *data, gsize size)
{
    return SPR_FLOW_STOP;
}

Test(files, a_reader_that_stops_ends_the_request)
{
    sh("truncate -s 1G f");
    SprFileRange range = {in("f"), 0, 0};
    SprSink sink = {NULL, stop_at_once};
    SprFileEntry entry;
    GError *error = NULL;
    gint64 start = g_get_monotonic_time();
    cr_assert_not(spr_files_read(supervisor, &range, &sink, &patient, &entry, &error));
    expect_failure(error, SPR_E_REFUSED, NULL, "a sink that stops");
    cr_expect(g_get_monotonic_time() - start < 3000000, "it was read to its end");
    expect_text("/proc/sys/kernel/ostype", "Linux\n");
}

static void cut_connection(void *ctx)
{
    if (++*(int *)ctx == 20)
        spr_supervisor_disconnect(supervisor);
}

Test(files, a_broken_connection_leaves_nothing_behind)
{
    int calls = 0;
    Given given = {noise(2 << 20), 2 << 20, .between = cut_connection, .ctx = &calls};
    SprSource source = {&given, -1, give};
    SprFileWrite file = {in("f"), 0, &source, -1, .large = true};
    GError *error = NULL;
    cr_assert_not(spr_files_write(supervisor, &file, 1, &patient, &error));
    expect_failure(error, SPR_E_IO, "supervisor-lost", "a cut connection");
    for (int i = 0; i < 5000 && !is_empty(); i++)
        g_usleep(1000);
    cr_expect(is_empty());
}

/* ------------------------------------------------------------------------------- batches */

/* The supervisor reads the bytes of a file it cannot take, and those behind it are the next one's.
 */
Test(files, large_ones_are_whole_behind_one_that_fails)
{
    enum {
        SIZE = (5 << 20) + 12345
    };
    char *data = noise(SIZE);
    Given given[3];
    SprSource sources[3];
    SprFileWrite files[3];
    const char *names[] = {"a", "dir", "b"};
    sh("mkdir dir");
    for (int i = 0; i < 3; i++) {
        given[i] = (Given){data, SIZE - (gsize)i};
        sources[i] = (SprSource){&given[i], -1, give};
        files[i] = (SprFileWrite){in(names[i]), 0, &sources[i], -1, .large = true};
    }
    GError *error = NULL;
    cr_assert_not(spr_files_write(supervisor, files, 3, &patient, &error));
    expect_failure(error, SPR_E_INVALID_ARGUMENT, "is-directory", "the second file");
    cr_expect(files[0].errno_value == 0 && files[2].errno_value == 0);
    for (int i = 0; i < 3; i += 2) {
        g_autofree char *bytes = NULL;
        gsize size = 0;
        cr_assert(g_file_get_contents(files[i].path, &bytes, &size, NULL));
        cr_expect(size == given[i].size && memcmp(bytes, data, size) == 0, "%s", names[i]);
    }
}

Test(files, a_batch_tells_of_each_file_and_one_failure_harms_no_other)
{
    enum {
        COUNT = 1000
    };
    static SprFileWrite files[COUNT];
    static Given given[COUNT];
    static SprSource sources[COUNT];
    sh("mkdir dir");
    for (int i = 0; i < COUNT; i++) {
        given[i] = (Given){g_strdup_printf("file %d", i), 0};
        given[i].size = strlen(given[i].data);
        sources[i] = (SprSource){&given[i], -1, give};
        files[i] =
            (SprFileWrite){g_strdup_printf("%s/d%d/f%d", folder, i % 7, i), 0, &sources[i], -1};
    }
    files[500].path = in("dir");
    GError *error = NULL;
    cr_assert_not(spr_files_write(supervisor, files, COUNT, &patient, &error));
    expect_failure(error, SPR_E_INVALID_ARGUMENT, "is-directory", "file 500");
    for (int i = 0; i < COUNT; i++)
        cr_assert(files[i].errno_value == (i == 500 ? EISDIR : 0), "%d: %d", i,
                  files[i].errno_value);
    expect_text(files[499].path, "file 499");
    expect_text(files[999].path, "file 999");
    sh("[ $(find d* -type f | wc -l) = 999 ]");
}
