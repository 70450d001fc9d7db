#include "filetree.h"

#include "base.h"
#include "fileio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_DEPTH 1000
#define MOST_HARD_LINKS 65536u
#define BUCKETS 4096u

/* Where we are, below the path that was given; after a failure, where that was. */
static struct {
    char text[SPR_FILE_MAX_PATH];
    size_t size;
} where;

static int enter_name(const char *name)
{
    size_t size = strlen(name), gap = where.size > 0 && where.text[where.size - 1] != '/';
    if (where.size + gap + size >= sizeof where.text)
        return ENAMETOOLONG;
    if (gap)
        where.text[where.size] = '/';
    memcpy(where.text + where.size + gap, name, size + 1);
    where.size += gap + size;
    return 0;
}

static void leave_name(size_t before)
{
    where.size = before;
    where.text[before] = '\0';
}

static DIR *open_directory(int parent, const char *name, int more_flags)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | more_flags);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !directory)
        close(fd);
    return directory;
}

/* Calls each for every name, with the name in `where`. */
static int each_name(DIR *directory, int depth,
                     int (*each)(int directory, const char *name, int depth))
{
    int error = depth > MOST_DEPTH ? ELOOP : 0;
    while (error == 0 && !sup_fileio_is_broken()) {
        errno = 0;
        struct dirent *entry = readdir(directory);
        if (!entry)
            return errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        size_t before = where.size;
        error = enter_name(entry->d_name);
        if (error == 0)
            error = each(dirfd(directory), entry->d_name, depth);
        if (error == 0)
            leave_name(before);
    }
    return error;
}

static int descend(int parent, const char *name, int depth,
                   int (*each)(int directory, const char *name, int depth))
{
    DIR *directory = open_directory(parent, name, O_NOFOLLOW);
    if (!directory)
        return errno == ENOENT ? 0 : errno; /* gone in the meantime */
    int error = each_name(directory, depth + 1, each);
    closedir(directory);
    return error;
}

static int put_link(int directory, const char *name, const struct stat *st)
{
    char target[SPR_FILE_MAX_PATH];
    ssize_t n = readlinkat(directory, name, target, sizeof target - 1);
    if (n < 0)
        return errno == ENOENT || errno == EINVAL ? 0 : errno;
    target[n] = '\0';
    sup_fileio_entry(where.text, target, SPR_FILE_TYPE_LINK, st, 0);
    return 0;
}

/* ---------------------------------------------------------------------------------- list */

static int list_one(int directory, const char *name, int depth)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : errno;
    if (S_ISLNK(st.st_mode))
        return put_link(directory, name, &st);
    sup_fileio_entry(where.text, "", sup_fileio_type(st.st_mode), &st, 0);
    return 0;
}

static int list_all(int directory, const char *name, int depth)
{
    int error = list_one(directory, name, depth);
    struct stat st;
    if (error == 0 && fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(st.st_mode))
        error = descend(directory, name, depth, list_all);
    return error;
}

int sup_filetree_list(const char *path, bool recursive, const char **ret_where)
{
    leave_name(0);
    *ret_where = where.text;
    DIR *directory = open_directory(AT_FDCWD, path, 0);
    if (!directory)
        return errno;
    int error = each_name(directory, 0, recursive ? list_all : list_one);
    closedir(directory);
    return error;
}

/* ----------------------------------------------------------------------------------- get */

/* Files with several names, to pack each once. */
typedef struct HardLink {
    struct HardLink *next;
    dev_t device;
    ino_t inode;
    char path[];
} HardLink;

static struct {
    HardLink *buckets[BUCKETS];
    unsigned count;
    bool *status;
} packing;

static void forget_hard_links(void)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (HardLink *link; (link = packing.buckets[i]);) {
            packing.buckets[i] = link->next;
            free(link);
        }
    }
    packing.count = 0;
}

/* The name it was packed under, or NULL and it is remembered. */
static const char *packed_as(const struct stat *st)
{
    HardLink **bucket = &packing.buckets[st->st_ino % BUCKETS];
    for (HardLink *link = *bucket; link; link = link->next) {
        if (link->inode == st->st_ino && link->device == st->st_dev)
            return link->path;
    }
    HardLink *link = packing.count < MOST_HARD_LINKS ? malloc(sizeof *link + where.size + 1) : NULL;
    if (link) {
        *link = (HardLink){*bucket, st->st_dev, st->st_ino};
        memcpy(link->path, where.text, where.size + 1);
        *bucket = link;
        packing.count++;
    }
    return NULL;
}

