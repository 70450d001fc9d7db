#include "tree.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 32768
#define TOUCHED 1024
#define PATIENCE_MS 2000
#define MAX_PASSES 50
#define FEW 8

typedef struct {
    pid_t pid, parent, group, session;
    char state;
    bool ours;
} Process;

static Process table[MAX_PROCESSES];
static unsigned table_size;
static int proc_fd = -1;

void sup_tree_open(void)
{
    proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < TOUCHED; i += 4096 / sizeof table[0])
        ((volatile Process *)table)[i].pid = 0;
}

/* "pid (name) S parent group session ..."; the name may hold anything, even ") S 1". */
static bool parse_stat(char *text, Process *process)
{
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return false;
    process->state = at[2];
    at += 3;
    process->parent = (pid_t)strtol(at, &at, 10);
    process->group = (pid_t)strtol(at, &at, 10);
    process->session = (pid_t)strtol(at, &at, 10);
    process->ours = false;
    return true;
}

/* The start of /proc/PID/FILE, NUL-terminated: how many bytes, 0 where there is nothing. */
static size_t read_file(pid_t pid, const char *file, char *text, size_t room)
{
    char path[32];
    snprintf(path, sizeof path, "%d/%s", (int)pid, file);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return (size_t)n;
}

static bool read_stat(const char *name, Process *process)
{
    char text[512];
    process->pid = (pid_t)atoi(name);
    return read_file(process->pid, "stat", text, sizeof text) > 0 && parse_stat(text, process);
}

size_t sup_tree_sleeper(pid_t pid, char *words, size_t room)
{
    char name[16];
    Process process;
    snprintf(name, sizeof name, "%d", (int)pid);
    return read_stat(name, &process) && process.state == 'S'
               ? read_file(pid, "cmdline", words, room)
               : 0;
}

/* "Max realtime timeout SOFT HARD us" */
static bool has_mark(pid_t pid, uint64_t mark)
{
    static const char line[] = "Max realtime timeout";
    char text[4096];
    char *at = read_file(pid, "limits", text, sizeof text) ? strstr(text, line) : NULL;
    if (!at)
        return false;
    at += sizeof line - 1;
    strtoull(at, &at, 10);
    return strtoull(at, NULL, 10) == mark;
}

bool sup_mark_self(uint64_t mark)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_max != RLIM_INFINITY)
        return false;
    limit.rlim_cur = limit.rlim_max = mark;
    return setrlimit(RLIMIT_RTTIME, &limit) == 0 && has_mark(getpid(), mark);
}

struct linux_dirent {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Fills the table; /proc lists pids in rising order, which find() relies on. */
static void read_table(void)
{
    static char entries[8192] __attribute__((aligned(8)));
    table_size = 0;
    if (proc_fd < 0 || lseek(proc_fd, 0, SEEK_SET) < 0)
        return;
    long n;
    while ((n = syscall(SYS_getdents64, proc_fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < n;) {
            struct linux_dirent *entry = (void *)(entries + at);
            at += entry->size;
            if (entry->name[0] < '0' || entry->name[0] > '9' || table_size == MAX_PROCESSES)
                continue;
            if (read_stat(entry->name, &table[table_size]))
                table_size++;
        }
    }
}

static Process *find(pid_t pid)
{
    unsigned low = 0, high = table_size;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (table[middle].pid == pid)
            return &table[middle];
        if (table[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* A child has mostly a higher pid than its parent, so this ends after two rounds. */
static void mark_descendants(pid_t root)
{
    bool changed;
    do {
        changed = false;
        for (unsigned i = 0; i < table_size; i++) {
            if (table[i].ours || table[i].pid == root)
                continue;
            const Process *parent = table[i].parent == root ? NULL : find(table[i].parent);
            if (table[i].parent == root || (parent && parent->ours))
                table[i].ours = changed = true;
        }
    } while (changed);
}

static bool is_meant(const SupTree *tree, const Process *process)
{
    if (!process->ours || process->state == 'Z' || process->state == 'X')
        return false;
    if (tree->scope == SPR_WIRE_GROUP)
        return process->group == tree->leader;
    if (tree->scope == SPR_WIRE_LEADER)
        return process->pid == tree->leader;
    if (tree->mark)
        return has_mark(process->pid, tree->mark);
    return !tree->session || process->session == tree->leader;
}

static void send_signal(pid_t pid, int signal, SupTreeCount *count)
{
    count->alive++;
    if (signal != 0 && kill(pid, signal) < 0 && errno == EPERM)
        count->denied++;
}

/* What can be reached without /proc. */
static SupTreeCount signal_blindly(const SupTree *tree, int signal)
{
    SupTreeCount count = {0, 0};
    if (tree->leader > 0 && kill(tree->leader, 0) == 0)
        send_signal(tree->leader, signal, &count);
    if (tree->scope != SPR_WIRE_LEADER && tree->leader > 0 && kill(-tree->leader, 0) == 0)
        send_signal(-tree->leader, signal, &count);
    return count;
}

SupTreeCount sup_tree_signal(const SupTree *tree, int signal)
{
    if (proc_fd < 0)
        return signal_blindly(tree, signal);
    SupTreeCount count = {0, 0};
    read_table();
    mark_descendants(tree->root);
    for (unsigned i = 0; i < table_size; i++) {
        if (is_meant(tree, &table[i]))
            send_signal(table[i].pid, signal, &count);
    }
    return count;
}

static void nap(long us)
{
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

/* One pass: what runs, and what sleeps where it can't be stopped. A parent in vfork() is such a one
 * until its child, which may be stopped by now, goes on; the signal waits for it. */
static void stop_pass(const SupTree *tree, unsigned *ret_running, unsigned *ret_stuck)
{
    SupTreeCount count = {0, 0};
    unsigned stuck = 0;
    read_table();
    mark_descendants(tree->root);
    for (unsigned i = 0; i < table_size; i++) {
        if (!is_meant(tree, &table[i]) || table[i].state == 'T' || table[i].state == 't')
            continue;
        unsigned denied = count.denied;
        send_signal(table[i].pid, SIGSTOP, &count);
        if (count.denied == denied && table[i].state == 'D')
            stuck++;
    }
    *ret_running = count.alive - count.denied - stuck;
    *ret_stuck = stuck;
}

static void stop_all(const SupTree *tree, int64_t until)
{
    unsigned running = 0, stuck = 0, before = ~0u;
    for (int pass = 0; pass < MAX_PASSES && sup_now_ms() < until; pass++) {
        stop_pass(tree, &running, &stuck);
        if (running == 0 && (stuck == 0 || stuck == before))
            return;
        before = running == 0 ? stuck : ~0u;
        /* The last ones need time to stop; a bomb gets none. */
        if (pass >= 1 && running + stuck <= FEW)
            nap(pass < 10 ? 200 : 2000);
    }
}

bool sup_tree_kill(const SupTree *tree, SupReap (*reap)(int wait_ms))
{
    int64_t until = sup_after_ms(PATIENCE_MS);
    SupTreeCount count;
    do {
        if (proc_fd >= 0)
            stop_all(tree, until);
        count = sup_tree_signal(tree, SIGKILL);
        SupReap reaped;
        while ((reaped = reap(10)) == SUP_REAPED)
            ;
        if (reaped == SUP_NO_CHILD)
            return true;
        bool reaps_all =
            tree->scope == SPR_WIRE_TREE && !tree->session && !tree->mark && tree->root == getpid();
        if (!reaps_all && sup_tree_signal(tree, 0).alive == 0)
            return true;
    } while (sup_now_ms() < until && (count.alive == 0 || count.alive > count.denied));
    return false;
}
