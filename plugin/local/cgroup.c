#include "local/cgroup.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define PREFIX "sprov-"
#define STEP_US (5 * 1000)

static bool write_file(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    gssize size = (gssize)strlen(text);
    bool ok = fd >= 0 && write(fd, text, (gsize)size) == size;
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return ok;
}

static bool write_number(const char *folder, const char *name, gint64 number)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, number);
    return write_file(folder, name, text);
}

static bool has_file(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return access(path, F_OK) == 0;
}

/* Whether the children of folder get the controller. */
static bool hands_down(const char *folder, const char *controller)
{
    g_autofree char *path = g_build_filename(folder, "cgroup.subtree_control", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);
    return g_strv_contains((const char *const *)words, controller);
}

static bool serves(const char *folder, const LocalLimits *limits)
{
    return (limits->memory == 0 || hands_down(folder, "memory")) &&
           (limits->pids == 0 || hands_down(folder, "pids"));
}

/* Memory that goes to disk instead would be no limit. */
static bool set_limits(const char *group, const LocalLimits *limits)
{
    if (limits->memory > 0 &&
        (!write_number(group, "memory.max", limits->memory) ||
         (has_file(group, "memory.swap.max") && !write_number(group, "memory.swap.max", 0))))
        return false;
    return limits->pids == 0 || write_number(group, "pids.max", limits->pids);
}

static bool make_in(const char *folder, const LocalLimits *limits, const char *name,
                    char **ret_path)
{
    g_autofree char *group = g_strdup_printf("%s/" PREFIX "%s", folder, name);
    if (!serves(folder, limits) || (mkdir(group, 0755) < 0 && errno != EEXIST))
        return false;
    if (!set_limits(group, limits)) {
        rmdir(group);
        return false;
    }
    *ret_path = g_steal_pointer(&group);
    return true;
}

/* The path of version 2 in /proc/self/cgroup, "/" where there is none. */
static char *own_path(const char *text)
{
    const char *line = g_str_has_prefix(text, "0::") ? text : strstr(text, "\n0::");
    if (!line)
        return g_strdup("/");
    line = strstr(line, "::") + 2;
    return g_strndup(line, strcspn(line, "\n"));
}

bool local_cgroup_make_below(const char *root, const char *text, const LocalLimits *limits,
                             const char *name, char **ret_path, GError **error)
{
    *ret_path = NULL;
    if (limits->memory == 0 && limits->pids == 0)
        return true;
    g_autofree char *own = own_path(text);
    g_autofree char *at = g_strconcat(root, strcmp(own, "/") == 0 ? "" : own, NULL);
    while (strlen(at) >= strlen(root) && has_file(root, "cgroup.controllers")) {
        if (make_in(at, limits, name, ret_path))
            return true;
        char *slash = strrchr(at, '/');
        if (strcmp(at, root) == 0 || !slash)
            break;
        *slash = '\0';
    }
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-cgroup",
                    "%s: no cgroup of version 2 that this user may change hands the controller "
                    "down: run the host by systemd-run --user --scope, or leave the option out",
                    limits->memory > 0 ? "memory" : "pidsLimit");
}

bool local_cgroup_make(const LocalLimits *limits, const char *name, char **ret_path, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
        text = g_strdup("");
    return local_cgroup_make_below(ROOT, text, limits, name, ret_path, error);
}

void local_cgroup_remove(const char *path, const SprWait *wait)
{
    int ready;
    if (!path || access(path, F_OK) < 0)
        return;
    write_file(path, "cgroup.kill", "1");
    while (rmdir(path) < 0 && errno == EBUSY &&
           spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + STEP_US, &ready, NULL))
        continue;
}
