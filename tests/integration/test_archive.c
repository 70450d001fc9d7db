/* The extensions sprov.files/1 and sprov.archive/1: what is there, moving it about, many files at
 * once, and archives both ways, hostile ones too. */
#include "ep.h"

#include <criterion/criterion.h>
#include <ext/archive.h>
#include <ext/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const sprov_ext_files *files;
static const sprov_ext_archive *archive;

static void set_up(void)
{
    files = ep_extension(SPROV_EXT_FILES);
    archive = ep_extension(SPROV_EXT_ARCHIVE);
}

TestSuite(archive, .init = set_up);

static sprov_error failure;

/* A call that has to succeed. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        failure = (sprov_error)SPROV_INIT(sprov_error);                                            \
        sprov_status must_status = (call);                                                         \
        cr_assert_eq(must_status, SPROV_OK, "%s: %d %s", #call, must_status, failure.message);     \
    } while (0)

#define FAILS(call, expected, why)                                                                 \
    do {                                                                                           \
        failure = (sprov_error)SPROV_INIT(sprov_error);                                            \
        sprov_status fails_status = (call);                                                        \
        cr_expect_eq(fails_status, expected, "%s: %d %s", #call, fails_status, failure.message);   \
        cr_expect_str_eq(failure.reason, why, "%s: %s", #call, failure.message);                   \
    } while (0)

/* Lines, as many as there are objects, in their order. */
static void take_line(void *ctx, const char *text, size_t size)
{
    EpBytes *lines = ctx;
    sprov_sink sink = ep_sink(lines);
    sink.write(lines, text, size);
    sink.write(lines, "\n", 1);
}

/* ------------------------------------------------------------------------------- files/1 */

Test(archive, stat_tells_of_files_directories_links_and_others)
{
    EpBox box = ep_shared();
    EpBytes told = {0};
    ep_ask(box.sandbox, "mkdir -p /tmp/st/d && cd /tmp/st && printf 12345 >f && chown 7:8 f && "
                        "chmod 640 f && touch -d '2020-01-02T03:04:05.678Z' f && ln -s f l && "
                        "mkfifo p");
    MUST(files->stat(box.sandbox, "/tmp/st/f", 0, NULL, take_line, &told, &failure));
    MUST(files->stat(box.sandbox, "/tmp/st/l", 0, NULL, take_line, &told, &failure));
    cr_expect_str_eq(told.data,
                     "{\"path\":\"/tmp/st/f\",\"type\":\"file\",\"size\":5,\"mode\":416,\"uid\":7,"
                     "\"gid\":8,\"mtime\":\"2020-01-02T03:04:05.678000000Z\"}\n"
                     "{\"path\":\"/tmp/st/l\",\"type\":\"file\",\"size\":5,\"mode\":416,\"uid\":7,"
                     "\"gid\":8,\"mtime\":\"2020-01-02T03:04:05.678000000Z\"}\n");
    EpBytes link = {0}, other = {0}, none = {0};
    MUST(files->stat(box.sandbox, "/tmp/st/l", SPROV_FILES_NO_FOLLOW, NULL, take_line, &link,
                     &failure));
    cr_expect(strstr(link.data, "\"type\":\"link\"") && strstr(link.data, "\"target\":\"f\""), "%s",
              link.data);
    MUST(files->stat(box.sandbox, "/tmp/st/p", 0, NULL, take_line, &other, &failure));
    cr_expect(strstr(other.data, "\"type\":\"other\""), "%s", other.data);
    FAILS(files->stat(box.sandbox, "/tmp/st/no", 0, NULL, take_line, &none, &failure),
          SPROV_E_NOT_FOUND, "no-such-file");
    MUST(files->stat(box.sandbox, "/tmp/st/no", SPROV_FILES_MISSING_OK, NULL, take_line, &none,
                     &failure));
    cr_expect_eq(none.size, 0);
    FAILS(files->stat(box.sandbox, "/tmp", SPROV_FILES_RECURSIVE, NULL, take_line, &none, &failure),
          SPROV_E_INVALID_ARGUMENT, "unknown-flag");
    ep_leave(&box);
}

