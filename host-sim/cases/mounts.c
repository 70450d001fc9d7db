/* Folders, volumes and memory that a sandbox is given, and what is read-only in it. */
#include "cases/cases.h"

#include <string.h>

static const char *bind_of(const char *source, const char *target, const char *more)
{
    return case_text("{\"type\":\"bind\",\"source\":\"%s\",\"target\":\"%s\"%s}", source, target,
                     more);
}

static const char *volume_of(const char *name, const char *target, const char *more)
{
    return case_text("{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"%s\"%s}", name, target,
                     more);
}

/* Both ways, by commands and by calls, as a file of the sandbox's own would. */
static void files_work_in(sprov_sandbox *sandbox, const char *folder)
{
    CaseBytes noise = case_noise(case_random(70000, 90000));
    const char *path = case_text("%s/a/file", folder);
    case_write(sandbox, path, noise, 0600);
    CHECK_BYTES(case_read(sandbox, path), noise);
    CHECK_TEXT(case_bytes(case_sha256_inside(sandbox, path)), case_sha256(noise));
    CHECK_TEXT(case_sh(sandbox, "stat -c %%a %s", path).out, "600\n");
    const char *token = case_token();
    case_sh(sandbox, "printf %%s %s > %s", token, path);
    CHECK_TEXT(case_read(sandbox, path), token);
    CaseBytes bytes;
    CHECK_STATUS(case_try_read(sandbox, case_text("%s/missing", folder), &bytes),
                 SPROV_E_NOT_FOUND);
}

/* Where the provider says at all that it can write there. */
static bool can_write_in(sprov_sandbox *sandbox, const char *folder)
{
    const char *path = case_text("%s/try", folder);
    sprov_status status = case_try_write(sandbox, path, case_bytes("try"), 0);
    bool is_there = case_sh(sandbox, "grep -qx try %s", path).result.exit_code == 0;
    CHECK_INT(is_there, status == SPROV_OK);
    CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_OK);
    return status == SPROV_OK;
}

/* Opened, but not changed: a provider that keeps nothing apart would do it to our machine. */
static void refuses_to_open(sprov_sandbox *sandbox, const char *path)
{
    CHECK(case_sh(sandbox, "true >> %s", path).result.exit_code != 0);
}

static void refuses_to_write(sprov_sandbox *sandbox, const char *path)
{
    refuses_to_open(sandbox, path);
    sprov_status status = case_try_write(sandbox, path, case_bytes("x"), 0);
    CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_E_DENIED);
}

/* Where something is mounted: if a provider mounts nothing, there is nothing at such a place of the
 * machine that a case could harm. */
static const char *place(const char *name)
{
    return case_text("/%s-%s", name, case_token());
}

/* ---- folders of the host */

static void folders_are_seen_both_ways(void)
{
    const char *folder = case_hook_folder();
    const char *token = case_token();
    g_autofree char *ours = g_build_filename(folder, "ours", NULL);
    g_autofree char *theirs = g_build_filename(folder, "theirs", NULL);
    CHECK(g_file_set_contents(ours, token, -1, NULL));
    const char *given = place("given"), *looked = place("looked");
    sprov_sandbox *sandbox =
        case_fresh(case_text("{\"mounts\":[%s,%s]}", bind_of(folder, given, ""),
                             bind_of(folder, looked, ",\"readOnly\":true")));
    CHECK_TEXT(case_read(sandbox, case_text("%s/ours", given)), token);
    CHECK_TEXT(case_sh(sandbox, "cat %s/ours", looked).out, token);
    case_write(sandbox, case_text("%s/theirs", given), case_bytes(token), 0);
    g_autofree char *found = NULL;
    CHECK(g_file_get_contents(theirs, &found, NULL, NULL));
    CHECK_TEXT(case_bytes(found), token);
    CHECK_TEXT(case_read(sandbox, case_text("%s/theirs", looked)), token);
    refuses_to_write(sandbox, case_text("%s/ours", looked));
    refuses_to_write(sandbox, case_text("%s/new", looked));
    CHECK_TEXT(case_read(sandbox, case_text("%s/ours", given)), token);
    case_sh(sandbox, "rm -rf %s/*", given);
}

static void a_file_works_in_a_folder_of_the_host(void)
{
    const char *given = place("given");
    sprov_sandbox *sandbox =
        case_fresh(case_text("{\"mounts\":[%s]}", bind_of(case_hook_folder(), given, "")));
    files_work_in(sandbox, given);
    case_sh(sandbox, "rm -rf %s/*", given);
}

static void propagation_is_kept_or_refused(void)
{
    const char *folder = case_hook_folder();
    sprov_sandbox *sandbox = NULL;
    sprov_status status = case_try_create(
        case_text("{\"mounts\":[%s]}",
                  bind_of(folder, "/given", ",\"bindOptions\":{\"propagation\":\"rslave\"}")),
        &sandbox);
    if (status == SPROV_E_UNSUPPORTED) {
        CHECK_THAT(strstr(case_last_error()->message, "bindOptions") != NULL,
                   "the option is not named: %s", case_last_error()->message);
        return;
    }
    CHECK_STATUS(status, SPROV_OK);
    /* Only what is shared can be followed, and most engines say that it is not. */
    if (case_api()->start(sandbox, NULL, NULL, case_error()) == SPROV_OK)
        CHECK(case_sh(sandbox, "grep ' /given .* master:' /proc/self/mountinfo").out.size > 0);
    else
        CHECK_THAT(strstr(case_last_error()->message, folder) != NULL, "%s is not named: %s",
                   folder, case_last_error()->message);
}

