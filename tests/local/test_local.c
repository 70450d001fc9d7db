#include "base/error.h"
#include "local/cgroup.h"
#include "local/differences.h"
#include "local/options.h"
#include "local/plan.h"
#include "local/store.h"
#include "local/stray.h"
#include "local/tree.h"
#include "options/json.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *new_folder(void)
{
    g_autoptr(GError) error = NULL;
    char *folder = g_dir_make_tmp("sprov-local-XXXXXX", &error);
    cr_assert(folder);
    return folder;
}

/* ------------------------------------------------------------------------------- options */

static void is_refused(const char *json, SprErrorCode code, const char *name)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    g_autoptr(GError) error = NULL;
    cr_expect_not(dkr_sandbox_options_parse(json, &options, &error), "%s", json);
    cr_expect(spr_error_is(error, code, NULL), "%s: %d", json, error ? error->code : 0);
    cr_expect(error && g_str_has_prefix(error->message, name), "%s: %s", json,
              error ? error->message : "");
}

Test(local_options, that_cannot_be_kept_are_refused_by_name)
{
    static const char *const json[][2] = {
        {"{\"image\":\"debian\"}", "image: "},
        {"{\"template\":\"x\"}", "template: "},
        {"{\"volumes\":{\"/a\":\"/b\"}}", "volumes: "},
        {"{\"mounts\":[{\"type\":\"volume\",\"source\":\"a\",\"target\":\"/a\"}]}",
         "mounts[0].type: "},
        {"{\"mounts\":[{\"type\":\"bind\",\"source\":\"/a\",\"target\":\"/"
         "a\",\"bindOptions\":{}}]}",
         "mounts[0].bindOptions: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\",\"readOnly\":true}]}", "mounts[0]: "},
        {"{\"tmpfs\":{\"/a\":\"size=1k,noexec\"}}", "tmpfs[\"/a\"]: "},
        {"{\"tmpfs\":{\"/a\":\"size=0\"}}", "tmpfs[\"/a\"]: "},
        {"{\"isolation\":\"none\",\"tmpfs\":{\"/a\":\"\"}}", "mounts: "},
        {"{\"privileged\":true}", "privileged: "},
        {"{\"network\":\"bridge\"}", "network: "},
        {"{\"init\":false}", "init: "},
        {"{\"supervisor\":\"off\"}", "supervisor: "},
        {"{\"transport\":\"stream\"}", "transport: "},
        {"{\"cpus\":2}", "cpus: "},
        {"{\"capAdd\":[\"SYS_ADMIN\"]}", "capAdd: "},
        {"{\"user\":\"12345\"}", "user: "},
        {"{\"isolation\":\"none\",\"network\":\"none\"}", "network: "},
        {"{\"isolation\":\"none\",\"workingDirectory\":\"/w\"}", "workingDirectory: "},
        {"{\"isolation\":\"none\",\"capDrop\":[\"ALL\"]}", "capDrop: "},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(json); i++)
        is_refused(json[i][0], SPR_E_UNSUPPORTED, json[i][1]);
    is_refused("{\"isolation\":\"chroot\"}", SPR_E_INVALID_ARGUMENT, "isolation: ");
    is_refused("{\"capDrop\":[\"cap_net_raw\",\"ALL\",\"NOPE\"]}", SPR_E_INVALID_ARGUMENT,
               "capDrop[2]: ");
    is_refused("{\"capDrop\":[\"CAP_CAP_CHOWN\"]}", SPR_E_INVALID_ARGUMENT, "capDrop[0]: ");
    is_refused("{\"workingDirectory\":\"/usr\"}", SPR_E_INVALID_ARGUMENT, "workingDirectory: ");
    is_refused("{\"workingDirectory\":\"/tmp/../usr\"}", SPR_E_INVALID_ARGUMENT,
               "workingDirectory: ");
    is_refused("{\"workingDirectory\":\"w\"}", SPR_E_INVALID_ARGUMENT, "workingDirectory: ");
}