static int count_lines(const EpBytes *bytes, const char *with)
{
    int count = 0;
    for (const char *at = bytes->data; at && *at; at = strchr(at, '\n') + 1) {
        const char *found = strstr(at, with);
        count += found && found < strchr(at, '\n');
    }
    return count;
}

Test(archive, a_directory_is_listed_and_a_tree_as_well)
{
    EpBox box = ep_shared();
    EpBytes flat = {0}, deep = {0}, none = {0};
    ep_ask(box.sandbox, "mkdir -p /tmp/ls/a/b && cd /tmp/ls && touch x \"$(printf 'n\\377l')\" a/y "
                        "a/b/z && ln -s /nowhere a/link");
    MUST(files->list(box.sandbox, "/tmp/ls", 0, NULL, take_line, &flat, &failure));
    cr_expect_eq(count_lines(&flat, "{"), 3, "%s", flat.data);
    cr_expect_eq(count_lines(&flat, "\"pathBase64\":\"bv9s\""), 1, "%s", flat.data);
    MUST(files->list(box.sandbox, "/tmp/ls/", SPROV_FILES_RECURSIVE, NULL, take_line, &deep,
                     &failure));
    cr_expect_eq(count_lines(&deep, "{"), 7, "%s", deep.data);
    cr_expect_eq(count_lines(&deep, "\"path\":\"a/b/z\""), 1, "%s", deep.data);
    cr_expect(strstr(deep.data, "\"path\":\"a/b\"") < strstr(deep.data, "\"path\":\"a/b/z\""));
    FAILS(files->list(box.sandbox, "/tmp/ls/x", 0, NULL, take_line, &none, &failure),
          SPROV_E_INVALID_ARGUMENT, "not-directory");
    ep_leave(&box);
}

Test(archive, directories_are_made_removed_and_renamed)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    ep_start(box.sandbox);
    sprov_sandbox *s = box.sandbox;
    MUST(files->make_directory(s, "/tmp/m", 0, 0, NULL, &failure));
    MUST(files->make_directory(s, "/tmp/m/a/b", 0770, SPROV_FILES_RECURSIVE, NULL, &failure));
    cr_assert_str_eq(ep_ask(s, "stat -c '%%u %%a' /tmp/m /tmp/m/a /tmp/m/a/b"),
                     "1000 755\n1000 755\n1000 770");
    FAILS(files->make_directory(s, "/tmp/m", 0, 0, NULL, &failure), SPROV_E_EXISTS, "exists");
    FAILS(files->make_directory(s, "/etc/never", 0, 0, NULL, &failure), SPROV_E_DENIED,
          "permission");
    FAILS(files->make_directory(s, "/tmp/n", 01777, 0, NULL, &failure), SPROV_E_INVALID_ARGUMENT,
          "bad-mode");
    ep_ask(s, "cd /tmp/m && echo x >a/b/f && ln -s /etc link && echo y >g");
    MUST(files->rename(s, "/tmp/m/g", "/tmp/m/a/g", NULL, &failure));
    FAILS(files->rename(s, "/tmp/m/g", "/tmp/m/h", NULL, &failure), SPROV_E_NOT_FOUND,
          "no-such-file");
    FAILS(files->rename(s, "/tmp/m/a/g", "/dev/shm/g", NULL, &failure), SPROV_E_UNSUPPORTED,
          "other-filesystem");
    FAILS(files->remove(s, "/tmp/m/a", 0, NULL, &failure), SPROV_E_CONFLICT, "not-empty");
    FAILS(files->remove(s, "/etc/passwd", 0, NULL, &failure), SPROV_E_DENIED, "permission");
    FAILS(files->remove(s, "/", SPROV_FILES_RECURSIVE, NULL, &failure), SPROV_E_CONFLICT,
          "mount-point");
    MUST(files->remove(s, "/tmp/m", SPROV_FILES_RECURSIVE, NULL, &failure));
    FAILS(files->remove(s, "/tmp/m", 0, NULL, &failure), SPROV_E_NOT_FOUND, "no-such-file");
    MUST(files->remove(s, "/tmp/m", SPROV_FILES_MISSING_OK, NULL, &failure));
    cr_assert_str_eq(ep_ask(s, "ls -d /etc/passwd; ls -A /dev/shm"), "/etc/passwd");
    ep_destroy(&box);
}

