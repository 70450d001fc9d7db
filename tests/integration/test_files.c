/* Files byte for byte: sizes, names, owners and modes, what is refused, and what a transfer that
 * fails leaves behind. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MIB (1u << 20)

static void must_write(sprov_sandbox *sandbox, const char *path, const void *data, size_t size)
{
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_write(sandbox, path, data, size, 0, &error), SPROV_OK, "%s", error.message);
}

static EpBytes must_read(sprov_sandbox *sandbox, const char *path)
{
    sprov_error error = SPROV_INIT(sprov_error);
    EpBytes bytes = {0};
    cr_assert_eq(ep_read(sandbox, path, &bytes, NULL, &error), SPROV_OK, "%s", error.message);
    return bytes;
}

static void check_same(const EpBytes *bytes, const char *data, size_t size, const char *what)
{
    cr_assert_eq(bytes->size, size, "%s: %zu of %zu bytes", what, bytes->size, size);
    cr_assert(size == 0 || memcmp(bytes->data, data, size) == 0, "%s", what);
}

static void refused(sprov_status status, const sprov_error *error, sprov_status expected,
                    const char *reason, const char *path)
{
    cr_expect_eq(status, expected, "%s: %d %s", path, status, error->message);
    cr_expect_str_eq(error->reason, reason, "%s: %s", path, error->message);
    cr_expect(strstr(error->message, path), "%s: %s", path, error->message);
}

static void check_read_refused(sprov_sandbox *sandbox, const char *path, sprov_status expected,
                               const char *reason)
{
    sprov_error error = SPROV_INIT(sprov_error);
    EpBytes bytes = {0};
    sprov_status status = ep_read(sandbox, path, &bytes, NULL, &error);
    refused(status, &error, expected, reason, path);
    cr_expect_eq(bytes.size, 0);
}

static void check_write_refused(sprov_sandbox *sandbox, const char *path, sprov_status expected,
                                const char *reason)
{
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_write(sandbox, path, "x", 1, 0, &error);
    refused(status, &error, expected, reason, path);
}

/* ------------------------------------------------------------------ bytes and names */

Test(files, every_size_comes_back_equal)
{
    EpBox box = ep_shared();
    static const size_t sizes[] = {0, 1, 511, 512, 513, 10240, 65536, MIB + 1};
    char *data = ep_random(MIB + 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *path = ep_format("/tmp/size-%zu", sizes[i]);
        must_write(box.sandbox, path, data, sizes[i]);
        EpBytes bytes = must_read(box.sandbox, path);
        check_same(&bytes, data, sizes[i], path);
        cr_assert_eq(bytes.done, 1);
    }
    ep_leave(&box);
}

Test(files, a_source_of_unknown_size_is_taken_to_its_end)
{
    EpBox box = ep_shared();
    char *data = ep_random(3 * MIB);
    EpSource from = {.data = data, .size = 3 * MIB};
    sprov_source source = ep_source(&from, false);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    sprov_error error = SPROV_INIT(sprov_error);
    request.path = "/tmp/unknown/size";
    request.source = &source;
    cr_assert_eq(ep_api()->write_file(box.sandbox, &request, NULL, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_eq(from.done, 1);
    EpBytes bytes = must_read(box.sandbox, request.path);
    check_same(&bytes, data, 3 * MIB, request.path);
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /tmp/unknown; stat -c %%a /tmp/unknown/size"),
                     "size\n644");
    ep_leave(&box);
}

Test(files, a_name_may_be_anything)
{
    EpBox box = ep_shared();
    char long_name[201];
    memset(long_name, 'n', 200);
    long_name[200] = '\0';
    const char *names[] = {"a b", "\xc3\xa9",      "%41", "who?what", "#1",      "two\nlines",
                           "-rf", "'\"$(exit)`\\", "*",   "a&b=c+d",  long_name, "end\n"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = ep_format("/tmp/names/%s", names[i]);
        must_write(box.sandbox, path, names[i], strlen(names[i]));
        EpBytes bytes = must_read(box.sandbox, path);
        check_same(&bytes, names[i], strlen(names[i]), names[i]);
    }
    char *count = ep_ask(box.sandbox, "cd /tmp/names; for f in *; do printf x; done");
    cr_assert_eq(strlen(count), sizeof names / sizeof names[0], "%s", count);
    ep_leave(&box);
}

Test(files, a_relative_path_begins_in_the_working_directory)
{
    EpBox box = ep_shared();
    must_write(box.sandbox, "relative/deep/file", "here", 4);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /workspace/relative/deep/file"), "here");
    EpBytes bytes = must_read(box.sandbox, "./relative/../relative/deep/file");
    check_same(&bytes, "here", 4, "relative");
    ep_leave(&box);
}

/* ----------------------------------------------------------------- owners and modes */

Test(files, what_is_made_belongs_to_the_sandbox_s_user)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    must_write(box.sandbox, "/tmp/new/deep/file", "x", 1);
    cr_assert_str_eq(ep_ask(box.sandbox, "cd /tmp; stat -c '%%u:%%g %%a' new new/deep "
                                         "new/deep/file"),
                     "1000:1000 755\n1000:1000 755\n1000:1000 644");
    check_write_refused(box.sandbox, "/etc/never", SPROV_E_DENIED, "permission");
    check_write_refused(box.sandbox, "/etc/passwd", SPROV_E_DENIED, "permission");
    check_write_refused(box.sandbox, "/root/never/deep", SPROV_E_DENIED, "permission");
    check_read_refused(box.sandbox, "/etc/shadow", SPROV_E_DENIED, "permission");
    check_read_refused(box.sandbox, "/root/.bashrc", SPROV_E_DENIED, "permission");
    ep_destroy(&box);
}

