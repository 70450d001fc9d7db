/* Files where the engine's archives don't see what the sandbox sees, or must not write: tmpfs,
 * shared memory, volumes, single mounted files, /proc, read-only file systems. */
#include "ep.h"

#include <criterion/criterion.h>
#include <string.h>

#define KIB 1024
#define MIB (1024 * KIB)

static void check_round_trip(sprov_sandbox *sandbox, const char *path, size_t size)
{
    sprov_error error = SPROV_INIT(sprov_error);
    char *data = ep_random(size);
    EpBytes bytes = {0};
    cr_assert_eq(ep_write(sandbox, path, data, size, 0, &error), SPROV_OK, "%s", error.message);
    char *seen = ep_ask(sandbox, "sha256sum <'%s'", path);
    cr_assert(strstr(seen, ep_sha256(data, size)), "the sandbox sees another %s", path);
    cr_assert_eq(ep_read(sandbox, path, &bytes, NULL, &error), SPROV_OK, "%s", error.message);
    cr_assert(bytes.size == size && memcmp(bytes.data, data, size) == 0, "%s", path);
}

static void check_denied(sprov_sandbox *sandbox, const char *path, const char *reason)
{
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_write(sandbox, path, "x", 1, 0, &error);
    cr_expect_eq(status, SPROV_E_DENIED, "%s: %d %s", path, status, error.message);
    cr_expect_str_eq(error.reason, reason, "%s: %s", path, error.message);
}

Test(places, a_tmpfs_and_shared_memory_take_files_as_any_folder)
{
    EpBox box = ep_box("\"tmpfs\":{\"/scratch\":\"mode=1777\"},"
                       "\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/more\"}]");
    check_round_trip(box.sandbox, "/scratch/file", 300 * KIB);
    check_round_trip(box.sandbox, "/scratch/deep/er/file", 1);
    check_round_trip(box.sandbox, "/more/file", 300 * KIB);
    check_round_trip(box.sandbox, "/dev/shm/file", 300 * KIB);
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /scratch; stat -c %%a /scratch/file"),
                     "deep\nfile\n644");
    ep_destroy(&box);
}

/* By stream a large one goes by the engine's archive where that is faster. */
Test(places, a_large_file_takes_the_place_of_one_as_a_small_one_does)
{
    static const char *const ways[] = {"\"transport\":\"stream\"", "\"transport\":\"auto\"",
                                       "\"supervisor\":\"off\""};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        EpBox box = ep_box(ways[i]);
        ep_ask(box.sandbox, "echo old >/tmp/f && chown 1234:4321 /tmp/f && chmod 4751 /tmp/f && "
                            "ln -s f /tmp/link && mkdir /tmp/empty");
        check_round_trip(box.sandbox, "/tmp/link", 17 * MIB);
        check_round_trip(box.sandbox, "/tmp/link", 16 * MIB);
        check_round_trip(box.sandbox, "/etc/debian_version", 16 * MIB);
        cr_expect_str_eq(ep_ask(box.sandbox, "stat -c '%%a %%u:%%g' /tmp/f; readlink /tmp/link"),
                         "4751 1234:4321\nf");
        sprov_error error = SPROV_INIT(sprov_error);
        char *data = ep_random(16 * MIB);
        cr_expect_neq(ep_write(box.sandbox, "/tmp/empty", data, 16 * MIB, 0, &error), SPROV_OK);
        cr_expect(strstr(error.message, "/tmp/empty: ") && strstr(error.message, "directory") &&
                      !strstr(strstr(error.message, "/tmp/empty") + 1, "/tmp/empty"),
                  "%s: %s", ways[i], error.message);
        cr_expect_str_eq(ep_ask(box.sandbox, "ls -A /tmp /etc | grep sprov; true"), "");
        ep_destroy(&box);
    }
}

Test(places, a_mount_made_inside_hides_what_is_below_it)
{
    EpBox box = ep_shared();
    ep_ask(box.sandbox, "mkdir -p /tmp/seen && ln -sfn /dev/shm /tmp/seen/link");
    check_round_trip(box.sandbox, "/tmp/seen/link/by-link", 1000);
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -f -c %%T /dev/shm/by-link"), "tmpfs");
    ep_leave(&box);
}