Test(archive, a_tree_with_a_volume_in_it_keeps_what_is_in_the_volume)
{
    EpBox box = ep_box("\"mounts\":[{\"type\":\"volume\",\"target\":\"/data/tree/volume\"}]");
    ep_ask(box.sandbox, "echo kept >/data/tree/volume/f; echo x >/data/tree/g");
    FAILS(files->remove(box.sandbox, "/data", SPROV_FILES_RECURSIVE, NULL, &failure),
          SPROV_E_CONFLICT, "mount-point");
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /data/tree/volume/f"), "kept");
    ep_destroy(&box);
}

/* --------------------------------------------------------------------------- write_files */

typedef struct {
    char text[32], path[64];
    EpSource from;
    sprov_source source;
    sprov_write_request request;
    sprov_file_result result;
} One;

static void fill(One *one, int i, const char *folder)
{
    snprintf(one->text, sizeof one->text, "this is file %d\n", i);
    snprintf(one->path, sizeof one->path, "%s/d%d/f%d", folder, i % 10, i);
    one->from = (EpSource){.data = one->text, .size = strlen(one->text)};
    one->source = ep_source(&one->from, i % 2);
    one->request = (sprov_write_request)SPROV_INIT(sprov_write_request);
    one->result = (sprov_file_result)SPROV_INIT(sprov_file_result);
    one->request.path = one->path;
    one->request.source = &one->source;
}

Test(archive, a_thousand_files_go_in_one_transfer_and_each_has_a_result)
{
    enum {
        COUNT = 1000
    };
    EpBox box = ep_shared();
    One *all = calloc(COUNT, sizeof *all);
    const sprov_write_request *requests[COUNT];
    sprov_file_result *results[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fill(&all[i], i, "/tmp/many");
        requests[i] = &all[i].request;
        results[i] = &all[i].result;
    }
    MUST(archive->write_files(box.sandbox, requests, COUNT, results, NULL, &failure));
    for (int i = 0; i < COUNT; i++)
        cr_assert(results[i]->status == SPROV_OK && all[i].from.done == 1, "%d", i);
    cr_assert_str_eq(ep_ask(box.sandbox, "cd /tmp/many; cat d*/f* | sort -u | wc -l; cat d7/f77"),
                     "1000\nthis is file 77");

    /* The sixth can't be: the others are there. */
    ep_ask(box.sandbox, "rm -r /tmp/many; mkdir -p /tmp/many/d5/f5");
    for (int i = 0; i < 10; i++)
        fill(&all[i], i, "/tmp/many");
    FAILS(archive->write_files(box.sandbox, requests, 10, results, NULL, &failure),
          SPROV_E_INVALID_ARGUMENT, "is-directory");
    cr_expect(strstr(failure.message, "/tmp/many/d5/f5"), "%s", failure.message);
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(results[i]->status, i == 5 ? SPROV_E_INVALID_ARGUMENT : SPROV_OK);
        cr_expect_str_eq(results[i]->reason, i == 5 ? "is-directory" : "");
    }
    cr_assert_str_eq(ep_ask(box.sandbox, "find /tmp/many -type f | wc -l"), "9");

    /* A source that gives up ends it, what follows is not reached; a wrong request begins nothing.
     */
    ep_ask(box.sandbox, "rm -r /tmp/many");
    for (int i = 0; i < 10; i++)
        fill(&all[i], i, "/tmp/many");
    all[3].from.give_up_at = 1;
    FAILS(archive->write_files(box.sandbox, requests, 10, results, NULL, &failure), SPROV_E_REFUSED,
          "source-gave-up");
    cr_expect_eq(results[3]->status, SPROV_E_REFUSED);
    cr_expect_eq(results[9]->status, SPROV_E_CANCELLED);
    cr_expect_eq(all[9].from.done, 1);
    ep_ask(box.sandbox, "! [ -e /tmp/many/d9/f9 ] && rm -rf /tmp/many");
    all[9].request.mode = 01777;
    FAILS(archive->write_files(box.sandbox, requests, 10, results, NULL, &failure),
          SPROV_E_INVALID_ARGUMENT, "bad-mode");
    ep_ask(box.sandbox, "! [ -e /tmp/many ]");
    MUST(archive->write_files(box.sandbox, NULL, 0, NULL, NULL, &failure));
    ep_leave(&box);
}