/* ---- volumes */

static void volumes_outlive_sandboxes(void)
{
    const char *volume = case_hook_volume();
    const char *data = place("data"), *kept = case_text("%s/kept", data);
    const char *mounts = case_text("{\"mounts\":[%s]}", volume_of(volume, data, ""));
    const char *token = case_token();
    sprov_sandbox *first = case_fresh(mounts);
    files_work_in(first, data);
    case_write(first, kept, case_bytes(token), 0);
    case_destroy(first);
    sprov_sandbox *second = case_fresh(mounts);
    sprov_sandbox *third = case_fresh(mounts);
    CHECK_TEXT(case_read(second, kept), token);
    case_write(second, kept, case_bytes("changed"), 0);
    CHECK_TEXT(case_sh(third, "cat %s", kept).out, "changed");
    case_destroy(second);
    case_destroy(third);
}

static void a_part_of_a_volume_is_apart(void)
{
    const char *volume = case_hook_volume();
    const char *all = place("all"), *mine = place("mine"), *file = case_text("%s/file", mine);
    const char *part = case_text("%s/part/file", all);
    sprov_sandbox *maker = case_fresh(case_text("{\"mounts\":[%s]}", volume_of(volume, all, "")));
    case_sh(maker, "cd %s && mkdir part other && echo one > other/file", all);
    sprov_sandbox *sandbox = case_create(
        case_text("{\"mounts\":[%s,%s]}", volume_of(volume, all, ",\"readOnly\":true"),
                  volume_of(volume, mine, ",\"volumeOptions\":{\"subpath\":\"part\"}")));
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("%s", case_text("%s", case_last_error()->message));
    CHECK_STATUS(status, SPROV_OK);
    const char *token = case_token();
    case_write(sandbox, file, case_bytes(token), 0);
    CHECK_TEXT(case_read(sandbox, part), token);
    CHECK_TEXT(case_sh(maker, "cat %s", part).out, token);
    CHECK_TEXT(case_sh(sandbox, "ls %s", mine).out, "file\n");
    refuses_to_write(sandbox, part);
    refuses_to_write(sandbox, case_text("%s/other/file", all));
    case_destroy(sandbox);
    case_destroy(maker);
}

/* ---- memory, and what is read-only */

static void files_work_in_memory(void)
{
    const char *scratch = place("scratch");
    sprov_sandbox *sandbox =
        case_fresh(case_text("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"%s\"}]}", scratch));
    if (can_write_in(sandbox, scratch))
        files_work_in(sandbox, scratch);
    /* What a command has put there is read, or said to be out of reach, never missing. */
    const char *token = case_token();
    CaseBytes bytes;
    case_sh(sandbox, "printf %%s %s > %s/by-command", token, scratch);
    sprov_status status = case_try_read(sandbox, case_text("%s/by-command", scratch), &bytes);
    CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_OK);
    CHECK_TEXT(bytes, status == SPROV_OK ? token : "");
}

static void a_read_only_root_is_kept(void)
{
    sprov_sandbox *sandbox = NULL;
    const char *work = place("work");
    if (case_try_create(
            case_text("{\"readonlyRootfs\":true,\"workingDirectory\":\"%s\",\"mounts\":[{"
                      "\"type\":\"tmpfs\",\"target\":\"%s\"}]}",
                      work, work),
            &sandbox) != SPROV_OK)
        case_skip("the provider takes no readonlyRootfs");
    case_start(sandbox);
    refuses_to_open(sandbox, "/etc/passwd");
    refuses_to_write(sandbox, case_text("/%s", case_token()));
    CHECK(case_read(sandbox, "/etc/passwd").size > 0);
    if (can_write_in(sandbox, work))
        files_work_in(sandbox, work);
}

const Case cases_mounts[] = {
    {"MNT-01", 2, "mounts @folder", "a folder of the host is seen both ways, or only looked at",
     "10.3", folders_are_seen_both_ways, 2},
    {"MNT-02", 2, "mounts @volume", "a named volume outlives its sandboxes, and several share it",
     "10.3", volumes_outlive_sandboxes, 3},
    {"MNT-03", 2, "mounts @volume", "a part of a volume is writable where the whole is not", "7.8",
     a_part_of_a_volume_is_apart, 3},
    {"MNT-08", 3, "mounts @folder", "propagation is kept or refused, never dropped", "7.8",
     propagation_is_kept_or_refused},
    {"RDF-08", 2, "mounts", "files in memory are read and written, or said to be out of reach",
     "10.3", files_work_in_memory, 2},
    {"RDF-10", 2, "mounts @folder", "files in a folder of the host are read and written", "10.3",
     a_file_works_in_a_folder_of_the_host, 2},
    {"WRF-10", 2, "mounts", "a read-only root is not written, and mounts in it are", "10.6",
     a_read_only_root_is_kept, 2},
    {0},
};