Test(files, an_overwritten_file_keeps_mode_and_owner_unless_told)
{
    EpBox box = ep_shared();
    sprov_error error = SPROV_INIT(sprov_error);
    ep_ask(box.sandbox, "mkdir -p /tmp/m && cd /tmp/m && echo old >f && chmod 0751 f && "
                        "chown 1234:4321 f");
    must_write(box.sandbox, "/tmp/m/f", "new", 3);
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -c '%%a %%u:%%g' /tmp/m/f; cat /tmp/m/f"),
                     "751 1234:4321\nnew");
    cr_assert_eq(ep_write(box.sandbox, "/tmp/m/f", "x", 1, 0600, &error), SPROV_OK);
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -c '%%a %%u:%%g' /tmp/m/f"), "600 1234:4321");
    cr_assert_eq(ep_write(box.sandbox, "/tmp/m/g", "x", 1, 0755, &error), SPROV_OK);
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -c '%%a' /tmp/m/g"), "755");
    cr_assert_eq(ep_write(box.sandbox, "/tmp/m/g", "x", 1, 01000, &error),
                 SPROV_E_INVALID_ARGUMENT);
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /tmp/m"), "f\ng", "something was left behind");
    ep_leave(&box);
}

Test(files, the_result_of_a_read_tells_size_mode_and_time)
{
    EpBox box = ep_shared();
    sprov_read_result result = SPROV_INIT(sprov_read_result);
    EpBytes bytes = {0};
    ep_ask(box.sandbox, "printf 12345 >/tmp/told; chmod 640 /tmp/told; "
                        "touch -d '2020-01-02T03:04:05Z' /tmp/told");
    cr_assert_eq(ep_read(box.sandbox, "/tmp/told", &bytes, &result, NULL), SPROV_OK);
    cr_assert_eq(result.size, 5);
    cr_assert_eq(result.count, 5);
    cr_assert_eq(result.mode, 0640);
    cr_assert_eq(result.mtime_ns / 1000000000, 1577934245);
    ep_leave(&box);
}

Test(files, a_range_is_cut_out_of_the_file)
{
    EpBox box = ep_shared();
    char *data = ep_random(100000);
    must_write(box.sandbox, "/tmp/range", data, 100000);
    static const struct {
        uint64_t offset, most;
        size_t count;
    } ranges[] = {{0, 1, 1},
                  {99999, 0, 1},
                  {100000, 0, 0},
                  {200000, 10, 0},
                  {511, 1025, 1025},
                  {65535, 2, 2},
                  {50000, 1 << 20, 50000},
                  {UINT64_MAX, 0, 0},
                  {0, UINT64_MAX, 100000}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        EpBytes bytes = {0};
        sprov_sink sink = ep_sink(&bytes);
        sprov_read_request request = SPROV_INIT(sprov_read_request);
        sprov_read_result result = SPROV_INIT(sprov_read_result);
        request.path = "/tmp/range";
        request.offset = ranges[i].offset;
        request.max_bytes = ranges[i].most;
        request.sink = &sink;
        cr_assert_eq(ep_api()->read_file(box.sandbox, &request, NULL, &result, NULL), SPROV_OK);
        check_same(&bytes, data + (ranges[i].count ? ranges[i].offset : 0), ranges[i].count,
                   ep_format("range %zu", i));
        cr_assert_eq(result.count, ranges[i].count);
        cr_assert_eq(result.size, 100000);
    }
    ep_leave(&box);
}