/* -------------------------------------------------------------------------------- archives */

/* One header of ustar and the bytes behind it. */
static void add_entry(EpBytes *tar, const char *name, char type, const char *link, unsigned mode,
                      const char *text)
{
    char block[512] = {0};
    size_t size = type == '0' ? strlen(text) : 0;
    snprintf(block, 100, "%s", name);
    snprintf(block + 100, 8, "%07o", mode);
    snprintf(block + 108, 8, "%07o", 4321u);
    snprintf(block + 116, 8, "%07o", 4321u);
    snprintf(block + 124, 12, "%011o", (unsigned)size);
    snprintf(block + 136, 12, "%011o", 1577934245u);
    block[156] = type;
    snprintf(block + 157, 100, "%s", link ? link : "");
    memcpy(block + 257, "ustar\00000", 8);
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
    sprov_sink sink = ep_sink(tar);
    sink.write(tar, block, sizeof block);
    if (size > 0) {
        char data[512] = {0};
        memcpy(data, text, size);
        sink.write(tar, data, sizeof data);
    }
}

static sprov_status put(sprov_sandbox *sandbox, const EpBytes *tar, const char *directory,
                        const char *user)
{
    static const char end[1024];
    EpBytes whole = {0};
    sprov_sink sink = ep_sink(&whole);
    if (tar->size > 0)
        sink.write(&whole, tar->data, tar->size);
    sink.write(&whole, end, sizeof end);
    EpSource from = {.data = whole.data, .size = whole.size};
    sprov_source source = ep_source(&from, true);
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    request.directory = directory;
    request.user = user;
    request.tar = &source;
    failure = (sprov_error)SPROV_INIT(sprov_error);
    sprov_status status = archive->put(sandbox, &request, NULL, &failure);
    cr_assert_eq(from.done, 1);
    return status;
}

Test(archive, what_is_in_an_archive_is_put_with_modes_times_and_links)
{
    EpBox box = ep_shared();
    EpBytes tar = {0};
    add_entry(&tar, "./", '5', NULL, 0700, "");
    add_entry(&tar, "./closed/", '5', NULL, 0555, "");
    add_entry(&tar, "./closed/run", '0', NULL, 04755, "#!/bin/sh\necho ran\n");
    add_entry(&tar, "sub/no/entry", '0', NULL, 0600, "deep");
    add_entry(&tar, "closed/link", '2', "../sub/no/entry", 0777, "");
    add_entry(&tar, "hard", '1', "closed/run", 0755, "");
    add_entry(&tar, "over", '0', NULL, 0644, "new");
    ep_ask(box.sandbox, "rm -rf /tmp/put; mkdir -p /tmp/put; cd /tmp/put; echo kept >other; ln -s "
                        "other over");
    MUST(put(box.sandbox, &tar, "/tmp/put", NULL));
    cr_assert_str_eq(
        ep_ask(box.sandbox,
               "cd /tmp/put; ./closed/run; cat closed/link other over; [ -L over ] || echo file; "
               "stat -c '%%a %%u %%Y' . closed closed/run sub/no/entry | cut -c 1-20; [ closed/run "
               "-ef hard ] "
               "&& ls -A | wc -l"),
        ep_format("ran\ndeepkept\nnewfile\n755 0 %s\n555 0 1577934245\n755 0 1577934245\n600 0 "
                  "1577934245\n5",
                  ep_ask(box.sandbox, "stat -c %%Y /tmp/put")));
    ep_leave(&box);
}

