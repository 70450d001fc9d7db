#include "filewrite.h"

#include "base.h"
#include "fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (256u * 1024)
#define MOST_LINKS 40
#define SLOW_TO_FREE (1 << 20)
#define RENAME_EXCHANGE (1 << 1) /* of linux/fs.h */
#define ROOMY 8                  /* times what is held: room that nobody misses for a moment */
#define PROC_MAGIC 0x9fa0
#define TMPFS_MAGIC 0x01021994
#define SYSFS_MAGIC 0x62656572

static int64_t started; /* in seconds of the wall clock */

void sup_filewrite_init(void)
{
    started = time(NULL);
}

/* ------------------------------------------------------------------------- directories */

int sup_make_directories(const char *path)
{
    char text[SPR_FILE_MAX_PATH];
    size_t size = strlen(path);
    if (size >= sizeof text)
        return ENAMETOOLONG;
    memcpy(text, path, size + 1);
    for (char *at = text + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char cut = *at;
        *at = '\0';
        struct stat st;
        if (mkdir(text, 0755) < 0) {
            int error = errno;
            bool there = stat(text, &st) == 0;
            if (!there || cut == '\0')
                return error;
            if (!S_ISDIR(st.st_mode))
                return ENOTDIR;
        }
        if (cut == '\0')
            return 0;
        *at = cut;
        while (at[1] == '/')
            at++;
        if (at[1] == '\0')
            return 0;
    }
}

static int open_directory(const char *path, int *ret_fd)
{
    *ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0 && errno == ENOENT) {
        int error = sup_make_directories(path);
        if (error != 0 && error != EEXIST)
            return error;
        *ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return *ret_fd < 0 ? errno : 0;
}

/* ------------------------------------------------------------------------- temporaries */

void sup_temporary_name(char name[SUP_TEMPORARY_NAME])
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint64_t)sup_now_ms() << 20 | (uint64_t)getpid();
    snprintf(name, SUP_TEMPORARY_NAME, ".sprov-%016llx.tmp", (unsigned long long)number);
}