Test(local_options, that_mount_twice_or_over_what_is_there_are_wrong)
{
    static const char *const json[][2] = {
        {"{\"mounts\":{}}", "mounts: "},
        {"{\"mounts\":[{\"type\":\"bind\",\"target\":\"/a\"}]}", "mounts[0].source: "},
        {"{\"mounts\":[{\"type\":\"bind\",\"source\":\"a\",\"target\":\"/a\"}]}",
         "mounts[0].source: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/usr/x\"}]}", "mounts[0].target: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/\"}]}", "mounts[0].target: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"source\":\"/b\",\"target\":\"/a\"}]}",
         "mounts[0].source: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"},{\"type\":\"tmpfs\",\"target\":\"/a/"
         "\"}]}",
         "mounts[1].target: "},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"}],\"tmpfs\":{\"//a\":\"\"}}",
         "tmpfs[\"//a\"]: "},
        {"{\"tmpfs\":{\"/proc\":\"\"}}", "tmpfs[\"/proc\"]: "},
        {"{\"tmpfs\":{\"/a\":5}}", "tmpfs[\"/a\"]: "},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(json); i++)
        is_refused(json[i][0], SPR_E_INVALID_ARGUMENT, json[i][1]);
}

/* Those of the engine's schema that local.so does not keep are known, too. */
Test(local_options, that_are_known_are_those_of_the_schemas)
{
    static const char *const schemas[] = {"local-sandbox.json", "sandbox.json"};
    for (gsize i = 0; i < G_N_ELEMENTS(schemas); i++) {
        g_autofree char *path = g_build_filename(SOURCE_DIR "/abi/schema", schemas[i], NULL);
        json_auto_t *schema = json_load_file(path, 0, NULL);
        const char *key;
        json_t *value;
        cr_assert_gt(json_object_size(json_object_get(schema, "properties")), 15);
        json_object_foreach(json_object_get(schema, "properties"), key, value)
        {
            g_autoptr(DkrSandboxOptions) options = NULL;
            g_autoptr(GError) error = NULL;
            g_autofree char *json = g_strdup_printf("{\"%s\":null}", key);
            cr_assert_not(dkr_sandbox_options_parse(json, &options, &error));
            cr_expect_not(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "unknown-option"), "%s", key);
        }
    }
}

Test(local_options, ask_for_bubblewrap_without_network_unless_they_say_otherwise)
{
    g_autoptr(DkrSandboxOptions) options = NULL, plain = NULL;
    cr_assert(dkr_sandbox_options_parse(NULL, &options, NULL));
    cr_assert_str_eq(options->isolation, "bubblewrap");
    cr_assert_str_eq(options->network, "none");
    cr_assert(dkr_sandbox_options_common(options).auto_start);
    cr_assert_eq(dkr_sandbox_options_common(options).timeout_ms, 300000);
    cr_assert(dkr_sandbox_options_parse("{\"isolation\":\"none\"}", &plain, NULL));
    cr_assert_str_eq(plain->network, "host");
}

Test(local_options, what_is_so_anyway_may_be_asked_for)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(dkr_sandbox_options_parse(
                  "{\"init\":true,\"privileged\":false,\"supervisor\":\"required\","
                  "\"transport\":\"socket\",\"capDrop\":[\"ALL\"],\"network\":\"none\","
                  "\"pidsLimit\":-1,\"memory\":0}",
                  &options, &error),
              "%s", error ? error->message : "");
    cr_assert_eq(options->pids_limit.value, 0);
}

/* ---------------------------------------------------------------------------------- plan */

static char *line_of(const char *json)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, NULL));
    LocalRecord record = {.id = (char *)"a/b",
                          .isolation = options->isolation,
                          .network = options->network,
                          .hostname = options->hostname,
                          .mounts = options->mounts,
                          .workdir = local_plan_workdir(options, "/run/x")};
    g_auto(GStrv) argv = local_plan_argv(&record, "/run/x", "/usr/bin/bwrap");
    g_free(record.workdir);
    return g_strjoinv(" ", argv);
}