/* ---------------------------------------------------------------- links and others */

Test(files, links_are_followed_to_what_they_name)
{
    EpBox box = ep_shared();
    ep_ask(box.sandbox, "mkdir -p /tmp/l/real && cd /tmp/l && ln -s real dir && ln -s real/f one "
                        "&& ln -s /tmp/l/one two && ln -s nowhere/yet dangling && ln -s loop loop");
    must_write(box.sandbox, "/tmp/l/two", "through", 7);
    cr_assert_str_eq(ep_ask(box.sandbox, "cd /tmp/l; cat real/f; [ -L one ] && [ -L two ]"),
                     "through");
    must_write(box.sandbox, "/tmp/l/dir/g", "in", 2);
    cr_assert_str_eq(ep_ask(box.sandbox, "cd /tmp/l; cat real/g; [ -L dir ]"), "in");
    must_write(box.sandbox, "/tmp/l/dangling", "made", 4);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /tmp/l/nowhere/yet"), "made");
    EpBytes bytes = must_read(box.sandbox, "/tmp/l/two");
    check_same(&bytes, "through", 7, "two");
    check_read_refused(box.sandbox, "/tmp/l/loop", SPROV_E_INVALID_ARGUMENT, "link-loop");
    check_write_refused(box.sandbox, "/tmp/l/loop", SPROV_E_INVALID_ARGUMENT, "link-loop");
    ep_leave(&box);
}