int sup_open_temporary(int directory, char name[SUP_TEMPORARY_NAME])
{
    sup_temporary_name(name);
    int fd = openat(directory, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        name[0] = '\0';
    return fd;
}

/* ----------------------------------------------------------------------------- resolve */

/* A path that ends in no name: a directory, if anything. */
static int refuse_nameless(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? EISDIR : errno;
    return S_ISDIR(st.st_mode) ? EISDIR : ENOTDIR;
}

/* Splits path, and opens the directory. */
static int open_parent(SupFileWrite *file, const char *path)
{
    char parent[SPR_FILE_MAX_PATH] = ".";
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return refuse_nameless(path);
    if (strlen(base) > NAME_MAX)
        return ENAMETOOLONG;
    if (slash)
        snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    strcpy(file->base, base);
    sup_close(&file->directory);
    return open_directory(parent, &file->directory);
}

/* Links by hand: one that leads to nothing yet tells where the file is to be made. */
static int resolve(SupFileWrite *file, const char *given)
{
    char path[SPR_FILE_MAX_PATH], link[SPR_FILE_MAX_PATH], next[2 * SPR_FILE_MAX_PATH];
    if (strlen(given) >= sizeof path)
        return ENAMETOOLONG;
    strcpy(path, given);
    for (int links = 0; links <= MOST_LINKS; links++) {
        int error = open_parent(file, path);
        if (error != 0)
            return error;
        ssize_t n = readlinkat(file->directory, file->base, link, sizeof link - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        link[n] = '\0';
        char *slash = strrchr(path, '/');
        if (link[0] == '/' || !slash)
            snprintf(next, sizeof next, "%s", link);
        else
            snprintf(next, sizeof next, "%.*s/%s", (int)(slash - path), path, link);
        if (strlen(next) >= sizeof path)
            return ENAMETOOLONG;
        strcpy(path, next);
    }
    return ELOOP;
}

/* What is there must be a file that the user may write; it is not opened for that yet, which would
 * copy all of it up from an image's layer. What the kernel shows in /proc and /sys is for commands.
 */
static int examine(SupFileWrite *file)
{
    struct statfs fs = {0};
    if (fstatfs(file->directory, &fs) == 0 && (fs.f_type == PROC_MAGIC || fs.f_type == SYSFS_MAGIC))
        return EPERM;
    file->exists = fstatat(file->directory, file->base, &file->was, AT_SYMLINK_NOFOLLOW) == 0;
    if (!file->exists)
        return errno == ENOENT ? 0 : errno;
    file->slow_to_free =
        file->was.st_size >= SLOW_TO_FREE && fs.f_type != TMPFS_MAGIC &&
        (uint64_t)file->was.st_size < (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / ROOMY;
    if (!S_ISREG(file->was.st_mode))
        return S_ISDIR(file->was.st_mode) ? EISDIR : SPR_FILE_E_SPECIAL;
    return faccessat(file->directory, file->base, W_OK, 0) < 0 ? errno : 0;
}

/* To write it in place. */
static int open_old(SupFileWrite *file)
{
    struct stat st;
    file->old = openat(file->directory, file->base,
                       O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file->old < 0 || fstat(file->old, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return SPR_FILE_E_SPECIAL;
    bool same = (st.st_mode & 07777) == file->mode;
    return same || fchmod(file->old, file->mode) == 0 ? 0 : errno;
}

/* Mode and owner of what the temporary file replaces, or of a new one. */
static int dress(SupFileWrite *file)
{
    struct stat st;
    if (fchmod(file->fd, file->mode) < 0)
        return errno;
    if (!file->exists || fstat(file->fd, &st) < 0 ||
        (st.st_uid == file->was.st_uid && st.st_gid == file->was.st_gid))
        return 0;
    if (fchown(file->fd, file->was.st_uid, file->was.st_gid) < 0)
        file->keep_old = true;
    else
        fchmod(file->fd, file->mode);
    return 0;
}

static int open_in_place(SupFileWrite *file)
{
    int error = open_old(file);
    if (error == 0 && ftruncate(file->old, 0) < 0)
        error = errno;
    file->fd = file->old;
    file->old = -1;
    return error;
}

static int open_target(SupFileWrite *file)
{
    file->fd = sup_open_temporary(file->directory, file->temporary);
    if (file->fd >= 0)
        return dress(file);
    bool refused = errno == EACCES || errno == EPERM || errno == EROFS;
    return refused && file->exists ? open_in_place(file) : errno;
}

/* The kernel frees a file, and waits for what of it is on its way to the disk, when the last one
 * who has it leaves: for a large one that is us, once everything is answered. */
static int replaced = -1;

void sup_filewrite_free_replaced(void)
{
    if (replaced >= 0)
        sup_fileio_tell();
    sup_close(&replaced);
}

static int look_up(SupFileWrite *file, const char *path)
{
    file->directory = file->fd = file->old = -1;
    file->temporary[0] = '\0';
    file->exists = file->keep_old = file->slow_to_free = false;
    sup_filewrite_free_replaced();
    int error = resolve(file, path);
    return error == 0 ? examine(file) : error;
}

int sup_filewrite_begin(SupFileWrite *file, const char *path, mode_t mode)
{
    int error = look_up(file, path);
    file->mode = mode ? mode : file->exists ? file->was.st_mode & 07777 : 0644;
    if (error == 0)
        error = open_target(file);
    if (error != 0)
        sup_filewrite_abort(file);
    return error;
}

static int write_bytes(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

int sup_filewrite_take(int fd)
{
    static uint8_t block[BLOCK];
    int error = 0;
    for (size_t n; error == 0 && (n = sup_fileio_take(block, sizeof block)) > 0;)
        error = fd < 0 ? 0 : write_bytes(fd, block, n);
    return error;
}

/* -------------------------------------------------------------------------------- commit */

void sup_filewrite_abort(SupFileWrite *file)
{
    sup_close(&file->fd);
    sup_close(&file->old);
    if (file->temporary[0])
        unlinkat(file->directory, file->temporary, 0);
    sup_close(&file->directory);
}

/* Some file systems tell only here that bytes did not arrive. */
static int close_checked(int *fd)
{
    int result = close(*fd);
    *fd = -1;
    return result < 0 && errno != EINTR ? errno : 0;
}

static int copy_into_old(SupFileWrite *file)
{
    int error = open_old(file);
    int from = openat(file->directory, file->temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (error == 0 && (from < 0 || ftruncate(file->old, 0) < 0))
        error = errno;
    ssize_t n = 1;
    while (error == 0 && n != 0) {
        n = sendfile(file->old, from, NULL, 1u << 20);
        if (n < 0 && errno != EINTR)
            error = errno;
    }
    sup_close(&from);
    return error == 0 ? close_checked(&file->old) : error;
}

/* Files that were made since we were are in the upper layer of an overlay, if they are in one. */
static bool is_young(const SupFileWrite *file)
{
    uint64_t st[32] = {0};
    const uint64_t born = 10;
    return sup_statx(file->directory, file->base, SUP_STATX_BTIME, st) &&
           (st[0] & SUP_STATX_BTIME) && (int64_t)st[born] >= started;
}

/* A rename over a file makes ext4 write the new one to the disk first, an exchange does not; but it
 * would copy a file of a lower layer up. Others may have put a directory there meanwhile. */
static bool exchange(SupFileWrite *file)
{
    if (!is_young(file) || syscall(SYS_renameat2, file->directory, file->temporary, file->directory,
                                   file->base, RENAME_EXCHANGE) < 0)
        return false;
    if (unlinkat(file->directory, file->temporary, 0) == 0 || errno == ENOENT)
        return true;
    syscall(SYS_renameat2, file->directory, file->temporary, file->directory, file->base,
            RENAME_EXCHANGE);
    return false;
}

static bool replace(SupFileWrite *file)
{
    return (file->exists && exchange(file)) ||
           renameat(file->directory, file->temporary, file->directory, file->base) == 0;
}

static void hold_replaced(const SupFileWrite *file)
{
    if (file->slow_to_free)
        replaced = openat(file->directory, file->base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int sup_filewrite_commit(SupFileWrite *file)
{
    int error = file->fd < 0 ? 0 : close_checked(&file->fd);
    hold_replaced(file);
    if (error == 0 && file->temporary[0]) {
        bool renamed = !file->keep_old && replace(file);
        bool refused = file->keep_old || errno == EBUSY || errno == EPERM || errno == EACCES;
        if (renamed)
            file->temporary[0] = '\0';
        else
            error = refused && file->exists ? copy_into_old(file) : errno;
    }
    sup_filewrite_abort(file);
    return error;
}

static int real_path(const SupFileWrite *file, char real[SPR_FILE_MAX_PATH])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->directory);
    ssize_t n = readlink(link, real, SPR_FILE_MAX_PATH);
    if (n < 0)
        return errno;
    if ((size_t)n + 1 + strlen(file->base) >= SPR_FILE_MAX_PATH)
        return ENAMETOOLONG;
    snprintf(real + n, SPR_FILE_MAX_PATH - (size_t)n, "%s%s", n > 1 ? "/" : "", file->base);
    return 0;
}

int sup_filewrite_locate(const char *path, char real[SPR_FILE_MAX_PATH], struct stat *ret_kept)
{
    SupFileWrite file;
    int error = look_up(&file, path);
    *ret_kept = (struct stat){.st_mode = S_IFREG | 0644, .st_uid = getuid(), .st_gid = getgid()};
    if (error == 0 && file.exists)
        *ret_kept = file.was;
    if (error == 0 && faccessat(file.directory, ".", W_OK | X_OK, 0) < 0)
        error = EACCES;
    if (error == 0)
        error = real_path(&file, real);
    sup_filewrite_abort(&file);
    return error;
}

int sup_filewrite_replace(const char *path, const char *name, uint64_t size)
{
    SupFileWrite file;
    struct stat st;
    int error = look_up(&file, path);
    snprintf(file.temporary, sizeof file.temporary, "%s", name);
    if (error == 0 && fstatat(file.directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        error = errno;
    if (error == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size))
        error = EIO;
    if (error == 0)
        return sup_filewrite_commit(&file);
    sup_filewrite_abort(&file);
    return error;
}
