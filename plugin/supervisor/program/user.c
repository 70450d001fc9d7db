#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE (4u << 20)
#define MAX_LINE 16384

/* One file of colon-separated lines, read line by line. A line that is too long is passed over. */
typedef struct {
    char *text;
    size_t room, size, at;
    char line[MAX_LINE];
    char *fields[7];
} Table;

/* Whatever the sandbox put there: a pipe must not block, a huge file not fill the memory. */
static void table_open(Table *table, const char *path)
{
    table->text = NULL;
    table->room = table->size = table->at = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        size_t room = st.st_size < (off_t)MAX_FILE ? (size_t)st.st_size : MAX_FILE;
        char *text = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (text != MAP_FAILED) {
            table->text = text;
            table->room = room;
            ssize_t n;
            while (table->size < room && (n = read(fd, text + table->size, room - table->size)) > 0)
                table->size += (size_t)n;
        }
    }
    close(fd);
}

static void table_close(Table *table)
{
    if (table->room > 0)
        munmap(table->text, table->room);
}

/* Splits the next line into `wanted` fields; the last takes the rest. */
static bool table_next(Table *table, int wanted)
{
    while (table->at < table->size) {
        char *start = table->text + table->at;
        char *end = memchr(start, '\n', table->size - table->at);
        size_t length = end ? (size_t)(end - start) : table->size - table->at;
        table->at += length + 1;
        if (length >= sizeof table->line)
            continue;
        memcpy(table->line, start, length);
        table->line[length] = '\0';
        char *rest = table->line;
        int n = 0;
        while (n < wanted - 1 && rest) {
            table->fields[n++] = rest;
            rest = strchr(rest, ':');
            if (rest)
                *rest++ = '\0';
        }
        if (!rest)
            continue;
        table->fields[n] = rest;
        return true;
    }
    return false;
}

static bool parse_id(const char *text, uint32_t *id)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0' || errno || value >= UINT32_MAX)
        return false;
    *id = (uint32_t)value;
    return true;
}

/* Fills uid, gid, home and name; a number needs no entry. */
static bool find_user(Table *table, const char *wanted, SupUser *user, char name[256])
{
    uint32_t number = 0, uid, gid;
    bool by_number = parse_id(wanted, &number), found = false;
    table_open(table, "/etc/passwd");
    while (!found && table_next(table, 7)) {
        char **f = table->fields;
        if (!parse_id(f[2], &uid) || !parse_id(f[3], &gid))
            continue;
        found = strcmp(f[0], wanted) == 0 || (by_number && uid == number);
        if (!found)
            continue;
        user->uid = uid;
        user->gid = gid;
        snprintf(user->home, sizeof user->home, "%s", f[5]);
        snprintf(name, 256, "%s", f[0]);
        if (user->home[0] == '\0')
            strcpy(user->home, "/");
    }
    table_close(table);
    if (!found && by_number) {
        user->uid = number;
        user->gid = 0;
        strcpy(user->home, "/");
        found = true;
    }
    return found;
}

static bool find_group(Table *table, const char *wanted, gid_t *ret_gid)
{
    uint32_t number = 0, gid;
    bool by_number = parse_id(wanted, &number), found = false;
    table_open(table, "/etc/group");
    while (!found && table_next(table, 4)) {
        if (strcmp(table->fields[0], wanted) == 0 && parse_id(table->fields[2], &gid)) {
            *ret_gid = gid;
            found = true;
        }
    }
    table_close(table);
    if (!found && by_number)
        *ret_gid = number;
    return found || by_number;
}

static void add_group(SupUser *user, gid_t gid)
{
    for (unsigned i = 0; i < user->n_groups; i++) {
        if (user->groups[i] == gid)
            return;
    }
    if (user->n_groups < SUP_MAX_GROUPS)
        user->groups[user->n_groups++] = gid;
}

static bool has_member(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; *at;) {
        const char *end = strchr(at, ',');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (length == size && memcmp(at, name, size) == 0)
            return true;
        at += length + (end != NULL);
    }
    return false;
}

static void add_groups_of(Table *table, const char *name, SupUser *user)
{
    uint32_t gid;
    table_open(table, "/etc/group");
    while (table_next(table, 4)) {
        if (parse_id(table->fields[2], &gid) && has_member(table->fields[3], name))
            add_group(user, gid);
    }
    table_close(table);
}

bool sup_user_find(const char *text, SupUser *user)
{
    static Table table;
    char wanted[256], name[256] = "";

    memset(user, 0, sizeof *user);
    if (text[0] == '\0')
        return true;
    if (strlen(text) >= sizeof wanted) {
        errno = EINVAL;
        return false;
    }
    strcpy(wanted, text);
    char *group = strchr(wanted, ':');
    if (group)
        *group++ = '\0';
    if (wanted[0] == '\0' || (group && group[0] == '\0')) {
        errno = EINVAL;
        return false;
    }
    if (!find_user(&table, wanted, user, name) ||
        (group && !find_group(&table, group, &user->gid))) {
        errno = ENOENT;
        return false;
    }
    add_group(user, user->gid);
    if (!group && name[0])
        add_groups_of(&table, name, user);
    if (user->uid == getuid() && user->gid == getgid())
        return true;
    user->change = true;
    if (geteuid() != 0) {
        errno = EPERM;
        return false;
    }
    return true;
}
