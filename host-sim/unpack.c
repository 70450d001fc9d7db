#include "tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define BLOCK 65536

/* A directory that is finished once all that is in it is there. */
typedef struct {
    char *name;
    mode_t mode;
    struct timespec times[2];
} Directory;

typedef struct {
    struct archive *archive;
    const HsServices *services;
    char *top; /* what all names begin with */
    int root;
    bool is_new; /* the root was made for this */
    GPtrArray *directories;
} Unpacker;

static void directory_free(void *data)
{
    Directory *directory = data;
    g_free(directory->name);
    g_free(directory);
}

static bool fail_at(const char *name, GError **error)
{
    return hs_fail(error, SPROV_E_IO, "%s: %s", *name ? name : ".", g_strerror(errno));
}

static bool fail_archive(const Unpacker *unpacker, GError **error)
{
    const char *why = archive_error_string(unpacker->archive);
    return hs_fail(error, SPROV_E_IO, "the archive of the sandbox can't be read: %s",
                   why ? why : "it ends too early");
}

/* A name of the archive without the top: "" is the top itself, NULL is outside. */
static const char *below_top(const Unpacker *unpacker, const char *name)
{
    gsize size = strlen(unpacker->top);
    g_auto(GStrv) steps = g_strsplit(name, "/", -1);
    if (!g_str_has_prefix(name, unpacker->top) || (name[size] != '\0' && name[size] != '/') ||
        g_strv_contains((const char *const *)steps, ".."))
        return NULL;
    name += size;
    return name + strspn(name, "/");
}

/* The directory that has name, opened step by step and never by a link; *ret_base is the last
 * part. */
static int open_parent(const Unpacker *unpacker, const char *name, const char **ret_base,
                       GError **error)
{
    int fd = fcntl(unpacker->root, F_DUPFD_CLOEXEC, 3);
    const char *slash;
    while (fd >= 0 && (slash = strchr(name, '/')) && slash[1]) {
        g_autofree char *step = g_strndup(name, (gsize)(slash - name));
        int next = openat(fd, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errno_value = errno;
        close(fd);
        errno = errno_value;
        fd = next;
        name = slash + 1;
    }
    if (fd < 0)
        fail_at(name, error);
    *ret_base = name;
    return fd;
}

/* Whatever is there but a directory goes. */
static bool make_room(int parent, const char *base, const char *name, GError **error)
{
    if (unlinkat(parent, base, 0) == 0 || errno == ENOENT)
        return true;
    if (errno == EISDIR)
        return hs_fail(error, SPROV_E_CONFLICT, "%s is a directory here and none in the sandbox",
                       name);
    return fail_at(name, error);
}

static void times_of(struct archive_entry *entry, struct timespec times[2])
{
    times[0] = (struct timespec){.tv_nsec = UTIME_NOW};
    times[1] = archive_entry_mtime_is_set(entry)
                   ? (struct timespec){archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)}
                   : times[0];
}

static bool copy_bytes(Unpacker *unpacker, int fd, const char *name, GError **error)
{
    const void *data;
    size_t size;
    la_int64_t offset;
    int rc;
    while ((rc = archive_read_data_block(unpacker->archive, &data, &size, &offset)) == ARCHIVE_OK) {
        for (size_t done = 0; done < size;) {
            ssize_t n = pwrite(fd, (const char *)data + done, size - done, offset + (off_t)done);
            if (n < 0 && errno != EINTR)
                return fail_at(name, error);
            done += n > 0 ? (size_t)n : 0;
        }
    }
    return rc == ARCHIVE_EOF || fail_archive(unpacker, error);
}