static int pack_file(int directory, const char *name)
{
    struct stat st;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    int error = fstat(fd, &st) < 0 ? errno : 0;
    const char *other = error == 0 && st.st_nlink > 1 ? packed_as(&st) : NULL;
    if (other)
        sup_fileio_entry(where.text, other, SPR_FILE_TYPE_HARD_LINK, &st, 0);
    else if (error == 0)
        error = sup_fileio_send(fd, where.text, &st, 0, UINT64_MAX, true, packing.status);
    close(fd);
    return error;
}

/* A socket is nothing without the process that made it. */
static int pack_one(int directory, const char *name, int depth)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : errno;
    if (S_ISREG(st.st_mode))
        return pack_file(directory, name);
    if (S_ISLNK(st.st_mode))
        return put_link(directory, name, &st);
    if (S_ISSOCK(st.st_mode))
        return 0;
    sup_fileio_entry(where.text, "", sup_fileio_type(st.st_mode), &st, 0);
    return S_ISDIR(st.st_mode) ? descend(directory, name, depth, pack_one) : 0;
}

/* Names begin with the last part of path, or with "." where that is none. */
static int begin_names(const char *path)
{
    size_t end = strlen(path), start;
    while (end > 0 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/'; start--)
        ;
    char name[NAME_MAX + 1];
    if (end - start > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(name, path + start, end - start);
    name[end - start] = '\0';
    if (name[0] == '\0' || strcmp(name, "..") == 0)
        strcpy(name, ".");
    leave_name(0);
    return enter_name(name);
}

/* Only path itself is followed when it is a link. */
static int pack_root(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return SPR_FILE_E_SPECIAL;
    if (S_ISREG(st.st_mode)) {
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int error = fd < 0 || fstat(fd, &st) < 0 ? errno : 0;
        if (error == 0)
            error = sup_fileio_send(fd, where.text, &st, 0, UINT64_MAX, true, packing.status);
        sup_close(&fd);
        return error;
    }
    DIR *directory = open_directory(AT_FDCWD, path, 0);
    if (!directory)
        return errno;
    sup_fileio_entry(where.text, "", SPR_FILE_TYPE_DIRECTORY, &st, 0);
    int error = each_name(directory, 0, pack_one);
    closedir(directory);
    return error;
}

int sup_filetree_get(const char *path, const char **ret_where, bool *ret_status)
{
    *ret_where = where.text;
    *ret_status = true;
    packing.status = ret_status;
    int error = begin_names(path);
    if (error == 0)
        error = pack_root(path);
    forget_hard_links();
    return error;
}

/* -------------------------------------------------------------------------------- remove */

/* STATX_ATTR_MOUNT_ROOT; without it, another device tells. */
static bool is_mount(int directory, const char *name, const struct stat *st)
{
    uint64_t result[32] = {0};
    if (sup_statx(directory, name, 0, result) && result[7] & 0x2000)
        return result[1] & 0x2000;
    struct stat parent;
    return fstatat(directory, ".", &parent, 0) == 0 && parent.st_dev != st->st_dev;
}

static int remove_directory(int parent, const char *name, int depth);

static int remove_one(int directory, const char *name, int depth)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : errno;
    if (is_mount(directory, name, &st))
        return EBUSY;
    if (S_ISDIR(st.st_mode))
        return remove_directory(directory, name, depth);
    return unlinkat(directory, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

/* Again while others put something in; not for ever. */
static int remove_directory(int parent, const char *name, int depth)
{
    int error = ENOTEMPTY;
    for (int tries = 0; tries < 3 && error == ENOTEMPTY && !sup_fileio_is_broken(); tries++) {
        error = descend(parent, name, depth, remove_one);
        if (error == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            error = errno == EEXIST ? ENOTEMPTY : errno;
    }
    return error;
}

/* The directory of path and its last name. */
static int split(const char *path, char parent[SPR_FILE_MAX_PATH], char name[NAME_MAX + 1])
{
    size_t end = strlen(path), start;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/'; start--)
        ;
    if (end - start > NAME_MAX || start >= SPR_FILE_MAX_PATH)
        return ENAMETOOLONG;
    memcpy(name, path + start, end - start);
    name[end - start] = '\0';
    memcpy(parent, path, start);
    strcpy(parent + start, start == 0 ? "." : "");
    if (name[0] == '\0')
        return EBUSY; /* the root */
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? EINVAL : 0;
}

int sup_filetree_remove(const char *path, bool recursive, const char **ret_where)
{
    char parent[SPR_FILE_MAX_PATH + 1], name[NAME_MAX + 1];
    struct stat st;
    leave_name(0);
    *ret_where = where.text;
    int error = split(path, parent, name);
    if (error != 0)
        return error;
    int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        error = errno;
    else if (recursive)
        error = remove_one(fd, name, 0);
    else if (is_mount(fd, name, &st))
        error = EBUSY;
    else if (unlinkat(fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        error = errno == EEXIST ? ENOTEMPTY : errno;
    sup_close(&fd);
    return error;
}
