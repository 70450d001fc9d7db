#include "check/orphans.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN 100

void orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_job(pid_t pid, Job *const *jobs, guint count)
{
    for (guint i = 0; i < count; i++) {
        if (jobs[i]->pid == pid)
            return true;
    }
    return false;
}

/* An ended job is the first of all until it is stepped; those behind it can wait so long. */
void orphans_reap(Job *const *jobs, guint count)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            is_job(info.si_pid, jobs, count))
            return;
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

/* Whether it is a child of parent that has not ended. */
static bool is_running_child(pid_t pid, pid_t parent)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *stat = NULL;
    char state;
    int above;
    if (!g_file_get_contents(path, &stat, NULL, NULL) || !strrchr(stat, ')') ||
        sscanf(strrchr(stat, ')') + 1, " %c %d", &state, &above) != 2)
        return false;
    return above == parent && state != 'Z' && state != 'X';
}

static GArray *children_of(pid_t parent)
{
    GArray *children = g_array_new(FALSE, FALSE, sizeof(pid_t));
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && is_running_child(pid, parent))
            g_array_append_val(children, pid);
    }
    if (dir)
        closedir(dir);
    return children;
}

/* With each its own children come to this process. */
guint orphans_end(void)
{
    guint ended = 0;
    for (;;) {
        g_autoptr(GArray) children = children_of(getpid());
        if (children->len == 0)
            break;
        ended += children->len;
        for (guint i = 0; i < children->len; i++) {
            pid_t pid = g_array_index(children, pid_t, i);
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
    }
    orphans_reap(NULL, 0);
    return ended;
}

static void append(GString *told, pid_t pid)
{
    g_autofree char *name_path = g_strdup_printf("/proc/%d/comm", (int)pid);
    g_autofree char *path = g_strdup_printf("/proc/%d/cmdline", (int)pid);
    g_autofree char *name = NULL;
    g_autofree char *line = NULL;
    gsize size = 0;
    g_file_get_contents(name_path, &name, NULL, NULL);
    g_file_get_contents(path, &line, &size, NULL);
    for (gsize i = 0; i + 1 < size; i++)
        line[i] = line[i] ? line[i] : ' ';
    g_string_append_printf(told, "%s%d %s (%.*s)", told->len ? ", " : "", (int)pid,
                           name ? g_strchomp(name) : "", SHOWN, line ? line : "");
}

char *orphans_tell(pid_t parent, pid_t but)
{
    g_autoptr(GArray) children = children_of(parent);
    g_autoptr(GString) told = g_string_new(NULL);
    for (guint i = 0; i < children->len; i++) {
        pid_t pid = g_array_index(children, pid_t, i);
        if (pid != but)
            append(told, pid);
    }
    return told->len ? g_strdup(told->str) : NULL;
}
