#include "fileput.h"

#include "base.h"
#include "fileio.h"
#include "filewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* The directory of the last item: the next one is mostly beside it. */
static struct {
    int root, parent;
    char parent_path[SPR_FILE_MAX_PATH];
    char failed[SPR_FILE_MAX_PATH];
} put;

/* One step down from *at, which is replaced; made when it is missing. */
static int step_down(int *at, const char *name, bool make)
{
    int next = openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT && make) {
        if (mkdirat(*at, name, 0755) < 0 && errno != EEXIST)
            return errno;
        next = openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (next < 0)
        return errno;
    sup_close(at);
    *at = next;
    return 0;
}

/* Walks all but the last part of path. */
static int walk(const char *path, const char *base, bool make, int *ret_fd)
{
    char name[NAME_MAX + 1];
    int at = dup(put.root), error = at < 0 ? errno : 0;
    while (error == 0 && path < base) {
        const char *end = strchr(path, '/');
        size_t size = (size_t)(end - path);
        if (size > NAME_MAX)
            error = ENAMETOOLONG;
        else if (size == 2 && path[0] == '.' && path[1] == '.')
            error = SPR_FILE_E_OUTSIDE;
        else if (size > 0 && !(size == 1 && path[0] == '.')) {
            memcpy(name, path, size);
            name[size] = '\0';
            error = step_down(&at, name, make);
        }
        path = end + 1;
    }
    if (error != 0)
        sup_close(&at);
    *ret_fd = at;
    return error;
}

/* The last part of path, and its directory. */
static int find(const char *path, bool make, const char **ret_base, int *ret_fd)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (path[0] == '/' || strcmp(base, "..") == 0)
        return SPR_FILE_E_OUTSIDE;
    if (base[0] == '\0' || strcmp(base, ".") == 0)
        return EINVAL;
    *ret_base = base;
    return walk(path, base, make, ret_fd);
}

static int find_parent(const char *path, const char **ret_base)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;
    if (put.parent >= 0 && strlen(put.parent_path) == size &&
        memcmp(put.parent_path, path, size) == 0) {
        *ret_base = slash ? slash + 1 : path;
        return **ret_base && strcmp(*ret_base, ".") && strcmp(*ret_base, "..") ? 0 : EINVAL;
    }
    sup_close(&put.parent);
    int error = find(path, true, ret_base, &put.parent);
    if (error == 0) {
        memcpy(put.parent_path, path, size);
        put.parent_path[size] = '\0';
    }
    return error;
}

static struct timespec time_of(int64_t ns)
{
    if (ns == SPR_FILE_NO_TIME)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    int64_t rest = ns % 1000000000;
    return (struct timespec){ns / 1000000000 - (rest < 0), rest + (rest < 0 ? 1000000000 : 0)};
}

/* ----------------------------------------------------------------------------- the items */

static int put_bytes(int fd, const SupFileItem *item)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(item->mtime_ns)};
    int error = sup_filewrite_take(fd);
    if (error == 0 && sup_fileio_is_broken())
        error = ECANCELED;
    if (error == 0 && (fchmod(fd, item->mode & 0777) < 0 || futimens(fd, times) < 0))
        error = errno;
    return error;
}

static int put_file(const SupFileItem *item, const char *base)
{
    char temporary[SUP_TEMPORARY_NAME];
    int fd = sup_open_temporary(put.parent, temporary);
    if (fd < 0)
        return errno;
    int error = put_bytes(fd, item);
    if (close(fd) < 0 && error == 0)
        error = errno;
    if (error == 0 && renameat(put.parent, temporary, put.parent, base) < 0)
        error = errno;
    if (error != 0)
        unlinkat(put.parent, temporary, 0);
    return error;
}

static int make_directory(const char *base)
{
    struct stat st;
    if (mkdirat(put.parent, base, 0755) == 0)
        return 0;
    int error = errno;
    bool there = fstatat(put.parent, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    return there ? 0 : error == EEXIST ? ENOTDIR : error;
}

/* A new name under a temporary one takes the place of whatever file is there. Two names of one file
 * stay both, says rename(). */
static int replace(const char *temporary, const char *base)
{
    int error = renameat(put.parent, temporary, put.parent, base) < 0 ? errno : 0;
    unlinkat(put.parent, temporary, 0);
    return error;
}

static int make_link(const SupFileItem *item, const char *base)
{
    char temporary[SUP_TEMPORARY_NAME];
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(item->mtime_ns)};
    sup_temporary_name(temporary);
    if (symlinkat(item->target, put.parent, temporary) < 0)
        return errno;
    utimensat(put.parent, temporary, times, AT_SYMLINK_NOFOLLOW);
    return replace(temporary, base);
}

static int make_hard_link(const SupFileItem *item, const char *base)
{
    char temporary[SUP_TEMPORARY_NAME];
    const char *target_base;
    struct stat st;
    int target;
    int error = find(item->target, false, &target_base, &target);
    if (error != 0)
        return error;
    sup_temporary_name(temporary);
    if (fstatat(target, target_base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        error = errno;
    else if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        error = SPR_FILE_E_SPECIAL;
    else if (linkat(target, target_base, put.parent, temporary, 0) < 0)
        error = errno;
    close(target);
    return error == 0 ? replace(temporary, base) : error;
}

/* Of a directory that is another's and was there before, neither can be set. */
static int set_directory(const SupFileItem *item, const char *base)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, time_of(item->mtime_ns)};
    int fd = openat(put.parent, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = futimens(fd, times) < 0 || fchmod(fd, item->mode & 01777) < 0 ? errno : 0;
    close(fd);
    return error == EPERM || error == EACCES ? 0 : error;
}

static int put_item(const SupFileItem *item)
{
    const char *base;
    int error = find_parent(item->path, &base);
    if (error != 0)
        return error;
    switch (item->kind) {
    case SPR_FILE_FILE:
        return put_file(item, base);
    case SPR_FILE_MAKE_DIRECTORY:
        return make_directory(base);
    case SPR_FILE_MAKE_LINK:
        return make_link(item, base);
    case SPR_FILE_MAKE_HARD_LINK:
        return make_hard_link(item, base);
    default:
        return set_directory(item, base);
    }
}

static int open_root(const char *directory)
{
    put.root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (put.root < 0 && errno == ENOENT) {
        int error = sup_make_directories(directory);
        if (error != 0 && error != EEXIST)
            return error;
        put.root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return put.root < 0 ? errno : 0;
}

int sup_fileput(const char *directory, const char **ret_where)
{
    SupFileItem item;
    put.root = put.parent = -1;
    put.failed[0] = '\0';
    *ret_where = put.failed;
    int error = open_root(directory);
    while (error == 0 && sup_fileio_next(&item)) {
        char path[SPR_FILE_MAX_PATH];
        strncpy(path, item.path, sizeof path - 1); /* before its bytes take its place */
        path[sizeof path - 1] = '\0';
        item.path = path;
        error = put_item(&item);
        if (error != 0)
            strcpy(put.failed, path);
    }
    sup_close(&put.parent);
    sup_close(&put.root);
    return error == 0 && sup_fileio_is_broken() ? ECANCELED : error;
}
