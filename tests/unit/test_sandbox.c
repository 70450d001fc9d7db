#include <criterion/criterion.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "supervised/env.h"
#include "sandbox/fileplan.h"
#include "sandbox/life.h"
#include "supervised/owner.h"
#include "sandbox/startfail.h"

/* ------------------------------------------------------------------------------ env */

static void merges_to(const char *const *base, const char *const *changes,
                      const char *const *expected)
{
    char **merged = dkr_env_merge(base, changes);
    cr_assert(g_strv_equal((const char *const *)merged, expected));
    dkr_env_free(merged);
}

Test(env, changes_win_by_name_and_order_is_kept)
{
    merges_to((const char *const[]){"A=1", "B=2", NULL}, (const char *const[]){"B=3", "C=4", NULL},
              (const char *const[]){"A=1", "B=3", "C=4", NULL});
}

Test(env, a_bare_name_takes_away_and_a_value_brings_back)
{
    merges_to((const char *const[]){"A=1", NULL}, (const char *const[]){"A", NULL},
              (const char *const[]){"A", NULL});
    merges_to((const char *const[]){"A", NULL}, (const char *const[]){"A=2", NULL},
              (const char *const[]){"A=2", NULL});
}

Test(env, a_name_that_begins_like_another_is_another)
{
    merges_to((const char *const[]){"PATH=1", "PATHS=2", NULL},
              (const char *const[]){"PATH=x=y", NULL},
              (const char *const[]){"PATH=x=y", "PATHS=2", NULL});
}

Test(env, nothing_is_an_empty_list)
{
    merges_to(NULL, NULL, (const char *const[]){NULL});
}