Test(archive, nothing_leaves_the_directory)
{
    EpBox box = ep_shared();
    ep_ask(box.sandbox, "rm -rf /tmp/box /tmp/out; mkdir -p /tmp/box/in /tmp/out; ln -s /tmp/out "
                        "/tmp/box/in/door");
    static const struct {
        const char *name;
        char type;
        const char *link, *reason;
    } hostile[] = {
        {"../out/a", '0', NULL, "outside"},      {"/tmp/out/a", '0', NULL, "outside"},
        {"x/../../out/a", '0', NULL, "outside"}, {"door/a", '0', NULL, "not-directory"},
        {"door", '5', NULL, "not-directory"},    {"l", '2', "/tmp/out", "outside"},
        {"l", '2', "../out", "outside"},         {"d/l", '2', "../../out", "outside"},
        {"l", '2', "door/../../out", "outside"}, {"h", '1', "../out/secret", "outside"},
        {"h", '1', "/etc/passwd", "outside"},    {"h", '1', "door/secret", "not-directory"},
        {"null", '3', NULL, "not-regular"},      {"block", '4', NULL, "not-regular"},
        {"pipe", '6', NULL, "not-regular"}};
    ep_ask(box.sandbox, "echo secret >/tmp/out/secret");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        EpBytes tar = {0};
        add_entry(&tar, hostile[i].name, hostile[i].type, hostile[i].link, 0644, "x");
        sprov_status status = put(box.sandbox, &tar, "/tmp/box/in", NULL);
        cr_expect_eq(status, SPROV_E_INVALID_ARGUMENT, "%s: %d %s", hostile[i].name, status,
                     failure.message);
        cr_expect_str_eq(failure.reason, hostile[i].reason, "%s: %s", hostile[i].name,
                         failure.message);
        cr_expect(strstr(failure.message, hostile[i].name), "%s: %s", hostile[i].name,
                  failure.message);
    }
    cr_assert_str_eq(ep_ask(box.sandbox,
                            "ls -A /tmp/out; cat /tmp/out/secret; cd /tmp/box; find . ! "
                            "-name in ! -name door ! -name x ! -name d -mindepth 1"),
                     "secret\nsecret");

    /* A link of the archive itself, then a name behind it. */
    EpBytes tar = {0};
    add_entry(&tar, "a/b/c/", '5', NULL, 0755, "");
    add_entry(&tar, "a/b/c/up", '2', "../../..", 0777, "");
    add_entry(&tar, "a/b/c/up/f", '0', NULL, 0644, "x");
    cr_expect_eq(put(box.sandbox, &tar, "/tmp/box/in", NULL), SPROV_E_INVALID_ARGUMENT);
    ep_ask(box.sandbox, "[ -L /tmp/box/in/a/b/c/up ] && ! [ -e /tmp/box/in/f ]");

    EpBytes rubbish = {.data = ep_random(5000), .size = 5000};
    cr_expect_eq(put(box.sandbox, &rubbish, "/tmp/box/in", NULL), SPROV_E_INVALID_ARGUMENT);
    cr_expect_str_eq(failure.reason, "bad-archive", "%s", failure.message);
    ep_leave(&box);
}

