/* Files through the supervisor: what is read, written, listed and moved, as whom, and what a
 * request that breaks off leaves behind. */
#include "fixture.h"

#include "base/text.h"
#include "supervisor/client/fileitems.h"
#include "supervisor/client/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;
static char folder[] = "/tmp/sprov-files-XXXXXX";
static SprWait patient;

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    chmod(folder, 0755);
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    patient = spr_wait_for(60000);
}

static void tear_down(void)
{
    g_autofree char *command = g_strdup_printf("rm -rf %s", folder);
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
    cr_assert(system(command) == 0);
}

TestSuite(files, .init = set_up, .fini = tear_down, .timeout = 120);

static char *in(const char *name)
{
    return g_build_filename(folder, name, NULL); /* the test's process ends soon */
}

static void sh(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *command = g_strdup_printf("cd %s && %s", folder, text);
    cr_assert(system(command) == 0, "%s", text);
}

/* ------------------------------------------------------------------- sources and sinks */

typedef struct {
    const char *data;
    gsize size, used, give_up_at;
    void (*between)(void *ctx);
    void *ctx;
} Given;

static SprSourceStatus give(void *ctx, void *buffer, gsize room, gsize *ret_count)
{
    Given *given = ctx;
    if (given->between)
        given->between(given->ctx);
    if (given->give_up_at && given->used >= given->give_up_at)
        return SPR_SOURCE_GIVE_UP;
    gsize n = MIN(MIN(room, 30000), given->size - given->used);
    memcpy(buffer, given->data + given->used, n);
    given->used += n;
    *ret_count = n;
    return SPR_SOURCE_OK;
}

static bool write_bytes(const char *path, const void *data, gsize size, guint mode, GError **error)
{
    Given given = {data, size};
    SprSource source = {&given, -1, give};
    SprFileWrite file = {path, mode, &source, -1, .large = size > 64 * 1024};
    bool ok = spr_files_write(supervisor, &file, 1, &patient, error);
    cr_assert(ok == (file.errno_value == 0));
    return ok;
}

static void must_write(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    cr_assert(write_bytes(path, text, strlen(text), 0, &error), "%s", error->message);
}

static SprFlow collect(void *ctx, const void *data, gsize size)
{
    g_string_append_len(ctx, data, (gssize)size);
    return SPR_FLOW_CONTINUE;
}

static GString *read_range(const char *path, guint64 offset, guint64 most, SprFileEntry *entry,
                           GError **error)
{
    GString *bytes = g_string_new(NULL);
    SprFileRange range = {path, offset, most};
    SprSink sink = {bytes, collect};
    SprFileEntry unused;
    if (!spr_files_read(supervisor, &range, &sink, &patient, entry ? entry : &unused, error))
        g_string_truncate(bytes, 0);
    return bytes;
}

static void expect_text(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    GString *bytes = read_range(path, 0, 0, NULL, &error);
    cr_assert(!error, "%s", error->message);
    cr_expect_str_eq(bytes->str, text);
}

static void expect_failure(GError *error, SprErrorCode code, const char *reason, const char *what)
{
    cr_assert(error, "%s went well", what);
    cr_expect(spr_error_is(error, code, reason), "%s: %d %s", what, error->code, error->message);
    g_error_free(error);
}

static char *noise(gsize size)
{
    char *bytes = g_malloc(size);
    guint32 state = 12345;
    for (gsize i = 0; i < size; i++) {
        state = state * 1103515245 + 12345;
        bytes[i] = (char)(state >> 16);
    }
    return bytes;
}

/* ----------------------------------------------------------------------- read and write */