Test(local_plan, shares_no_namespace_but_the_network_that_is_asked_for)
{
    g_autofree char *line = line_of("{}");
    g_autofree char *open = line_of("{\"network\":\"host\"}");
    static const char *const all[] = {"--unshare-user", "--unshare-pid", "--unshare-ipc",
                                      "--unshare-uts"};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        cr_expect(strstr(line, all[i]));
        cr_expect(strstr(open, all[i]));
    }
    cr_expect(strstr(line, "--unshare-net"));
    cr_expect_not(strstr(open, "--unshare-net"));
    cr_expect_not(strstr(line, "resolv.conf"));
    cr_expect(strstr(open, "resolv.conf"));
    cr_expect(strstr(line, "--hostname a-b "));
}

Test(local_plan, binds_nothing_of_the_host_to_be_written_but_the_folders_of_the_sandbox)
{
    g_autofree char *line = line_of("{}");
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    for (guint i = 0; words[i]; i++) {
        if (strcmp(words[i], "--bind") == 0)
            cr_expect(g_str_has_prefix(words[i + 1], "/run/x/"), "%s", words[i + 1]);
        cr_expect(strcmp(words[i], "--dev-bind") != 0);
    }
}

Test(local_plan, mounts_what_lies_in_another_behind_it)
{
    g_autofree char *line =
        line_of("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/given/"
                "in\",\"tmpfsOptions\":{\"mode\":448}},"
                "{\"type\":\"bind\",\"source\":\"/srv\",\"target\":\"/given\",\"readOnly\":true}],"
                "\"tmpfs\":{\"/small\":\"size=64k\"}}");
    const char *given = strstr(line, "--ro-bind /srv /given ");
    const char *inside = strstr(line, "--perms 0700 --tmpfs /given/in ");
    cr_assert(given && inside && given < inside, "%s", line);
    cr_assert(strstr(line, "--perms 1777 --size 65536 --tmpfs /small "), "%s", line);
    cr_assert(strstr(line, "--remount-ro / ") > inside);
}

Test(local_plan, puts_the_workspace_where_it_is_wanted)
{
    g_autofree char *plain = line_of("{}");
    g_autofree char *below = line_of("{\"workingDirectory\":\"/tmp/deep\"}");
    g_autofree char *tmp = line_of("{\"workingDirectory\":\"/tmp\"}");
    g_autofree char *root = line_of("{\"workingDirectory\":\"/\"}");
    cr_expect(strstr(plain, "--bind /run/x/workspace /workspace"));
    const char *first = strstr(below, "/run/x/tmp /tmp ");
    cr_expect(first && strstr(first, "--bind /run/x/workspace /tmp/deep"));
    cr_expect(strstr(tmp, "--bind /run/x/workspace /tmp "));
    cr_expect_not(strstr(tmp, "/run/x/tmp"));
    cr_expect(strstr(root, "--bind /run/x/workspace /workspace") && strstr(root, "--chdir / "));
}

Test(local_plan, hands_down_nothing_of_the_environment_of_the_host)
{
    DkrPair own[] = {{(char *)"A", (char *)"1"}, {(char *)"HOME", (char *)"/h"}};
    LocalRecord record = {
        .isolation = (char *)"bubblewrap", .workdir = (char *)"/workspace", .env = {own, 2}};
    g_auto(GStrv) env = local_plan_environment(&record, "/run/x");
    cr_assert_eq(g_strv_length(env), 3);
    cr_assert_str_eq(g_environ_getenv(env, "A"), "1");
    cr_assert_str_eq(g_environ_getenv(env, "HOME"), "/h");
    cr_assert(g_environ_getenv(env, "PATH"));
}

/* -------------------------------------------------------------------------------- limits */

/* What a kernel would show: groups are folders, limits files that are there. */
static void make_group(const char *root, const char *path, const char *controllers)
{
    g_autofree char *folder = g_build_filename(root, path, NULL);
    g_autofree char *control = g_build_filename(folder, "cgroup.subtree_control", NULL);
    g_autofree char *all = g_build_filename(root, "cgroup.controllers", NULL);
    cr_assert_eq(g_mkdir_with_parents(folder, 0700), 0);
    cr_assert(g_file_set_contents(control, controllers, -1, NULL));
    cr_assert(g_file_set_contents(all, "memory pids\n", -1, NULL));
}