Test(files, what_is_no_regular_file_is_refused_and_left_alone)
{
    EpBox box = ep_shared();
    ep_ask(box.sandbox, "mkdir -p /tmp/s/dir && cd /tmp/s && echo x >dir/kept && mkfifo fifo && "
                        "ln -s dir link && echo y >file");
    static const struct {
        const char *path, *reason;
    } cases[] = {{"/tmp/s/dir", "is-directory"},    {"/tmp/s/dir/", "is-directory"},
                 {"/tmp/s/link", "is-directory"},   {"/", "is-directory"},
                 {"/tmp/s/dir/..", "is-directory"}, {"/tmp/s/fifo", "not-regular"},
                 {"/dev/null", "not-regular"},      {"/tmp/s/file/below", "not-directory"},
                 {"/tmp/s/file/", "not-directory"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_read_refused(box.sandbox, cases[i].path, SPROV_E_INVALID_ARGUMENT, cases[i].reason);
        check_write_refused(box.sandbox, cases[i].path, SPROV_E_INVALID_ARGUMENT, cases[i].reason);
    }
    cr_assert_str_eq(ep_ask(box.sandbox, "cd /tmp/s; cat dir/kept; [ -p fifo ] && cat file; ls"),
                     "x\ny\ndir\nfifo\nfile\nlink");
    check_read_refused(box.sandbox, "/tmp/s/none", SPROV_E_NOT_FOUND, "no-such-file");
    check_read_refused(box.sandbox, "/tmp/none/deep", SPROV_E_NOT_FOUND, "no-such-file");
    char *long_path = ep_format("/tmp/s/%0300d", 1);
    check_write_refused(box.sandbox, long_path, SPROV_E_INVALID_ARGUMENT, "name-too-long");
    ep_leave(&box);
}

/* ------------------------------------------------------------------ failed transfers */

typedef struct {
    EpSource from;
    int fd; /* fires in the middle */
} Firing;

static sprov_source_status give_and_fire(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Firing *f = ctx;
    sprov_source plain = ep_source(&f->from, true);
    if (f->from.used > f->from.size / 2)
        eventfd_write(f->fd, 1);
    return plain.read(&f->from, buffer, capacity, count);
}

static sprov_status write_broken(sprov_sandbox *sandbox, const char *path, bool size_known,
                                 bool cancel, sprov_error *error)
{
    Firing f = {.from = {.data = ep_random(8 * MIB), .size = 8 * MIB}};
    sprov_source source = ep_source(&f.from, size_known);
    sprov_cancel token = SPROV_INIT(sprov_cancel);
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    f.fd = token.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    request.path = path;
    request.source = &source;
    call.cancel = &token;
    if (cancel) {
        source.ctx = &f;
        source.read = give_and_fire;
        source.done = NULL;
    } else {
        f.from.give_up_at = MIB;
    }
    sprov_status status = ep_api()->write_file(sandbox, &request, &call, error);
    close(f.fd);
    return status;
}

Test(files, a_write_that_breaks_off_leaves_the_old_file_and_nothing_else)
{
    EpBox box = ep_shared();
    sprov_error error = SPROV_INIT(sprov_error);
    ep_ask(box.sandbox, "mkdir -p /tmp/b /dev/shm/b && echo old >/tmp/b/f && cp /tmp/b/f "
                        "/dev/shm/b/f");
    static const struct {
        const char *folder, *name;
        bool size_known, cancel;
    } cases[] = {{"/tmp/b", "f", true, false},
                 {"/tmp/b", "f", true, true},
                 {"/tmp/b", "f", false, true},
                 {"/tmp/b", "new", true, false},
                 {"/dev/shm/b", "f", true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *folder = cases[i].folder;
        char *path = ep_format("%s/%s", folder, cases[i].name);
        sprov_status status =
            write_broken(box.sandbox, path, cases[i].size_known, cases[i].cancel, &error);
        cr_assert_eq(status, cases[i].cancel ? SPROV_E_CANCELLED : SPROV_E_REFUSED,
                     "case %zu: %d %s", i, status, error.message);
        cr_assert_str_eq(ep_ask(box.sandbox, "cat %s/f; ls -A %s", folder, folder), "old\nf",
                         "case %zu", i);
    }
    ep_leave(&box);
}

Test(files, another_size_than_announced_is_refused_and_writes_nothing)
{
    EpBox box = ep_shared();
    for (int more = 0; more < 2; more++) {
        EpSource from = {.data = ep_random(100000), .size = 100000};
        sprov_source source = ep_source(&from, true);
        source.size = more ? 99999 : 100001;
        sprov_write_request request = SPROV_INIT(sprov_write_request);
        sprov_error error = SPROV_INIT(sprov_error);
        request.path = "/tmp/announced/file";
        request.source = &source;
        cr_assert_eq(ep_api()->write_file(box.sandbox, &request, NULL, &error),
                     SPROV_E_INVALID_ARGUMENT, "%s", error.message);
        cr_assert_str_eq(error.reason, "source-size");
        cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /tmp/announced"), "");
    }
    ep_leave(&box);
}

static sprov_flow stop_in_the_middle(void *ctx, const void *data, size_t size)
{
    size_t *seen = ctx;
    *seen += size;
    return *seen > MIB ? SPROV_FLOW_STOP : SPROV_FLOW_CONTINUE;
}

Test(files, a_reader_that_stops_is_told_so_and_the_next_read_is_whole)
{
    EpBox box = ep_shared();
    ep_ask(box.sandbox, "head -c %u /dev/zero >/tmp/zeros; cp /tmp/zeros /dev/shm/zeros", 4 * MIB);
    static const char *const paths[] = {"/tmp/zeros", "/dev/shm/zeros"};
    for (int i = 0; i < 2; i++) {
        size_t seen = 0;
        sprov_sink sink = SPROV_INIT(sprov_sink);
        sprov_read_request request = SPROV_INIT(sprov_read_request);
        sprov_error error = SPROV_INIT(sprov_error);
        sink.ctx = &seen;
        sink.write = stop_in_the_middle;
        request.path = paths[i];
        request.sink = &sink;
        cr_assert_eq(ep_api()->read_file(box.sandbox, &request, NULL, NULL, &error),
                     SPROV_E_REFUSED, "%s", error.message);
        cr_assert_leq(seen, 3 * MIB);
        cr_assert_eq(must_read(box.sandbox, paths[i]).size, 4 * MIB);
    }
    ep_leave(&box);
}

/* ------------------------------------------------------------------------ atomicity */

typedef struct {
    sprov_sandbox *sandbox;
    EpRun run;
} Watcher;

static void *watch_sizes(void *ctx)
{
    Watcher *w = ctx;
    w->run = ep_sh(w->sandbox, "cd /tmp/atomic; until [ -e stop ]; do s=$(stat -c %%s f); echo $s; "
                               "[ $s = 1000 ] || touch seen; done | sort -u");
    return NULL;
}

Test(files, a_reader_sees_the_old_or_the_new_file)
{
    EpBox box = ep_shared();
    Watcher w = {.sandbox = box.sandbox};
    pthread_t thread;
    char *data = ep_random(2 * MIB);
    must_write(box.sandbox, "/tmp/atomic/f", data, 1000);
    cr_assert_eq(pthread_create(&thread, NULL, watch_sizes, &w), 0);
    const char *seen = "no";
    for (int i = 0; i < 6 || (i < 1000 && strcmp(seen, "no") == 0); i++) {
        must_write(box.sandbox, "/tmp/atomic/f", data, i & 1 ? 1000 : 2 * MIB);
        seen = ep_ask(box.sandbox, "test -e /tmp/atomic/seen && echo yes || echo no");
    }
    must_write(box.sandbox, "/tmp/atomic/stop", "", 0);
    pthread_join(thread, NULL);
    cr_assert_eq(w.run.status, SPROV_OK, "%s", w.run.error.message);
    cr_assert_str_eq(w.run.out.data, "1000\n2097152\n", "%s", w.run.out.data);
    ep_leave(&box);
}

/* --------------------------------------------------------------------------- memory */

#ifdef SANITIZE_none
static long anonymous_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status) && kib < 0) {
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = atol(line + 8);
    }
    fclose(status);
    return kib;
}