Test(env, an_entry_without_a_name_is_refused)
{
    g_autoptr(GError) error = NULL;
    cr_assert(dkr_env_check((const char *const[]){"A=", "B", NULL}, &error));
    cr_assert_not(dkr_env_check((const char *const[]){"A=1", "=x", NULL}, &error));
    cr_assert(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-env"));
    g_clear_error(&error);
    cr_assert_not(dkr_env_check((const char *const[]){"", NULL}, &error));
}

/* -------------------------------------------------------------------- failed starts */

typedef struct {
    const char *text;
    int exit_code; /* 0: an error instead */
    const char *line_or_reason;
} StartCase;

/* In the words of engines 20.10.24 and 26.1.5. */
static const StartCase start_cases[] = {
    {"OCI runtime exec failed: exec failed: container_linux.go:367: starting container process "
     "caused: exec: \"nosuch\": executable file not found in $PATH: unknown\r\n",
     127, "prog: command not found\n"},
    {"OCI runtime exec failed: exec failed: unable to start container process: exec: "
     "\"/etc/passwd\": permission denied: unknown\r\n",
     126, "prog: permission denied\n"},
    {"OCI runtime exec failed: exec failed: unable to start container process: exec: \"/no/x\": "
     "stat /no/x: no such file or directory: unknown\r\n",
     127, "prog: no such file or directory\n"},
    {"OCI runtime exec failed: exec failed: unable to start container process: exec /bin/x: exec "
     "format error: unknown\r\n",
     126, "prog: cannot execute: wrong format\n"},
    {"OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd "
     "(\"/nope\") set in config.json failed: no such file or directory: unknown\r\n",
     0, "bad-cwd"},
    {"unable to find user nosuch: no matching entries in passwd file\r\n", 0, "no-such-user"},
    {"OCI runtime exec failed: exec failed: unable to start container process: read init-p: "
     "connection reset by peer: unknown\r\n",
     0, "no-process"},
    {"OCI runtime exec failed: exec failed: cannot exec a container that has stopped: unknown\r\n",
     0, "sandbox-gone"},
    {"Container 0123 is not running\r\n", 0, "sandbox-gone"},
    {"something that no engine says yet\r\n", 0, "exec-failed"},
};

Test(start_failure, the_engines_texts_are_told_apart)
{
    for (gsize i = 0; i < G_N_ELEMENTS(start_cases); i++) {
        const StartCase *c = &start_cases[i];
        g_autoptr(GError) error = NULL;
        g_autofree char *line = NULL;
        int code = 0;
        bool of_program =
            dkr_start_failure(c->text, "prog", "/nope", "nosuch", &code, &line, &error);
        cr_assert_eq(of_program, c->exit_code != 0, "row %zu", i);
        if (of_program) {
            cr_assert_eq(code, c->exit_code, "row %zu", i);
            cr_assert_str_eq(line, c->line_or_reason);
        } else {
            cr_assert_str_eq(spr_error_extra(error)->reason, c->line_or_reason);
        }
    }
}

Test(start_failure, what_the_runtime_broke_off_itself_is_known)
{
    cr_assert(dkr_start_was_cut("OCI runtime exec failed: exec failed: unable to start container "
                                "process: waiting for init preliminary setup: read init-p: "
                                "connection reset by peer: unknown\r\n"));
    cr_assert_not(dkr_start_was_cut("OCI runtime exec failed: exec failed: fork/exec "
                                    "/proc/self/exe: resource temporarily unavailable\r\n"));
    cr_assert_not(dkr_start_was_cut("exec: \"init connection reset by peer\": executable file not "
                                    "found in $PATH: unknown\r\n"));
}

/* ------------------------------------------------------------------------- file plan */

static const char mountinfo[] = "100 90 0:50 / / rw,relatime - overlay overlay rw,lowerdir=x\n"
                                "101 100 0:51 / /proc rw,nosuid - proc proc rw\n"
                                "102 100 0:52 / /dev rw,nosuid - tmpfs tmpfs rw\n"
                                "103 102 0:53 / /dev/shm rw,nosuid - tmpfs shm rw\n"
                                "104 100 8:1 /hosts /etc/hosts rw - ext4 /dev/sda rw\n"
                                "105 100 8:1 /vol /data rw - ext4 /dev/sda rw\n"
                                "106 105 0:54 / /data/tmp rw - tmpfs tmpfs rw\n"
                                "107 100 8:1 /ro /a\\040b ro,relatime - ext4 /dev/sda rw\n";

static const char *const mounts[] = {"/data", "/a b", NULL};

Test(file_plan, the_archive_sees_the_root_and_the_volumes_and_nothing_mounted_inside)
{
    cr_assert(dkr_file_in_archive(mountinfo, "/etc/passwd", mounts));
    cr_assert(dkr_file_in_archive(mountinfo, "/data/x", mounts));
    cr_assert(dkr_file_in_archive(mountinfo, "/a b/x", mounts));
    cr_assert(dkr_file_in_archive(mountinfo, "/database", mounts));
    cr_assert_not(dkr_file_in_archive(mountinfo, "/data/tmp/x", mounts));
    cr_assert_not(dkr_file_in_archive(mountinfo, "/dev/shm/x", mounts));
    cr_assert_not(dkr_file_in_archive(mountinfo, "/proc/version", mounts));
    cr_assert_not(dkr_file_in_archive(mountinfo, "/etc/hosts", mounts));
    cr_assert_not(dkr_file_in_archive("", "/x", mounts), "nothing known: not trusted");
}

Test(file_plan, a_file_that_is_a_mount_and_a_read_only_mount_are_known)
{
    cr_assert(dkr_file_is_mount(mountinfo, "/etc/hosts"));
    cr_assert_not(dkr_file_is_mount(mountinfo, "/etc/passwd"));
    cr_assert(dkr_file_is_read_only(mountinfo, "/a b/x"));
    cr_assert_not(dkr_file_is_read_only(mountinfo, "/data/x"));
}

Test(file_plan, what_the_probe_prints_is_read_to_the_byte)
{
    static const char output[] = "f\0/a/na\nme\0/a\0"
                                 "755 1000 1001 42 1700000000\0w\0-\0"
                                 "1000\0"
                                 "1001\0"
                                 "mountinfo";
    g_auto(DkrFileFacts) facts = {0};
    cr_assert(dkr_file_facts_parse(output, sizeof output - 1, 0, "x", &facts, NULL));
    cr_assert_eq(facts.kind, DKR_FILE_REGULAR);
    cr_assert_str_eq(facts.path, "/a/na\nme");
    cr_assert_str_eq(facts.directory, "/a");
    cr_assert_eq(facts.mode, 0755);
    cr_assert_eq(facts.uid, 1000);
    cr_assert_eq(facts.gid, 1001);
    cr_assert_eq(facts.size, 42);
    cr_assert(facts.may_write);
    cr_assert_not(facts.may_write_directory);
    cr_assert_str_eq(facts.mountinfo, "mountinfo");
}

Test(file_plan, an_answer_that_is_cut_is_an_error)
{
    static const char output[] = "f\0/a/name\0/a\0"
                                 "755 1000 1001 42 1700000000\0w\0-\0";
    for (gsize cut = 0; cut < sizeof output; cut++) {
        DkrFileFacts facts = {0};
        g_autoptr(GError) error = NULL;
        cr_assert_not(dkr_file_facts_parse(output, cut, 0, "x", &facts, &error));
        cr_assert_not_null(error);
    }
}

Test(file_plan, each_exit_code_of_the_probe_is_an_error_that_names_the_path)
{
    const struct {
        int exit_code;
        int code;
        const char *reason;
    } rows[] = {
        {40, SPR_E_NOT_FOUND, "no-such-file"},
        {41, SPR_E_INVALID_ARGUMENT, "is-directory"},
        {42, SPR_E_INVALID_ARGUMENT, "not-regular"},
        {43, SPR_E_INVALID_ARGUMENT, "not-directory"},
        {44, SPR_E_DENIED, "permission"},
        {45, SPR_E_INVALID_ARGUMENT, "link-loop"},
        {46, SPR_E_INVALID_ARGUMENT, "name-too-long"},
        {1, SPR_E_UNSUPPORTED, "no-tools"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        DkrFileFacts facts = {0};
        g_autoptr(GError) error = NULL;
        cr_assert_not(dkr_file_facts_parse("", 0, rows[i].exit_code, "/the/path", &facts, &error));
        cr_assert(spr_error_is(error, rows[i].code, rows[i].reason), "row %zu", i);
        cr_assert_not_null(strstr(error->message, "/the/path"));
    }
}

Test(file_plan, a_denial_on_a_read_only_file_system_says_so)
{
    DkrFileFacts facts = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) output = g_byte_array_new();
    g_byte_array_append(output, (const guint8 *)"/a b", 5);
    g_byte_array_append(output, (const guint8 *)mountinfo, sizeof mountinfo - 1);
    cr_assert_not(dkr_file_facts_parse((const char *)output->data, output->len, 44, "/a b/x",
                                       &facts, &error));
    cr_assert(spr_error_is(error, SPR_E_DENIED, "read-only"));
}

/* ----------------------------------------------------------------------- life, owner */

Test(life, an_inspect_gives_directory_and_what_the_archive_sees)
{
    json_auto_t *inspect =
        json_loads("{\"Id\":\"abc\",\"Config\":{\"Image\":\"i\",\"WorkingDir\":\"/w\"},"
                   "\"Mounts\":[{\"Type\":\"volume\",\"Destination\":\"/v\"},"
                   "{\"Type\":\"tmpfs\",\"Destination\":\"/t\"}]}",
                   0, NULL);
    g_autoptr(DkrSandboxOptions) options = NULL;
    cr_assert(dkr_sandbox_options_parse(NULL, &options, NULL));
    g_autoptr(DkrLife) life = dkr_life_new(NULL, options, inspect, NULL, NULL, NULL);
    cr_assert_null(life->link, "no label, no supervisor");
    cr_assert_str_eq(life->container, "abc");
    cr_assert(g_strv_equal((const char *const *)life->mounts, (const char *const[]){"/v", NULL}));
    g_autofree char *relative = dkr_life_absolute(life, "a/b");
    g_autofree char *absolute = dkr_life_absolute(life, "/a");
    cr_assert_str_eq(relative, "/w/a/b");
    cr_assert_str_eq(absolute, "/a");
}

Test(life, an_answer_that_is_no_container_is_an_error)
{
    json_auto_t *inspect = json_loads("{\"Id\":\"abc\"}", 0, NULL);
    g_autoptr(GError) error = NULL;
    cr_assert_null(dkr_life_new(NULL, NULL, inspect, NULL, NULL, &error));
    cr_assert(spr_error_is(error, SPR_E_IO, "bad-answer"));
}

Test(owner, it_names_boot_process_and_start)
{
    g_auto(GStrv) parts = g_strsplit(dkr_owner(), ":", -1);
    cr_assert_eq(g_strv_length(parts), 4);
    cr_assert_eq(strlen(parts[0]), 36);
    cr_assert_gt(g_ascii_strtoll(parts[2], NULL, 10), 0);
    cr_assert_gt(g_ascii_strtoll(parts[3], NULL, 10), 0);
}

/* The owner of this process with one part replaced. */
static DkrOwnerState state_with(guint at, const char *part)
{
    g_auto(GStrv) parts = g_strsplit(dkr_owner(), ":", -1);
    g_free(parts[at]);
    parts[at] = g_strdup(part);
    g_autofree char *owner = g_strjoinv(":", parts);
    return dkr_owner_state(owner);
}

Test(owner, it_is_gone_only_where_that_can_be_known)
{
    cr_expect_eq(dkr_owner_state(dkr_owner()), DKR_OWNER_LIVES);
    cr_expect_eq(state_with(2, "1"), DKR_OWNER_GONE, "another process got its number");
    cr_expect_eq(state_with(1, "4194305"), DKR_OWNER_GONE, "no process has its number");
    cr_expect_eq(state_with(0, "0b00b00b-0000-4000-8000-000000000000"), DKR_OWNER_UNKNOWN);
    cr_expect_eq(state_with(3, "1"), DKR_OWNER_UNKNOWN, "its pid is that of another namespace");
    static const char *const none[] = {NULL, "", "x", "a:b:c", "a:b:c:d:e"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        cr_expect_eq(dkr_owner_state(none[i]), DKR_OWNER_UNKNOWN, "%s", none[i]);
    cr_expect_eq(state_with(1, "../1"), DKR_OWNER_UNKNOWN);
    cr_expect_eq(state_with(1, ""), DKR_OWNER_UNKNOWN);
}

Test(owner, a_process_that_only_waits_to_be_reaped_is_gone)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *stat = NULL;
    cr_assert(g_file_get_contents(path, &stat, NULL, NULL));
    g_auto(GStrv) fields = g_strsplit(strrchr(stat, ')') + 2, " ", -1);
    g_auto(GStrv) parts = g_strsplit(dkr_owner(), ":", -1);
    g_autofree char *owner =
        g_strdup_printf("%s:%d:%s:%s", parts[0], (int)pid, fields[19], parts[3]);
    cr_expect_eq(dkr_owner_state(owner), DKR_OWNER_GONE);
    waitid(P_PID, (id_t)pid, &info, WEXITED);
}
