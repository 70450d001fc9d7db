#include "local/stray.h"

#include "base/proc.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The argument behind this one; NULL at the end. */
static const char *next(const char *argument, const char *end)
{
    const char *behind = argument ? argument + strlen(argument) + 1 : end;
    return behind < end ? behind : NULL;
}

static bool is(const char *argument, const char *wanted)
{
    return argument && strcmp(argument, wanted) == 0;
}

/* Nobody else binds a sandbox's workspace. */
static bool binds(const char *argument, const char *end, const char *folder)
{
    g_autofree char *workspace = g_build_filename(folder, "workspace", NULL);
    for (; argument; argument = next(argument, end)) {
        if (is(argument, "--bind") && is(next(argument, end), workspace))
            return true;
    }
    return false;
}

/* As local_plan_argv() makes them. */
bool local_stray_is_of(const char *arguments, gsize size, const char *folder, bool *ret_is_isolated)
{
    g_autofree char *supervisor = g_build_filename(folder, "supervisor", NULL);
    if (size == 0 || arguments[size - 1] != '\0')
        return false;
    const char *end = arguments + size;
    const char *second = next(arguments, end);
    g_autofree char *program = g_path_get_basename(arguments);
    *ret_is_isolated = strcmp(program, "bwrap") == 0;
    return *ret_is_isolated ? binds(second, end, folder)
                            : is(arguments, supervisor) && is(second, "init");
}

static bool is_own(const char *name)
{
    g_autofree char *path = g_build_filename("/proc", name, NULL);
    struct stat st;
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

static bool has(const GArray *strays, pid_t pid)
{
    for (guint i = 0; i < strays->len; i++) {
        if (g_array_index(strays, LocalStray, i).pid == pid)
            return true;
    }
    return false;
}

/* What a supervisor forked has its command line. */
static GArray *without_children(GArray *strays)
{
    GArray *first = g_array_new(FALSE, FALSE, sizeof(LocalStray));
    for (guint i = 0; i < strays->len; i++) {
        LocalStray stray = g_array_index(strays, LocalStray, i);
        if (!has(strays, spr_proc_parent(stray.pid)))
            g_array_append_val(first, stray);
    }
    g_array_unref(strays);
    return first;
}

GArray *local_stray_find(const char *folder)
{
    GArray *strays = g_array_new(FALSE, FALSE, sizeof(LocalStray));
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        LocalStray stray = {.pid = (pid_t)atoi(entry->d_name)};
        g_autofree char *path = g_build_filename("/proc", entry->d_name, "cmdline", NULL);
        g_autofree char *arguments = NULL;
        gsize size;
        if (stray.pid > 0 && is_own(entry->d_name) &&
            g_file_get_contents(path, &arguments, &size, NULL) &&
            local_stray_is_of(arguments, size, folder, &stray.is_isolated))
            g_array_append_val(strays, stray);
    }
    if (dir)
        closedir(dir);
    return without_children(strays);
}
