#include "sandbox/runtime.h"

#include "base/error.h"
#include "base/statedir.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_BYTES 8 /* of folders and of sockets */
#define ENGINE_DIGITS                                                                              \
    8 /* of a folder's name, the same for all of one engine; others are random                     \
       */
#define LONGEST_TAIL (2 * (1 + 2 * NAME_BYTES)) /* "/FOLDER/SOCKET" */
#define LONGEST_PATH (sizeof((struct sockaddr_un *)0)->sun_path - 1)

struct DkrRuntime {
    char *directory;
    char *engine;  /* what the names of folders begin with */
    char *refused; /* atomic, set once */
};

DkrRuntime *dkr_runtime_new(const char *directory, const char *engine)
{
    DkrRuntime *runtime = g_new0(DkrRuntime, 1);
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, engine, -1);
    runtime->engine = g_strndup(digest, ENGINE_DIGITS);
    runtime->directory = g_canonicalize_filename(directory, NULL);
    return runtime;
}

void dkr_runtime_free(DkrRuntime *runtime)
{
    if (!runtime)
        return;
    g_free(runtime->directory);
    g_free(runtime->engine);
    g_free(runtime->refused);
    g_free(runtime);
}

const char *dkr_runtime_directory(const DkrRuntime *runtime)
{
    return runtime->directory;
}

void dkr_runtime_refuse(DkrRuntime *runtime, const char *reason)
{
    char *copy = g_strdup(reason);
    if (!g_atomic_pointer_compare_and_exchange(&runtime->refused, NULL, copy))
        g_free(copy);
}

const char *dkr_runtime_refused(DkrRuntime *runtime)
{
    return g_atomic_pointer_get(&runtime->refused);
}

/* ------------------------------------------------------------------------------- folders */

static bool ensure_directory(const char *directory, GError **error)
{
    if (strlen(directory) + LONGEST_TAIL > LONGEST_PATH)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "path-too-long",
                        "runtimeDir \"%s\" has %zu bytes; a socket below it leaves room for %zu: "
                        "choose a shorter one",
                        directory, strlen(directory), LONGEST_PATH - LONGEST_TAIL);
    return spr_directory_make_private(directory, error);
}

/* The mode whatever the umask is, which is the host's. */
static bool make_folder(const char *folder, GError **error)
{
    if ((mkdir(folder, 0755) < 0 && errno != EEXIST) || chmod(folder, 0755) < 0)
        return spr_fail_errno(error, SPR_E_DENIED, errno, "runtime-dir",
                              "the folder \"%s\" can't be made", folder);
    return true;
}

bool dkr_runtime_make_folder(const DkrRuntime *runtime, char **ret_folder, GError **error)
{
    if (!ensure_directory(runtime->directory, error))
        return false;
    g_autofree char *folder = NULL;
    do {
        g_autofree char *random = spr_random_hex(NAME_BYTES - ENGINE_DIGITS / 2);
        g_autofree char *name = g_strconcat(runtime->engine, random, NULL);
        g_free(folder);
        folder = g_build_filename(runtime->directory, name, NULL);
    } while (g_file_test(folder, G_FILE_TEST_EXISTS));
    if (!make_folder(folder, error))
        return false;
    *ret_folder = g_steal_pointer(&folder);
    return true;
}

/* A path from a label is not to be trusted: only what such a folder is called is touched. */
static bool is_folder_path(const char *folder)
{
    g_autofree char *name = g_path_get_basename(folder);
    return *folder == '/' && strlen(name) == 2 * NAME_BYTES &&
           strspn(name, "0123456789abcdef") == strlen(name) && !strstr(folder, "/..");
}

bool dkr_runtime_restore_folder(const char *folder, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(folder);
    if (!is_folder_path(folder))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "runtime-dir",
                        "\"%s\" is no folder for a sandbox's socket", folder);
    return ensure_directory(directory, error) && make_folder(folder, error);
}

static DIR *open_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

bool dkr_runtime_remove_folder(const char *folder)
{
    g_autofree char *directory = g_path_get_dirname(folder);
    DIR *dir =
        is_folder_path(folder) && spr_directory_is_private(directory) ? open_folder(folder) : NULL;
    if (!dir)
        return !g_file_test(folder, G_FILE_TEST_EXISTS);
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(folder) == 0 || errno == ENOENT;
}

/* --------------------------------------------------------------------- what is left over */

char **dkr_runtime_folders(const DkrRuntime *runtime)
{
    g_autoptr(GStrvBuilder) found = g_strv_builder_new();
    DIR *dir =
        spr_directory_is_private(runtime->directory) ? open_folder(runtime->directory) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        g_autofree char *folder = g_build_filename(runtime->directory, entry->d_name, NULL);
        if (g_str_has_prefix(entry->d_name, runtime->engine) && is_folder_path(folder))
            g_strv_builder_add(found, folder);
    }
    if (dir)
        closedir(dir);
    return g_strv_builder_end(found);
}

gint64 dkr_runtime_changed(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) ? (gint64)st.st_mtim.tv_sec : 0;
}

static bool is_listened_at(const char *folder, const char *file)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if ((size_t)snprintf(name.sun_path, sizeof name.sun_path, "%s/%s", folder, file) >=
        sizeof name.sun_path)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is = fd < 0 || connect(fd, (const struct sockaddr *)&name, sizeof name) == 0 ||
              (errno != ECONNREFUSED && errno != ENOENT && errno != ENOTSOCK);
    if (fd >= 0)
        close(fd);
    return is;
}

bool dkr_runtime_is_listened_in(const char *folder)
{
    DIR *dir = open_folder(folder);
    bool is = false;
    for (struct dirent *entry; dir && !is && (entry = readdir(dir));)
        is = *entry->d_name != '.' && is_listened_at(folder, entry->d_name);
    if (dir)
        closedir(dir);
    return is;
}