/* A kernel makes the files of a new group; here they are there before it is made. */
static void make_files(const char *root, const char *path)
{
    static const char *const names[] = {"memory.max", "memory.swap.max", "pids.max"};
    g_autofree char *folder = g_build_filename(root, path, NULL);
    cr_assert_eq(g_mkdir_with_parents(folder, 0700), 0);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_build_filename(folder, names[i], NULL);
        cr_assert(g_file_set_contents(file, "", 0, NULL));
    }
}

static void expect_file(const char *folder, const char *name, const char *wanted)
{
    g_autofree char *file = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    cr_assert(g_file_get_contents(file, &text, NULL, NULL));
    cr_expect_str_eq(g_strchomp(text), wanted);
}

Test(local_limits, are_set_in_the_nearest_group_that_hands_the_controllers_down)
{
    g_autofree char *root = new_folder();
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    LocalLimits limits = {.memory = 1 << 20, .pids = 64};
    make_group(root, "user/app/mine", "");
    make_group(root, "user/app", "pids\n");
    make_group(root, "user", "cpu memory pids\n");
    make_group(root, "", "memory pids\n");
    make_files(root, "user/sprov-x");
    cr_assert(local_cgroup_make_below(root, "1:name=systemd:/\n0::/user/app/mine\n", &limits, "x",
                                      &path, &error),
              "%s", error ? error->message : "");
    g_autofree char *wanted = g_build_filename(root, "user/sprov-x", NULL);
    cr_assert_str_eq(path, wanted);
    expect_file(path, "memory.max", "1048576");
    expect_file(path, "memory.swap.max", "0");
    expect_file(path, "pids.max", "64");
    cr_assert(local_tree_remove(root, NULL));
}

Test(local_limits, that_cannot_be_kept_are_refused_by_name_and_leave_nothing)
{
    g_autofree char *root = new_folder();
    g_autofree char *path = NULL;
    g_autoptr(GError) memory = NULL, pids = NULL;
    LocalLimits both = {.memory = 1 << 20, .pids = 64}, few = {.pids = 3};
    make_group(root, "mine", "");
    make_group(root, "", "memory\n");
    cr_assert_not(local_cgroup_make_below(root, "0::/mine\n", &both, "x", &path, &memory));
    cr_assert(spr_error_is(memory, SPR_E_UNSUPPORTED, "no-cgroup"));
    cr_assert(g_str_has_prefix(memory->message, "memory: "));
    cr_assert_not(local_cgroup_make_below(root, "0::/mine\n", &few, "x", &path, &pids));
    cr_assert(g_str_has_prefix(pids->message, "pidsLimit: "));
    g_autofree char *left = g_build_filename(root, "sprov-x", NULL);
    cr_assert_null(path);
    cr_assert_neq(access(left, F_OK), 0);
    cr_assert(local_tree_remove(root, NULL));
}

Test(local_limits, nobody_asked_for_need_no_group)
{
    g_autofree char *path = NULL;
    LocalLimits none = {0};
    cr_assert(local_cgroup_make_below("/nonexistent", "", &none, "x", &path, NULL));
    cr_assert_null(path);
}

/* --------------------------------------------------------------------------------- trees */