Test(archive, a_put_belongs_to_the_user_it_is_for)
{
    EpBox box = ep_shared();
    EpBytes tar = {0};
    add_entry(&tar, "d/f", '0', NULL, 0644, "x");
    MUST(put(box.sandbox, &tar, "/tmp/of/nobody", "nobody"));
    cr_assert_str_eq(
        ep_ask(box.sandbox, "cd /tmp/of; stat -c %%U nobody nobody/d nobody/d/f | uniq"), "nobody");
    FAILS(put(box.sandbox, &tar, "/root/of", "nobody"), SPROV_E_DENIED, "permission");
    FAILS(put(box.sandbox, &tar, "/tmp/of/none", "no-such-user"), SPROV_E_NOT_FOUND,
          "no-such-user");
    ep_leave(&box);

    EpBox other = ep_box("\"user\":\"1000:1000\"");
    MUST(put(other.sandbox, &tar, "/tmp/root", "0:0"));
    MUST(put(other.sandbox, &tar, "/tmp/own", NULL));
    cr_assert_str_eq(ep_ask(other.sandbox, "stat -c %%u /tmp/root/d/f /tmp/own/d/f"), "0\n1000");
    ep_destroy(&other);
}

/* What a command prints that reads the archive from its input. */
static char *run_tar(const EpBytes *tar, const char *command)
{
    char path[] = "/tmp/sprov-test-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, tar->data, tar->size) == (ssize_t)tar->size);
    close(fd);
    FILE *pipe = popen(ep_format("exec <%s; %s", path, command), "re");
    char text[4096];
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = '\0';
    cr_expect_eq(pclose(pipe), 0, "%s", command);
    unlink(path);
    return ep_format("%s", text);
}

Test(archive, a_directory_comes_as_an_archive_with_owners_modes_links_and_long_names)
{
    EpBox box = ep_shared();
    EpBytes tar = {0};
    sprov_sink sink = ep_sink(&tar);
    sprov_get_request request = SPROV_INIT(sprov_get_request);
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    ep_ask(
        box.sandbox,
        "rm -rf /tmp/get; mkdir -p /tmp/get/tree/%s/%s; cd /tmp/get/tree; echo deep >%s/%s/f; "
        "printf data >\"$(printf 'a\\303\\251 b')\"; chmod 640 a*; chown 12:34 a*; ln a* hard; "
        "ln -s /etc/passwd out; mkfifo pipe; truncate -s 3M big; ln -s /tmp/get/tree /tmp/get/way",
        name, name, name, name);
    request.path = "/tmp/get/way";
    request.tar = &sink;
    MUST(archive->get(box.sandbox, &request, NULL, &failure));
    cr_assert_eq(tar.done, 1);
    char *listed = run_tar(&tar, "LC_ALL=C.UTF-8 tar --numeric-owner -tvf - | tr -s ' ' | "
                                 "cut -d ' ' -f 1-3,6- | sort");
    const char *lines[] = {"drwxr-xr-x 0/0 0 way/\n", "-rw-r--r-- 0/0 3145728 way/big\n",
                           "lrwxrwxrwx 0/0 0 way/out -> /etc/passwd\n",
                           "prw-r--r-- 0/0 0 way/pipe\n",
                           ep_format("-rw-r--r-- 0/0 5 way/%s/%s/f\n", name, name)};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect(strstr(listed, lines[i]), "%s is not in\n%s", lines[i], listed);
    cr_expect(strstr(listed, "-rw-r----- 12/34 4 way/") &&
                  strstr(listed, "hrw-r----- 12/34 0 way/"),
              "%s", listed);

    EpBytes one = {0}, none = {0};
    sink = ep_sink(&one);
    request.path = "/tmp/get/tree/big";
    MUST(archive->get(box.sandbox, &request, NULL, &failure));
    cr_expect_str_eq(run_tar(&one, "tar -tf -"), "big\n");
    sink = ep_sink(&none);
    request.path = "/tmp/get/none";
    FAILS(archive->get(box.sandbox, &request, NULL, &failure), SPROV_E_NOT_FOUND, "no-such-file");
    cr_expect_eq(none.size, 0);

    /* And back again, without what no put takes. */
    ep_ask(box.sandbox, "cd /tmp/get/tree; rm pipe out");
    EpBytes again = {0};
    sink = ep_sink(&again);
    request.path = "/tmp/get/tree";
    MUST(archive->get(box.sandbox, &request, NULL, &failure));
    EpSource from = {.data = again.data, .size = again.size};
    sprov_source source = ep_source(&from, false);
    sprov_put_request back = SPROV_INIT(sprov_put_request);
    back.directory = "/tmp/get/copy";
    back.tar = &source;
    MUST(archive->put(box.sandbox, &back, NULL, &failure));
    ep_ask(box.sandbox,
           "cd /tmp/get; diff -r tree copy/tree && [ copy/tree/hard -ef copy/tree/a* ] && "
           "[ $(stat -c %%Y tree/big) = $(stat -c %%Y copy/tree/big) ]");
    ep_leave(&box);
}

