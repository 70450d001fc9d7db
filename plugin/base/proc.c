#include "base/proc.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fields of /proc/PID/stat, counted behind the name. */
#define STATE_FIELD 0
#define PARENT_FIELD 1
#define START_TIME_FIELD 19

/* NULL when the process is not there. */
static char *stat_text(pid_t pid, guint field)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *stat = NULL;
    if (!g_file_get_contents(path, &stat, NULL, NULL))
        return NULL;
    char *behind_name = strrchr(stat, ')');
    g_auto(GStrv) fields = g_strsplit(behind_name ? g_strstrip(behind_name + 1) : "", " ", -1);
    return g_strv_length(fields) > field ? g_strdup(fields[field]) : NULL;
}

/* Of a field that is a number; 0 when the process is not there. */
static guint64 stat_field(pid_t pid, guint field)
{
    g_autofree char *text = stat_text(pid, field);
    return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

bool spr_proc_is_stopped(pid_t pid)
{
    g_autofree char *state = stat_text(pid, STATE_FIELD);
    return g_strcmp0(state, "T") == 0;
}

pid_t spr_proc_parent(pid_t pid)
{
    return (pid_t)stat_field(pid, PARENT_FIELD);
}

guint64 spr_proc_start_time(pid_t pid)
{
    return stat_field(pid, START_TIME_FIELD);
}

const char *spr_proc_boot_id(void)
{
    static char *id;
    static gsize once;
    if (g_once_init_enter(&once)) {
        if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &id, NULL, NULL))
            id = g_strdup("unknown");
        g_strstrip(id);
        g_once_init_leave(&once, 1);
    }
    return id;
}

int spr_proc_open(pid_t pid, guint64 start_time)
{
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd >= 0 && spr_proc_start_time(pid) == start_time)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

GArray *spr_proc_open_children(pid_t parent)
{
    GArray *children = g_array_new(FALSE, FALSE, sizeof(int));
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        int fd = pid > 0 && stat_field(pid, PARENT_FIELD) == (guint64)parent
                     ? spr_proc_open(pid, spr_proc_start_time(pid))
                     : -1;
        if (fd >= 0)
            g_array_append_val(children, fd);
    }
    if (dir)
        closedir(dir);
    return children;
}