Test(local_tree, goes_however_deep_it_is_and_whoever_may_enter_it)
{
    g_autofree char *root = new_folder();
    int fd = open(root, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000; i++) {
        cr_assert_eq(mkdirat(fd, "d", 0700), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        int file = openat(fd, "f", O_CREAT | O_WRONLY, 0);
        cr_assert(next >= 0 && file >= 0);
        close(file);
        if (i % 7 == 0)
            fchmod(fd, 0);
        close(fd);
        fd = next;
    }
    close(fd);
    g_autoptr(GError) error = NULL;
    cr_assert(local_tree_remove(root, &error), "%s", error ? error->message : "");
    cr_assert_neq(access(root, F_OK), 0);
}

Test(local_tree, takes_links_and_not_what_they_lead_to)
{
    g_autofree char *root = new_folder();
    g_autofree char *other = new_folder();
    g_autofree char *kept = g_build_filename(other, "kept", NULL);
    g_autofree char *link = g_build_filename(root, "link", NULL);
    g_autofree char *old = g_build_filename(root, "removed-0", NULL);
    g_autofree char *inside = g_build_filename(root, "a", "b", "c", NULL);
    cr_assert(g_file_set_contents(kept, "x", 1, NULL));
    cr_assert_eq(symlink(other, link), 0);
    cr_assert_eq(g_mkdir_with_parents(old, 0700), 0);
    cr_assert_eq(g_mkdir_with_parents(inside, 0700), 0);
    cr_assert(local_tree_remove(root, NULL));
    cr_assert_eq(access(kept, F_OK), 0);
    cr_assert(local_tree_remove(root, NULL), "that there is none is success");
    cr_assert(local_tree_remove(other, NULL));
}

/* --------------------------------------------------------------------------- differences */

/* What a handle with these options is told of a sandbox that was made with those. */
static void differs(const char *made, const char *asked, const char *wanted)
{
    g_autoptr(DkrSandboxOptions) maker = NULL;
    g_autoptr(DkrSandboxOptions) options = NULL;
    cr_assert(dkr_sandbox_options_parse(made, &maker, NULL), "%s", made);
    cr_assert(dkr_sandbox_options_parse(asked, &options, NULL), "%s", asked);
    g_autofree char *workdir = local_plan_workdir(maker, "/folder");
    g_autofree char *own = local_plan_workdir(options, "/folder");
    LocalRecord record = {.isolation = maker->isolation,
                          .network = maker->network,
                          .hostname = maker->hostname,
                          .workdir = workdir,
                          .memory = maker->memory.value,
                          .pids = maker->pids_limit.value,
                          .labels = maker->labels,
                          .mounts = maker->mounts};
    g_autofree char *told = local_differences(options, &record, own);
    cr_expect(g_strcmp0(told, wanted) == 0, "%s, %s: %s", made, asked, told);
}

Test(local_differences, are_told_of_what_was_asked_for_alone)
{
    const char *full = "{\"hostname\":\"h\",\"memory\":5,\"pidsLimit\":9,\"labels\":{\"a\":\"b\"},"
                       "\"tmpfs\":{\"/x\":\"size=1k\"},\"workingDirectory\":\"/w\","
                       "\"mounts\":[{\"type\":\"bind\",\"source\":\"/s\",\"target\":\"/t\"}]}";
    differs(full, full, NULL);
    differs(full, "{}", NULL);
    differs(full,
            "{\"workingDirectory\":\"/w/.\",\"mounts\":[{\"type\":\"bind\",\"source\":\"/s\","
            "\"target\":\"/t\",\"readOnly\":false}],\"tmpfs\":{\"/x\":\"rw,size=1024\"}}",
            NULL);
    differs("{}", "{\"labels\":{},\"mounts\":[],\"tmpfs\":{},\"capDrop\":[],\"pidsLimit\":-1}",
            NULL);
    differs(full, "{\"mounts\":[]}", "mounts");
    differs(full, "{\"tmpfs\":{}}", "mounts");
    differs(full, "{\"labels\":{\"a\":\"secret\",\"b\":\"c\"}}", "labels[\"a\"], labels[\"b\"]");
    differs(full, "{\"hostname\":\"g\"}", "hostname (asked for \"g\", it has \"h\")");
    differs("{}", "{\"hostname\":\"g\"}", "hostname (asked for \"g\", it has its default)");
    differs(full, "{\"memory\":0,\"pidsLimit\":8}",
            "memory (asked for no limit, it has 5), pidsLimit (asked for 8, it has 9)");
    differs(full, "{\"network\":\"host\",\"workingDirectory\":\"/v\"}",
            "network (asked for \"host\", it has \"none\"), "
            "workingDirectory (asked for \"/v\", it has \"/w\")");
}

/* -------------------------------------------------------------------------------- strays */

/* Words with a space between them. */
static bool runs_sandbox(const char *line, bool *ret_is_isolated)
{
    g_autofree char *arguments = g_strdup(line);
    gsize size = strlen(line) + 1;
    for (gsize i = 0; i < size; i++)
        arguments[i] = arguments[i] == ' ' ? '\0' : arguments[i];
    return local_stray_is_of(arguments, size, "/s/local/12", ret_is_isolated);
}

Test(local_strays, are_known_by_the_command_lines_that_a_plan_makes)
{
    static const char *const others[] = {"/bin/tail -f /s/local/12/workspace",
                                         "/bin/tail --bind /s/local/12/workspace",
                                         "bwrap --ro-bind /s/local/12/workspace /x",
                                         "bwrap --bind /s/local/12/workspace2 /x",
                                         "bwrap --bind",
                                         "bwrap",
                                         "/s/local/12/supervisor detach /s/local/12",
                                         "/s/local/12/supervisor",
                                         "supervisor init run"};
    bool is_isolated;
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        cr_expect_not(runs_sandbox(others[i], &is_isolated), "%s", others[i]);
    cr_expect_not(local_stray_is_of("", 0, "/s/local/12", &is_isolated));
    cr_expect_not(local_stray_is_of("bwrap", 5, "/s/local/12", &is_isolated));
    cr_assert(
        runs_sandbox("/usr/bin/bwrap --dev /dev --bind /s/local/12/workspace /w", &is_isolated));
    cr_assert(is_isolated);
    cr_assert(runs_sandbox("/s/local/12/supervisor init run --dial run/boot", &is_isolated));
    cr_assert_not(is_isolated);
}

/* --------------------------------------------------------------------------------- store */

Test(local_store, gives_back_what_it_was_given_and_nothing_after_a_removal)
{
    g_autofree char *base = new_folder();
    LocalStore *store = local_store_new(base);
    DkrPair pair = {(char *)"k", (char *)"v\n\""};
    LocalRecord record = {.id = (char *)"id/..\n",
                          .isolation = (char *)"bubblewrap",
                          .network = (char *)"none",
                          .workdir = (char *)"/w",
                          .memory = 5,
                          .labels = {&pair, 1},
                          .pid = 77,
                          .start_time = 1234567890123};
    g_autoptr(LocalRecord) read = NULL;
    SprWait wait = spr_wait_for(5000);
    int lock;
    cr_assert(local_store_lock(store, record.id, &wait, &lock, NULL));
    cr_assert(local_store_write(store, &record, NULL));
    cr_assert(local_store_read(store, record.id, &read, NULL));
    cr_assert_str_eq(read->id, record.id);
    cr_assert_str_eq(read->labels.items[0].value, pair.value);
    cr_assert_eq(read->start_time, record.start_time);
    cr_assert_null(read->name);
    SprWait soon = spr_wait_for(50);
    int other;
    cr_assert_not(local_store_lock(store, record.id, &soon, &other, NULL));
    cr_assert(local_store_remove(store, record.id, NULL));
    local_store_unlock(store, record.id, lock);
    g_clear_pointer(&read, local_record_free);
    cr_assert(local_store_read(store, record.id, &read, NULL));
    cr_assert_null(read);
    local_store_free(store);
    g_autofree char *inner = g_build_filename(base, "local", NULL);
    cr_assert_eq(rmdir(inner), 0, "a lock is left");
    cr_assert_eq(rmdir(base), 0);
}

Test(local_store, refuses_a_folder_that_others_enter)
{
    g_autofree char *base = new_folder();
    LocalStore *store = local_store_new(base);
    SprWait wait = spr_wait_for(1000);
    g_autoptr(GError) error = NULL;
    int lock;
    chmod(base, 0755);
    cr_assert_not(local_store_lock(store, "x", &wait, &lock, &error));
    cr_assert(spr_error_is(error, SPR_E_DENIED, "runtime-dir"));
    local_store_free(store);
    cr_assert_eq(rmdir(base), 0);
}
