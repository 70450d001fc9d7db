#include "local/plan.h"

#include <string.h>
#include <unistd.h>

#define PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define HOSTNAME_MOST 63

static bool is_isolated(const LocalRecord *record)
{
    return strcmp(record->isolation, LOCAL_BUBBLEWRAP) == 0;
}

char *local_plan_workdir(const DkrSandboxOptions *options, const char *folder)
{
    if (strcmp(options->isolation, LOCAL_BUBBLEWRAP) != 0)
        return g_build_filename(folder, "workspace", NULL);
    return g_strdup(options->working_directory ? options->working_directory
                                               : LOCAL_DEFAULT_DIRECTORY);
}

/* --------------------------------------------------------------------------- arguments */

G_GNUC_NULL_TERMINATED static void add(GStrvBuilder *argv, const char *first, ...)
{
    va_list words;
    va_start(words, first);
    for (const char *word = first; word; word = va_arg(words, const char *))
        g_strv_builder_add(argv, word);
    va_end(words);
}

static void add_bind(GStrvBuilder *argv, const char *how, const char *folder, const char *name,
                     const char *target)
{
    g_autofree char *source = g_build_filename(folder, name, NULL);
    add(argv, how, source, target, NULL);
}

/* Where /bin and its like are links into /usr, they are links inside too. */
static void add_system(GStrvBuilder *argv)
{
    static const char *const names[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    add(argv, "--ro-bind", "/usr", "/usr", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strconcat("/", names[i], NULL);
        g_autofree char *target = g_file_read_link(path, NULL);
        if (target)
            add(argv, "--symlink", target, path, NULL);
        else if (g_file_test(path, G_FILE_TEST_IS_DIR))
            add(argv, "--ro-bind", path, path, NULL);
    }
}

/* Of the host's /etc, what programs of /usr cannot do without and tells nothing of the host. */
static void add_etc(GStrvBuilder *argv, const LocalRecord *record, const char *folder)
{
    static const char *const hosts[] = {"alternatives",    "ld.so.cache", "ssl/certs",
                                        "ca-certificates", "pki",         "localtime",
                                        "mime.types"};
    static const char *const own[] = {"passwd", "group", "hosts", "nsswitch.conf"};
    for (gsize i = 0; i < G_N_ELEMENTS(hosts); i++) {
        g_autofree char *path = g_strconcat("/etc/", hosts[i], NULL);
        add(argv, "--ro-bind-try", path, path, NULL);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        g_autofree char *source = g_strconcat("etc/", own[i], NULL);
        g_autofree char *path = g_strconcat("/etc/", own[i], NULL);
        add_bind(argv, "--ro-bind", folder, source, path);
    }
    if (strcmp(record->network, "host") == 0)
        add(argv, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf", NULL);
}

static char *hostname(const LocalRecord *record)
{
    char *name = g_strndup(record->hostname ? record->hostname : record->id, HOSTNAME_MOST);
    if (!record->hostname)
        g_strcanon(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-", '-');
    return name;
}

static void add_namespaces(GStrvBuilder *argv, const LocalRecord *record)
{
    g_autofree char *uid = g_strdup_printf("%u", (unsigned)geteuid());
    g_autofree char *gid = g_strdup_printf("%u", (unsigned)getegid());
    g_autofree char *name = hostname(record);
    add(argv, "--unshare-user", "--disable-userns", "--uid", uid, "--gid", gid, "--unshare-pid",
        "--as-pid-1", "--unshare-ipc", "--unshare-uts", "--hostname", name, "--unshare-cgroup-try",
        "--cap-drop", "ALL", NULL);
    if (strcmp(record->network, "host") != 0)
        add(argv, "--unshare-net", NULL);
}

/* Settings of the kernel belong to the number 0 alone, without a question for capabilities: a root
 * that is none could write them. */
static void add_proc(GStrvBuilder *argv)
{
    static const char *const covered[] = {"sys",  "sysrq-trigger", "irq",  "bus",     "fs",
                                          "acpi", "scsi",          "mtrr", "pressure"};
    add(argv, "--proc", "/proc", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(covered); i++) {
        g_autofree char *path = g_strconcat("/proc/", covered[i], NULL);
        add(argv, "--ro-bind-try", path, path, NULL);
    }
}

/* What is below comes after what is above it: the workspace may be in /tmp. */
static void add_folders(GStrvBuilder *argv, const LocalRecord *record, const char *folder)
{
    const char *workspace =
        strcmp(record->workdir, "/") == 0 ? LOCAL_DEFAULT_DIRECTORY : record->workdir;
    add_proc(argv);
    add(argv, "--dev", "/dev", "--dir", "/run", "--symlink", "../tmp", "/var/tmp", NULL);
    if (strcmp(workspace, "/tmp") != 0)
        add_bind(argv, "--bind", folder, "tmp", "/tmp");
    add_bind(argv, "--bind", folder, "workspace", workspace);
    add_bind(argv, "--bind", folder, "run", LOCAL_OWN_DIRECTORY "/run");
    add_bind(argv, "--ro-bind", folder, "supervisor", LOCAL_OWN_DIRECTORY "/supervisor");
    local_mounts_add(&record->mounts, argv);
    add(argv, "--remount-ro", "/", "--chdir", record->workdir, NULL);
}

char **local_plan_argv(const LocalRecord *record, const char *folder, const char *bwrap)
{
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
    g_autofree char *program = g_build_filename(folder, "supervisor", NULL);
    add(argv, program, "detach", folder, NULL);
    if (record->cgroup)
        add(argv, "--cgroup", record->cgroup, NULL);
    add(argv, "--", NULL);
    if (is_isolated(record)) {
        add(argv, bwrap, NULL);
        add_namespaces(argv, record);
        add_system(argv);
        add_etc(argv, record, folder);
        add_folders(argv, record, folder);
        add(argv, "--", LOCAL_OWN_DIRECTORY "/supervisor", "init", LOCAL_OWN_DIRECTORY "/run",
            "--dial", LOCAL_OWN_DIRECTORY "/run/" LOCAL_BOOT_SOCKET, NULL);
    } else {
        /* Relative: the name of a socket has no room for a long path. */
        add(argv, program, "init", "run", "--dial", "run/" LOCAL_BOOT_SOCKET, NULL);
    }
    return g_strv_builder_end(argv);
}

/* ------------------------------------------------------------------------- environment */

/* Nothing of the host's own. */
char **local_plan_environment(const LocalRecord *record, const char *folder)
{
    char **env = NULL;
    g_autofree char *tmp = g_build_filename(folder, "tmp", NULL);
    env = g_environ_setenv(env, "PATH", PATH, true);
    env = g_environ_setenv(env, "HOME", record->workdir, true);
    if (!is_isolated(record))
        env = g_environ_setenv(env, "TMPDIR", tmp, true);
    for (size_t i = 0; i < record->env.count; i++)
        env = g_environ_setenv(env, record->env.items[i].name, record->env.items[i].value, true);
    return env;
}