typedef struct {
    const char *block;
    uint64_t moved;
    bool wrong;
    long most_kib;
} Stream;

static void note_memory(Stream *s)
{
    long kib = anonymous_kib();
    s->most_kib = kib > s->most_kib ? kib : s->most_kib;
}

static sprov_source_status give_stream(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Stream *s = ctx;
    size_t at = s->moved % MIB, n = MIB - at < capacity ? MIB - at : capacity;
    n = s->moved + n > 64 * MIB ? 64 * MIB - s->moved : n;
    memcpy(buffer, s->block + at, n);
    s->moved += n;
    *count = n;
    note_memory(s);
    return SPROV_SOURCE_OK;
}

static sprov_flow take_stream(void *ctx, const void *data, size_t size)
{
    Stream *s = ctx;
    for (size_t used = 0; used < size;) {
        size_t at = s->moved % MIB, n = MIB - at < size - used ? MIB - at : size - used;
        s->wrong |= memcmp((const char *)data + used, s->block + at, n) != 0;
        used += n;
        s->moved += n;
    }
    note_memory(s);
    return SPROV_FLOW_CONTINUE;
}

static void check_stream(sprov_sandbox *sandbox, const char *block, bool size_known)
{
    Stream in = {.block = block}, out = {.block = block};
    long before = anonymous_kib();
    sprov_source source = SPROV_INIT(sprov_source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    sprov_sink sink = SPROV_INIT(sprov_sink);
    source.fd = -1;
    source.size = size_known ? 64 * MIB : UINT64_MAX;
    source.ctx = &in;
    source.read = give_stream;
    write.path = read.path = "/tmp/large";
    write.source = &source;
    sink.ctx = &out;
    sink.write = take_stream;
    read.sink = &sink;
    cr_assert_eq(ep_api()->write_file(sandbox, &write, NULL, NULL), SPROV_OK);
    cr_assert_eq(ep_api()->read_file(sandbox, &read, NULL, NULL, NULL), SPROV_OK);
    cr_assert_eq(out.moved, 64 * MIB);
    cr_assert_not(out.wrong);
    cr_assert_leq(in.most_kib - before, 4096, "writing took %ld KiB", in.most_kib - before);
    cr_assert_leq(out.most_kib - before, 4096, "reading took %ld KiB", out.most_kib - before);
    ep_ask(sandbox, "rm /tmp/large");
}

/* Of known size by the engine's archive, else through the supervisor, where there is one. */
Test(files, sixty_four_mebibytes_pass_through_in_four_of_memory)
{
    EpBox box = ep_shared();
    const char *block = ep_random(MIB);
    must_write(box.sandbox, "/tmp/warm", "up", 2);
    check_stream(box.sandbox, block, true);
    check_stream(box.sandbox, block, false);
    ep_leave(&box);
}
#endif
