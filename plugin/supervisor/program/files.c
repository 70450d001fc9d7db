#include "files.h"

#include "base.h"
#include "fileio.h"
#include "fileput.h"
#include "filetree.h"
#include "filewrite.h"
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------- user */

static struct {
    SupUser as;
    uid_t own_uid;
    gid_t own_gid, own_groups[SUP_MAX_GROUPS];
    int n_own_groups;
} user;

/* The ids of file access alone, so that there is a way back. */
static bool set_ids(uid_t uid, gid_t gid, int n_groups, const gid_t *groups)
{
    if (syscall(SYS_setgroups, n_groups, groups) < 0)
        return false;
    setfsgid(gid);
    setfsuid(uid);
    return (gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid;
}

bool sup_files_become(const char *name)
{
    if (!sup_user_find(name, &user.as))
        return false;
    if (!user.as.change)
        return true;
    user.own_uid = geteuid();
    user.own_gid = getegid();
    user.n_own_groups = getgroups(SUP_MAX_GROUPS, user.own_groups);
    if (user.n_own_groups >= 0 &&
        set_ids(user.as.uid, user.as.gid, (int)user.as.n_groups, user.as.groups))
        return true;
    int error = errno;
    sup_files_return();
    errno = error;
    return false;
}

void sup_files_return(void)
{
    if (!user.as.change)
        return;
    user.as.change = false;
    if (!set_ids(user.own_uid, user.own_gid, user.n_own_groups, user.own_groups))
        _exit(1);
}

/* ---------------------------------------------------------------------------- one request */

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static unsigned flags_of(const char *text)
{
    return (unsigned)number(text);
}

/* The request's last record, unless bytes were promised that could not be had. */
static int finish(int error, const char *where, bool status)
{
    if (error == 0)
        sup_fileio_end();
    else if (status) {
        sup_fileio_status(error, 0, where);
        sup_fileio_flush();
    }
    return error;
}

/* A pipe or a device is looked at before it is opened, which it might notice. */
static int open_regular(const char *path, int *ret_fd, struct stat *st)
{
    *ret_fd = -1;
    for (int opened = 0; opened < 2; opened++) {
        if ((opened ? fstat(*ret_fd, st) : stat(path, st)) < 0)
            return errno;
        if (!S_ISREG(st->st_mode))
            return S_ISDIR(st->st_mode) ? EISDIR : SPR_FILE_E_SPECIAL;
        if (!opened)
            *ret_fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (*ret_fd < 0)
            return errno;
    }
    return 0;
}

static int do_read(char *const argv[])
{
    struct stat st;
    int fd;
    bool status = true;
    uint64_t most = number(argv[3]);
    int error = open_regular(argv[1], &fd, &st);
    if (error == 0)
        error = sup_fileio_send(fd, argv[1], &st, number(argv[2]), most ? most : UINT64_MAX, false,
                                &status);
    sup_close(&fd);
    if (error == 0)
        sup_fileio_flush(); /* bytes end by their count, or with the stream */
    return error == 0 ? 0 : finish(error, "", status);
}

static int do_stat(char *const argv[])
{
    struct stat st;
    char target[SPR_FILE_MAX_PATH] = "";
    bool follow = !(flags_of(argv[2]) & SPR_FILE_NO_FOLLOW);
    if ((follow ? stat(argv[1], &st) : lstat(argv[1], &st)) < 0)
        return finish(errno, "", true);
    if (S_ISLNK(st.st_mode) && readlink(argv[1], target, sizeof target - 1) < 0)
        return finish(errno, "", true);
    sup_fileio_entry(argv[1], target, sup_fileio_type(st.st_mode), &st, 0);
    return finish(0, "", true);
}

static int do_list(char *const argv[])
{
    const char *where;
    bool recursive = flags_of(argv[2]) & SPR_FILE_RECURSIVE;
    int error = sup_filetree_list(argv[1], recursive, &where);
    return finish(error, where, true);
}

/* Without a parent, with those above it. */
static int do_mkdir(char *const argv[])
{
    char *path = argv[1];
    struct stat st;
    bool recursive = flags_of(argv[3]) & SPR_FILE_RECURSIVE;
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--)
        path[size - 1] = '\0';
    int error = mkdir(path, (mode_t)number(argv[2])) < 0 ? errno : 0;
    if (recursive && error == ENOENT) {
        error = sup_make_directories(path);
        if (error == 0 && chmod(path, (mode_t)number(argv[2])) < 0)
            error = errno;
    }
    if (recursive && error != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        error = 0;
    return finish(error, "", true);
}

static int do_remove(char *const argv[])
{
    const char *where;
    bool recursive = flags_of(argv[2]) & SPR_FILE_RECURSIVE;
    int error = sup_filetree_remove(argv[1], recursive, &where);
    return finish(error, where, true);
}

static int do_rename(char *const argv[])
{
    int error = rename(argv[1], argv[2]) < 0 ? errno : 0;
    return finish(error == EEXIST ? ENOTEMPTY : error, "", true);
}

static int do_get(char *const argv[])
{
    const char *where;
    bool status;
    int error = sup_filetree_get(argv[1], &where, &status);
    return finish(error, where, status);
}

/* A file that fails is read to its end all the same: others come behind it. */
static int write_one(const SupFileItem *item)
{
    SupFileWrite file;
    int error = sup_filewrite_begin(&file, item->path, item->mode & 07777);
    bool began = error == 0;
    if (error == 0)
        error = sup_filewrite_take(file.fd);
    if (error != 0)
        sup_filewrite_take(-1);
    if (error == 0 && !sup_fileio_is_broken())
        return sup_filewrite_commit(&file);
    if (began)
        sup_filewrite_abort(&file);
    return error ? error : ECANCELED;
}

static int write_all(void)
{
    SupFileItem item;
    for (uint32_t i = 0; sup_fileio_next(&item) && item.kind == SPR_FILE_FILE; i++)
        sup_fileio_status(write_one(&item), i, "");
    if (!sup_fileio_is_broken())
        return finish(0, "", true);
    sup_fileio_flush(); /* what became of those before is still worth telling */
    return ECANCELED;
}

static int do_write(char *const argv[])
{
    int error = write_all();
    sup_filewrite_free_replaced();
    return error;
}

static int do_locate(char *const argv[])
{
    char real[SPR_FILE_MAX_PATH];
    struct stat kept;
    int error = sup_filewrite_locate(argv[1], real, &kept);
    if (error == 0)
        sup_fileio_entry(real, "", SPR_FILE_TYPE_FILE, &kept, 0);
    return finish(error, "", true);
}

static int do_replace(char *const argv[])
{
    int code = finish(sup_filewrite_replace(argv[1], argv[2], number(argv[3])), "", true);
    sup_filewrite_free_replaced();
    return code;
}

static int do_put(char *const argv[])
{
    const char *where;
    int error = sup_fileput(argv[1], &where);
    return finish(error, where, true);
}

static const struct {
    const char *name;
    int arguments;
    int (*serve)(char *const argv[]);
} requests[] = {
    {"read", 3, do_read},     {"write", 0, do_write},     {"stat", 2, do_stat},
    {"list", 2, do_list},     {"mkdir", 3, do_mkdir},     {"remove", 2, do_remove},
    {"rename", 2, do_rename}, {"get", 1, do_get},         {"put", 1, do_put},
    {"locate", 1, do_locate}, {"replace", 3, do_replace},
};

int sup_files_serve(char *const argv[], int in, int out, void (*tell)(void))
{
    int arguments = 0, code = EINVAL;
    while (argv[arguments + 1])
        arguments++;
    mode_t mask = umask(0);
    sup_fileio_begin(in, out, tell);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        if (strcmp(requests[i].name, argv[0]) == 0 && requests[i].arguments == arguments)
            code = requests[i].serve(argv);
    }
    umask(mask);
    return sup_fileio_is_broken() ? ECANCELED : code;
}