Test(places, a_file_that_is_a_mount_is_written_in_place)
{
    EpBox box = ep_box(NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    char *inode = ep_ask(box.sandbox, "stat -c %%i /etc/hosts");
    static const char hosts[] = "127.0.0.1 localhost here\n";
    cr_assert_eq(ep_write(box.sandbox, "/etc/hosts", hosts, strlen(hosts), 0, &error), SPROV_OK,
                 "%s", error.message);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /etc/hosts"), "127.0.0.1 localhost here");
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -c %%i /etc/hosts"), inode);
    EpBytes bytes = {0};
    cr_assert_eq(ep_read(box.sandbox, "/etc/hosts", &bytes, NULL, &error), SPROV_OK);
    cr_assert_str_eq(bytes.data, hosts);
    ep_destroy(&box);
}

Test(places, a_file_in_a_folder_that_takes_no_other_is_written_in_place)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_error error = SPROV_INIT(sprov_error);
    request.user = "0";
    request.command = "mkdir -m 755 /closed && echo old >/closed/f && chown 1000 /closed/f";
    cr_assert_eq(ep_run(box.sandbox, &request, NULL).result.exit_code, 0);
    cr_assert_eq(ep_write(box.sandbox, "/closed/f", "new", 3, 0, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /closed/f; ls -A /closed"), "newf");
    check_denied(box.sandbox, "/closed/g", "permission");
    ep_destroy(&box);
}

Test(places, proc_is_read_and_its_size_is_what_came)
{
    EpBox box = ep_shared();
    EpBytes bytes = {0};
    sprov_read_result result = SPROV_INIT(sprov_read_result);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_read(box.sandbox, "/proc/version", &bytes, &result, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert(strncmp(bytes.data, "Linux version", 13) == 0, "%s", bytes.data);
    cr_assert_eq(result.count, bytes.size);
    cr_assert_eq(ep_write(box.sandbox, "/proc/version", "x", 1, 0, &error), SPROV_E_DENIED);
    ep_leave(&box);
}

Test(places, volumes_are_written_and_read_only_ones_refused)
{
    EpBox box = ep_box(ep_format("\"volumes\":{\"%s-a\":\"/data\",\"%s-b\":\"/fixed:ro\"}",
                                 ep_new_id(), ep_new_id()));
    check_round_trip(box.sandbox, "/data/deep/file", 300 * KIB);
    check_denied(box.sandbox, "/fixed/file", "read-only");
    check_denied(box.sandbox, "/fixed/deep/file", "read-only");
    char *volumes = ep_ask(box.sandbox, "grep -c ' /data \\| /fixed ' /proc/self/mounts");
    cr_assert_str_eq(volumes, "2");
    ep_destroy(&box);
}

Test(places, a_read_only_root_is_told_as_such_and_its_writable_mounts_work)
{
    EpBox box = ep_box(ep_format("\"readonlyRootfs\":true,\"tmpfs\":{\"/tmp\":\"\"},"
                                 "\"volumes\":{\"%s\":\"/data\"}",
                                 ep_new_id()));
    check_denied(box.sandbox, "/root/file", "read-only");
    check_denied(box.sandbox, "/new/deep/file", "read-only");
    check_denied(box.sandbox, "/etc/passwd", "read-only");
    check_round_trip(box.sandbox, "/tmp/file", 300 * KIB);
    check_round_trip(box.sandbox, "/data/file", 300 * KIB);
    EpBytes bytes = {0};
    cr_assert_eq(ep_read(box.sandbox, "/etc/passwd", &bytes, NULL, NULL), SPROV_OK);
    cr_assert(strstr(bytes.data, "root:"));
    ep_destroy(&box);
}

Test(places, a_full_tmpfs_is_exhausted_and_keeps_the_old_file)
{
    EpBox box = ep_box("\"tmpfs\":{\"/small\":\"size=1m\"}");
    sprov_error error = SPROV_INIT(sprov_error);
    ep_ask(box.sandbox, "echo old >/small/f");
    char *data = ep_random(2048 * KIB);
    cr_assert_eq(ep_write(box.sandbox, "/small/f", data, 2048 * KIB, 0, &error), SPROV_E_EXHAUSTED,
                 "%s", error.message);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /small/f; ls -A /small"), "old\nf");
    ep_destroy(&box);
}

Test(places, a_sandbox_of_busybox_does_all_this_too)
{
    EpBox box = ep_box("\"image\":\"busybox:latest\",\"tmpfs\":{\"/scratch\":\"\"}");
    check_round_trip(box.sandbox, "/tmp/a b/\xc3\xa9\nf", 300 * KIB);
    check_round_trip(box.sandbox, "/scratch/file", 300 * KIB);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo begun; setsid sleep 7501 & (sleep 7501 &); sleep 7501";
    request.run_timeout_ms = 500;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_assert_not(ep_runs(box.sandbox, "sleep 7501"));
    ep_destroy(&box);
}
