#include "tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define CHUNK 65536

typedef struct {
    struct archive *archive;
    const HsServices *services;
    GHashTable *named; /* "device:inode" of a file with several names to the first of them */
} Packer;

static bool fail_at(const char *path, GError **error)
{
    return hs_fail(error, SPROV_E_IO, "%s: %s", path, g_strerror(errno));
}

/* target: of a link, or for a file its first name; else NULL. */
static bool put_header(Packer *packer, const char *name, const struct stat *st, const char *target,
                       GError **error)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_copy_stat(entry, st);
    archive_entry_set_pathname(entry, name);
    if (target && S_ISLNK(st->st_mode))
        archive_entry_set_symlink(entry, target);
    else if (target)
        archive_entry_set_hardlink(entry, target);
    if (!S_ISREG(st->st_mode) || target)
        archive_entry_set_size(entry, 0);
    int rc = archive_write_header(packer->archive, entry);
    archive_entry_free(entry);
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ||
           hs_fail(error, SPROV_E_IO, "%s: %s", name, archive_error_string(packer->archive));
}

static bool put_bytes(Packer *packer, int fd, const char *name, off_t size, GError **error)
{
    char buffer[CHUNK];
    while (size > 0) {
        ssize_t n = read(fd, buffer, (size_t)MIN(size, (off_t)sizeof buffer));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_at(name, error);
        if (n == 0)
            return hs_fail(error, SPROV_E_IO, "%s became shorter while it was read", name);
        if (archive_write_data(packer->archive, buffer, (size_t)n) != n)
            return hs_fail(error, SPROV_E_IO, "%s: %s", name,
                           archive_error_string(packer->archive));
        size -= n;
    }
    return true;
}

/* The name under which it is in the archive already, or NULL. */
static const char *first_name(Packer *packer, const struct stat *st, const char *name)
{
    if (st->st_nlink < 2)
        return NULL;
    g_autofree char *key = g_strdup_printf("%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
    const char *first = g_hash_table_lookup(packer->named, key);
    if (!first)
        g_hash_table_insert(packer->named, g_steal_pointer(&key), g_strdup(name));
    return first;
}

static bool put_content(Packer *packer, int fd, const char *name, GError **error)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail_at(name, error);
    const char *first = first_name(packer, &st, name);
    return put_header(packer, name, &st, first, error) &&
           (first || put_bytes(packer, fd, name, st.st_size, error));
}

static bool put_file(Packer *packer, int parent, const char *base, const char *name, GError **error)
{
    int fd = openat(parent, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_at(name, error);
    bool ok = put_content(packer, fd, name, error);
    close(fd);
    return ok;
}

static bool put_link(Packer *packer, int parent, const char *base, const char *name,
                     const struct stat *st, GError **error)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(parent, base, target, sizeof target - 1);
    if (n < 0)
        return fail_at(name, error);
    target[n] = '\0';
    return put_header(packer, name, st, target, error);
}

static bool put_directory(Packer *packer, int fd, const char *name, GError **error);

static bool put_entry(Packer *packer, int parent, const char *base, const char *name,
                      GError **error)
{
    struct stat st;
    if (fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_at(name, error);
    if (S_ISREG(st.st_mode))
        return put_file(packer, parent, base, name, error);
    if (S_ISLNK(st.st_mode))
        return put_link(packer, parent, base, name, &st, error);
    if (!S_ISDIR(st.st_mode)) {
        hs_log(packer->services, SPROV_LOG_WARNING,
               "%s is no file, directory or link: it is left out", name);
        return true;
    }
    int fd = openat(parent, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_at(name, error);
    return put_header(packer, name, &st, NULL, error) ? put_directory(packer, fd, name, error)
                                                      : (close(fd), false);
}

/* Takes fd over. name: of the directory in the archive, "" for the top. */
static bool put_directory(Packer *packer, int fd, const char *name, GError **error)
{
    DIR *dir = fdopendir(fd);
    bool ok = dir || fail_at(name, error);
    if (!dir)
        close(fd);
    for (struct dirent *entry; ok && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        g_autofree char *below =
            *name ? g_strdup_printf("%s/%s", name, entry->d_name) : g_strdup(entry->d_name);
        ok = put_entry(packer, fd, entry->d_name, below, error);
    }
    if (dir)
        closedir(dir);
    return ok;
}

static bool put_top(Packer *packer, int fd, GError **error)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? put_header(packer, ".", &st, NULL, error) : fail_at(".", error);
}

bool hs_tree_pack(const char *directory, bool with_top, int fd, const HsServices *services,
                  GError **error)
{
    Packer packer = {.archive = archive_write_new(), .services = services};
    packer.named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    int top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    archive_write_set_format_pax_restricted(packer.archive);
    archive_write_set_bytes_in_last_block(packer.archive, 1);
    bool ok = top >= 0 || fail_at(directory, error);
    ok = ok && (archive_write_open_fd(packer.archive, fd) == ARCHIVE_OK ||
                hs_fail(error, SPROV_E_IO, "%s", archive_error_string(packer.archive)));
    if (ok && with_top)
        ok = put_top(&packer, top, error);
    if (ok) {
        ok = put_directory(&packer, top, "", error);
    } else if (top >= 0) {
        close(top);
    }
    if (!ok)
        archive_write_fail(packer.archive);
    else if (archive_write_close(packer.archive) != ARCHIVE_OK)
        ok = hs_fail(error, SPROV_E_IO, "%s", archive_error_string(packer.archive));
    archive_write_free(packer.archive);
    g_hash_table_unref(packer.named);
    return ok;
}