static bool take_file(Unpacker *unpacker, struct archive_entry *entry, int parent, const char *base,
                      const char *name, GError **error)
{
    struct timespec times[2];
    times_of(entry, times);
    int fd = openat(parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_at(name, error);
    bool ok = copy_bytes(unpacker, fd, name, error) &&
              (ftruncate(fd, archive_entry_size(entry)) == 0 || fail_at(name, error)) &&
              (fchmod(fd, archive_entry_perm(entry) & 0777) == 0 || fail_at(name, error));
    futimens(fd, times);
    return (close(fd) == 0 || !ok || fail_at(name, error)) && ok;
}

static bool take_directory(Unpacker *unpacker, struct archive_entry *entry, int parent,
                           const char *base, const char *name, GError **error)
{
    struct stat st;
    if (*base && mkdirat(parent, base, 0700) < 0 && errno != EEXIST)
        return fail_at(name, error);
    if (*base && (fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
        return hs_fail(error, SPROV_E_CONFLICT, "%s is a directory in the sandbox and none here",
                       name);
    if (!*base && !unpacker->is_new)
        return true;
    Directory *directory = g_new0(Directory, 1);
    directory->name = g_strdup(name);
    directory->mode = archive_entry_perm(entry) & 0777;
    times_of(entry, directory->times);
    g_ptr_array_add(unpacker->directories, directory);
    return true;
}

static bool take_hard_link(Unpacker *unpacker, const char *target, int parent, const char *base,
                           const char *name, GError **error)
{
    const char *from = below_top(unpacker, target), *from_base;
    if (!from)
        return hs_fail(error, SPROV_E_IO, "%s is a name of what is not in the archive", name);
    int fd = open_parent(unpacker, from, &from_base, error);
    if (fd < 0)
        return false;
    bool ok = linkat(fd, from_base, parent, base, 0) == 0 || fail_at(name, error);
    close(fd);
    return ok;
}

static bool take_at(Unpacker *unpacker, struct archive_entry *entry, int parent, const char *base,
                    const char *name, GError **error)
{
    const char *target = archive_entry_hardlink(entry);
    mode_t type = archive_entry_filetype(entry);
    if (!target && type == AE_IFDIR)
        return take_directory(unpacker, entry, parent, base, name, error);
    if (!target && type != AE_IFREG && type != AE_IFLNK) {
        hs_log(unpacker->services, SPROV_LOG_WARNING,
               "%s is no file, directory or link: it is left out", name);
        return true;
    }
    if (!make_room(parent, base, name, error))
        return false;
    if (target)
        return take_hard_link(unpacker, target, parent, base, name, error);
    if (type == AE_IFREG)
        return take_file(unpacker, entry, parent, base, name, error);
    target = archive_entry_symlink(entry);
    return symlinkat(target ? target : "", parent, base) == 0 || fail_at(name, error);
}

static bool take(Unpacker *unpacker, struct archive_entry *entry, GError **error)
{
    g_autofree char *full = g_strdup(archive_entry_pathname(entry) ?: "");
    const char *base;
    for (gsize size = strlen(full); size > 0 && full[size - 1] == '/'; size--)
        full[size - 1] = '\0';
    if (!unpacker->top)
        unpacker->top = g_strdup(full);
    const char *name = below_top(unpacker, full);
    if (!name)
        return hs_fail(error, SPROV_E_IO,
                       "the archive of the sandbox has a name that leads out: %s", full);
    int parent = open_parent(unpacker, name, &base, error);
    if (parent < 0)
        return false;
    bool ok = take_at(unpacker, entry, parent, base, name, error);
    close(parent);
    return ok;
}

/* The innermost first. */
static bool finish_directories(Unpacker *unpacker, GError **error)
{
    for (guint i = unpacker->directories->len; i-- > 0;) {
        const Directory *directory = unpacker->directories->pdata[i];
        const char *base;
        int parent = open_parent(unpacker, directory->name, &base, error);
        if (parent < 0)
            return false;
        int fd =
            openat(parent, *base ? base : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool ok = fd >= 0 && fchmod(fd, directory->mode) == 0;
        if (!ok)
            fail_at(directory->name, error);
        else
            futimens(fd, directory->times);
        if (fd >= 0)
            close(fd);
        close(parent);
        if (!ok)
            return false;
    }
    return true;
}

static bool unpack(Unpacker *unpacker, int fd, GError **error)
{
    struct archive_entry *entry;
    int rc = archive_read_open_fd(unpacker->archive, fd, BLOCK);
    while (rc == ARCHIVE_OK || rc == ARCHIVE_WARN) {
        rc = archive_read_next_header(unpacker->archive, &entry);
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            break;
        if (!take(unpacker, entry, error))
            return false;
    }
    return rc == ARCHIVE_EOF ? finish_directories(unpacker, error) : fail_archive(unpacker, error);
}

bool hs_tree_unpack(int fd, const char *directory, const HsServices *services, GError **error)
{
    Unpacker unpacker = {.services = services, .archive = archive_read_new()};
    unpacker.is_new = mkdir(directory, 0700) == 0;
    if (!unpacker.is_new && errno != EEXIST) {
        archive_read_free(unpacker.archive);
        return fail_at(directory, error);
    }
    unpacker.root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unpacker.directories = g_ptr_array_new_with_free_func(directory_free);
    archive_read_support_format_tar(unpacker.archive);
    bool ok = unpacker.root >= 0 ? unpack(&unpacker, fd, error) : fail_at(directory, error);
    archive_read_free(unpacker.archive);
    g_ptr_array_unref(unpacker.directories);
    g_free(unpacker.top);
    if (unpacker.root >= 0)
        close(unpacker.root);
    return ok;
}