/* ------------------------------------------------------------------------------------ else */

Test(archive, without_a_supervisor_files_are_written_and_the_rest_is_refused)
{
    EpBox box = ep_box("\"supervisor\":\"off\"");
    EpBytes told = {0}, tar = {0};
    One one[2];
    const sprov_write_request *requests[] = {&one[0].request, &one[1].request};
    sprov_file_result *results[] = {&one[0].result, &one[1].result};
    fill(&one[0], 0, "/tmp/two");
    fill(&one[1], 1, "/tmp/two");
    MUST(archive->write_files(box.sandbox, requests, 2, results, NULL, &failure));
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /tmp/two/d*/f*"), "this is file 0\nthis is file 1");
    FAILS(files->stat(box.sandbox, "/tmp", 0, NULL, take_line, &told, &failure),
          SPROV_E_UNSUPPORTED, "no-supervisor");
    add_entry(&tar, "f", '0', NULL, 0644, "x");
    FAILS(put(box.sandbox, &tar, "/tmp/two", NULL), SPROV_E_UNSUPPORTED, "no-supervisor");
    ep_destroy(&box);
}

typedef struct {
    sprov_sandbox *sandbox;
    int number, failed;
    double slowest;
} Worker;

static void *transfer(void *ctx)
{
    Worker *w = ctx;
    char *data = ep_random(300000);
    char *path = ep_format("/tmp/beside/%d", w->number);
    for (int i = 0; i < 20; i++) {
        EpBytes bytes = {0};
        w->failed += ep_write(w->sandbox, path, data, 300000, 0, NULL) != SPROV_OK;
        w->failed += ep_read(w->sandbox, path, &bytes, NULL, NULL) != SPROV_OK;
        w->failed += bytes.size != 300000 || memcmp(bytes.data, data, 300000) != 0;
    }
    return NULL;
}

static void *command(void *ctx)
{
    Worker *w = ctx;
    for (int i = 0; i < 20; i++) {
        double start = ep_now();
        EpRun run = ep_sh(w->sandbox, "echo %d", i);
        double took = ep_now() - start;
        w->failed += run.status != SPROV_OK || atoi(run.out.data) != i;
        w->slowest = took > w->slowest ? took : w->slowest;
    }
    return NULL;
}

static void *work(void *ctx)
{
    const Worker *w = ctx;
    return w->number % 2 ? command(ctx) : transfer(ctx);
}

Test(archive, sixteen_transfers_run_beside_sixteen_callers_of_commands)
{
    EpBox box = ep_shared();
    Worker workers[32];
    ep_ask(box.sandbox, "true");
    for (int i = 0; i < 32; i++)
        workers[i] = (Worker){.sandbox = box.sandbox, .number = i};
    ep_threads(32, work, workers, sizeof *workers);
    for (int i = 0; i < 32; i++) {
        cr_expect_eq(workers[i].failed, 0, "%d", i);
        cr_expect(workers[i].slowest < 20, "a command took %.1f s", workers[i].slowest);
    }
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /tmp/beside | wc -l"), "16");
    ep_leave(&box);
}
