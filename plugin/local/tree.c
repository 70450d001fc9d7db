#include "local/tree.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAKE_OVER "removed-%u" /* what directories are called that were moved up */

static int open_directory(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES || fchmodat(at, name, 0700, 0) < 0)
        return fd;
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Moving a directory writes its "..". A removal that was cut short may have left such names. */
static bool move_up(int from, const char *name, int top, guint *number)
{
    if (fchmodat(from, name, 0700, 0) < 0)
        return false;
    for (;;) {
        g_autofree char *above = g_strdup_printf(TAKE_OVER, (*number)++);
        if (renameat(from, name, top, above) == 0)
            return true;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return false;
    }
}

static bool is_directory(int at, const char *name)
{
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Removes what is in directory `name` of top; what is below goes up to top, to be removed later. */
static bool empty(int top, const char *name, guint *number)
{
    int fd = open_directory(top, name);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool ok = fchmod(fd, 0700) == 0;
    for (struct dirent *entry; ok && (entry = readdir(dir));) {
        const char *child = entry->d_name;
        if (child[0] == '.' && (child[1] == '\0' || (child[1] == '.' && child[2] == '\0')))
            continue;
        if (is_directory(fd, child))
            ok = unlinkat(fd, child, AT_REMOVEDIR) == 0 || move_up(fd, child, top, number);
        else
            ok = unlinkat(fd, child, 0) == 0;
    }
    int why = errno;
    closedir(dir);
    errno = why;
    return ok;
}

/* One round: each entry of top goes, or has its directories moved up. */
static bool remove_round(int top, guint *number, bool *ret_any)
{
    int copy = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    bool ok = dir != NULL;
    *ret_any = false;
    for (struct dirent *entry; ok && (entry = readdir(dir));) {
        const char *child = entry->d_name;
        if (g_strcmp0(child, ".") == 0 || g_strcmp0(child, "..") == 0)
            continue;
        *ret_any = true;
        if (!is_directory(top, child))
            ok = unlinkat(top, child, 0) == 0;
        else
            ok = empty(top, child, number) && unlinkat(top, child, AT_REMOVEDIR) == 0;
    }
    int why = errno;
    if (dir)
        closedir(dir);
    errno = why;
    return ok;
}

bool local_tree_remove(const char *folder, GError **error)
{
    int top = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 && errno == ENOENT)
        return true;
    bool any = true, ok = top >= 0;
    guint number = 0;
    while (ok && any)
        ok = remove_round(top, &number, &any);
    int why = errno;
    if (top >= 0)
        close(top);
    if (ok && rmdir(folder) == 0)
        return true;
    return spr_fail_errno(error, SPR_E_DENIED, ok ? errno : why, "not-removed",
                          "the folder \"%s\" can't be removed", folder);
}
