/* Files through the supervisor: what is listed and moved, as whom, and who waits for whom. */
#include "files_fixture.h"

#include "supervisor/client/fileitems.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

FILES_SUITE(filetree);

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

Test(filetree, a_directory_is_listed_with_or_without_those_below)
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

Test(filetree, stat_follows_a_link_unless_told_not_to)
{
    sh("echo x >f && ln -s f l");
    g_autofree char *followed = g_strdup_printf("1 644 %s", in("l"));
    g_autofree char *itself = g_strdup_printf("3 777 %s > f", in("l"));
    cr_expect_str_eq(stat_of(in("l"), 0), followed);
    cr_expect_str_eq(stat_of(in("l"), SPR_FILE_NO_FOLLOW), itself);
}

static bool note_time(void *ctx, const SprFileEntry *entry)
{
    *(gint64 *)ctx = entry->mtime_ns;
    return true;
}

/* Nanoseconds in 64 bits end in 2262, file systems later. */
Test(filetree, a_time_that_is_too_far_away_stays_on_its_side)
{
    sh("touch -d @10000000000 late && touch -d @-10000000000 early");
    const char *const names[] = {"late", "early"};
    for (int i = 0; i < 2; i++) {
        gint64 time = 0;
        struct stat st;
        cr_assert_eq(stat(in(names[i]), &st), 0);
        cr_assert(spr_files_stat(supervisor, in(names[i]), 0, note_time, &time, &patient, NULL));
        gint64 wanted = CLAMP(st.st_mtim.tv_sec, -9000000000, 9000000000);
        cr_expect_eq(time, wanted * G_GINT64_CONSTANT(1000000000), "%s: %" G_GINT64_FORMAT,
                     names[i], time);
    }
}

Test(filetree, directories_are_made_removed_and_moved)
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

Test(filetree, another_user_may_what_its_ids_may_and_no_more)
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

Test(filetree, a_put_as_another_user_belongs_to_it_and_the_next_request_is_our_own_again)
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
Test(filetree, an_end_that_comes_first_is_no_reason_to_spin)
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

Test(filetree, slow_readers_hold_back_nobody_else)
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

Test(filetree, a_hanging_file_system_holds_its_request_and_no_other)
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