Test(files, every_size_comes_back_equal)
{
    static const gsize sizes[] = {0, 1, 1024, 65535, 65536, 65537, 131072, 3 << 20};
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

static bool is_empty(void)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    return dir && !g_dir_read_name(dir);
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

/* -------------------------------------------------------------------- stat, list and others */

static bool note_entry(void *ctx, const SprFileEntry *entry)
{
    GPtrArray *list = ctx;
    g_ptr_array_add(list, g_strdup_printf("%d %o %s%s%s", entry->type, entry->mode, entry->path,
                                          *entry->target ? " > " : "", entry->target));
    return true;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *list(const char *path, guint flags, GError **error)
{
    GPtrArray *list = g_ptr_array_new();
    if (!spr_files_list(supervisor, path, flags, note_entry, list, &patient, error))
        return NULL;
    g_ptr_array_sort(list, compare);
    g_ptr_array_add(list, NULL);
    return g_strjoinv("\n", (char **)list->pdata);
}

Test(files, a_directory_is_listed_with_or_without_those_below)
{
    sh("mkdir -p d/sub/deep && echo x >d/f && chmod 640 d/f && ln -s /nowhere d/l && mkfifo -m 600 "
       "d/sub/p && echo y >d/sub/deep/g");
    g_autoptr(GError) error = NULL;
    cr_expect_str_eq(list(in("d"), 0, &error), "1 640 f\n2 755 sub\n3 777 l > /nowhere");
    cr_expect_str_eq(list(in("d"), SPR_FILE_RECURSIVE, &error),
                     "1 640 f\n1 644 sub/deep/g\n2 755 sub\n2 755 sub/deep\n3 777 l > /nowhere\n"
                     "5 600 sub/p");
    GError *refused = NULL;
    list(in("d/f"), 0, &refused);
    expect_failure(g_steal_pointer(&refused), SPR_E_INVALID_ARGUMENT, "not-directory", "a file");
    list(in("none"), 0, &refused);
    expect_failure(refused, SPR_E_NOT_FOUND, "no-such-file", "nothing");
}

static char *stat_of(const char *path, guint flags)
{
    GPtrArray *list = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    cr_assert(spr_files_stat(supervisor, path, flags, note_entry, list, &patient, &error), "%s",
              error->message);
    cr_assert(list->len == 1);
    return list->pdata[0];
}

Test(files, stat_follows_a_link_unless_told_not_to)
{
    sh("echo x >f && ln -s f l");
    g_autofree char *followed = g_strdup_printf("1 644 %s", in("l"));
    g_autofree char *itself = g_strdup_printf("3 777 %s > f", in("l"));
    cr_expect_str_eq(stat_of(in("l"), 0), followed);
    cr_expect_str_eq(stat_of(in("l"), SPR_FILE_NO_FOLLOW), itself);
}

Test(files, directories_are_made_removed_and_moved)
{
    GError *error = NULL;
    cr_assert(spr_files_make_directory(supervisor, in("a"), 0, 0, &patient, NULL));
    cr_assert(spr_files_make_directory(supervisor, in("x/y/z"), 0700, SPR_FILE_RECURSIVE, &patient,
                                       NULL));
    cr_assert(
        spr_files_make_directory(supervisor, in("x/y/"), 0711, SPR_FILE_RECURSIVE, &patient, NULL));
    sh("[ \"$(stat -c %%a a x x/y x/y/z | tr '\\n' ' ')\" = '755 755 755 700 ' ]");
    spr_files_make_directory(supervisor, in("a"), 0, 0, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_EXISTS, "exists", "a");
    spr_files_make_directory(supervisor, in("n/m"), 0, 0, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_NOT_FOUND, "no-such-file", "n/m");

    sh("echo x >x/y/z/f && ln -s /tmp x/link && chmod 500 x/y/z");
    spr_files_remove(supervisor, in("x"), 0, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_CONFLICT, "not-empty", "x");
    cr_assert(spr_files_rename(supervisor, in("x"), in("moved"), &patient, NULL));
    spr_files_rename(supervisor, in("a"), in("moved"), &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_CONFLICT, "not-empty", "moved");
    cr_assert(spr_files_remove(supervisor, in("moved"), SPR_FILE_RECURSIVE, &patient, &error), "%s",
              error ? error->message : "");
    cr_assert(spr_files_remove(supervisor, in("a"), 0, &patient, NULL));
    cr_assert(is_empty());
    spr_files_remove(supervisor, "/", SPR_FILE_RECURSIVE, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_CONFLICT, "mount-point", "/");
    spr_files_remove(supervisor, "/proc", SPR_FILE_RECURSIVE, &patient, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_CONFLICT, "mount-point", "/proc");
}

/* ---------------------------------------------------------------------------------- users */

Test(files, another_user_may_what_its_ids_may_and_no_more)
{
    sh("mkdir -m 700 closed && mkdir open && chown 1000:1000 open && echo x >open/root && chmod "
       "644 "
       "open/root");
    Sandbox other = sandbox_serve_as(1000, 0);
    SprSupervisor *outer = supervisor;
    pid_t relay;
    supervisor = sandbox_connect_through_relay(&other, &relay);
    GError *error = NULL;
    write_bytes(in("closed/f"), "x", 1, 0, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_DENIED, "permission", "closed/f");
    write_bytes(in("never/f"), "x", 1, 0, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_DENIED, "permission", "never/f");
    write_bytes(in("open/root"), "x", 1, 0, &error);
    expect_failure(g_steal_pointer(&error), SPR_E_DENIED, "permission", "another's file");
    must_write(in("open/deep/f"), "mine");
    sh("chmod 666 open/root");
    must_write(in("open/root"), "kept owner");
    sh("[ \"$(stat -c '%%u %%a' open/root open/deep open/deep/f | tr '\\n' ' ')\" = "
       "'0 666 1000 755 1000 644 ' ] && [ \"$(cat open/root)\" = 'kept owner' ]");
    spr_supervisor_unref(supervisor);
    supervisor = outer;
    sandbox_stop(&other);
}

static SprSourceStatus no_more(void *ctx, guint8 *to, gsize room, gsize *ret_count)
{
    spr_items_end(ctx);
    return SPR_SOURCE_OK;
}

Test(files, a_put_as_another_user_belongs_to_it_and_the_next_request_is_our_own_again)
{
    sh("chmod 777 .");
    for (int i = 0; i < 4; i++) {
        g_autoptr(GError) error = NULL;
        SprItems items;
        spr_items_init(&items, no_more, &items);
        spr_file_put_item(items.pending, SPR_FILE_MAKE_DIRECTORY, 0755, SPR_FILE_NO_TIME, "d", "");
        cr_assert(spr_files_put(supervisor, in("as-nobody"), "65534:65534", &items.source, &patient,
                                &error),
                  "%s", error->message);
        spr_items_clear(&items);
        must_write(in("own"), "x");
    }
    sh("[ \"$(stat -c %%u:%%g as-nobody as-nobody/d own | tr '\\n' ' ')\" = '65534:65534 "
       "65534:65534 "
       "0:0 ' ]");
}

/* ----------------------------------------------------------------------------------- load */

static void *run_true(void *ctx)
{
    gint64 *worst = ctx;
    for (int i = 0; i < 30; i++) {
        gint64 start = g_get_monotonic_time();
        g_auto(Ran) ran = run_shell(supervisor, "exit 0");
        cr_assert(ran.ok);
        *worst = MAX(*worst, g_get_monotonic_time() - start);
    }
    return NULL;
}

static SprFlow sleepy(void *ctx, const void *data, gsize size)
{
    g_usleep(20000);
    return SPR_FLOW_CONTINUE;
}

/* The end of the request is there before its bytes are looked at. */
Test(files, an_end_that_comes_first_is_no_reason_to_spin)
{
    struct timespec before, after;
    g_autoptr(SprSupervisor) own = sandbox_dial_own(supervisor);
    sh("echo short > f");
    sandbox_lag_us = 5000;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    for (int i = 0; i < 50; i++) {
        g_autoptr(GString) bytes = g_string_new(NULL);
        SprFileRange range = {in("f"), 0, 0};
        SprSink sink = {bytes, collect};
        SprFileEntry entry;
        cr_assert(spr_files_read(own, &range, &sink, &patient, &entry, NULL));
        cr_assert_str_eq(bytes->str, "short\n");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    gint64 ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    cr_expect_lt(ms, 500, "%" G_GINT64_FORMAT " ms of a processor", ms);
}

static void *read_slowly(void *ctx)
{
    SprFileRange range = {ctx, 0, 0};
    SprSink sink = {NULL, sleepy};
    SprFileEntry entry;
    cr_assert(spr_files_read(supervisor, &range, &sink, &patient, &entry, NULL));
    return NULL;
}

Test(files, slow_readers_hold_back_nobody_else)
{
    gint64 worst = 0;
    GThread *slow[4];
    sh("truncate -s 8M f");
    for (gsize i = 0; i < G_N_ELEMENTS(slow); i++)
        slow[i] = g_thread_new("slow", read_slowly, in("f"));
    GThread *commands = g_thread_new("commands", run_true, &worst);
    g_thread_join(commands);
    for (gsize i = 0; i < G_N_ELEMENTS(slow); i++)
        g_thread_join(slow[i]);
    cr_expect(worst < 2000000, "a command took %" G_GINT64_FORMAT " us", worst);
}

/* A file system whose server never answers: every look at it waits. */
static int mount_hanging(const char *path)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    g_autofree char *options = g_strdup_printf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (fd < 0 || mount("hangs", path, "fuse", 0, options) < 0)
        cr_skip_test("this needs fuse");
    return fd;
}

static gint64 cancel_at_us;

static int is_cancelled(void *ctx)
{
    return g_get_monotonic_time() >= cancel_at_us;
}

Test(files, a_hanging_file_system_holds_its_request_and_no_other)
{
    g_autoptr(GError) error = NULL;
    gint64 worst = 0;
    sh("mkdir hung");
    cr_assert(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    int fuse = mount_hanging(in("hung"));
    Sandbox inner = sandbox_serve();
    SprSupervisor *outer = supervisor;
    supervisor = sandbox_connect(&inner);

    cancel_at_us = g_get_monotonic_time() + 1000000;
    patient.is_cancelled = is_cancelled;
    gint64 start = g_get_monotonic_time();
    cr_assert_not(write_bytes(in("hung/f"), "x", 1, 0, &error));
    cr_expect(spr_error_is(error, SPR_E_CANCELLED, NULL), "%s", error->message);
    cr_expect(g_get_monotonic_time() - start < 10000000);
    patient.is_cancelled = NULL;

    GThread *commands = g_thread_new("commands", run_true, &worst);
    must_write(in("beside"), "x");
    expect_text(in("beside"), "x");
    g_thread_join(commands);
    cr_expect(worst < 2000000, "a command took %" G_GINT64_FORMAT " us", worst);
    close(fuse);
    umount2(in("hung"), MNT_DETACH);
    spr_supervisor_unref(supervisor);
    supervisor = outer;
    sandbox_stop(&inner);
}
