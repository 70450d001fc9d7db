#include "sandbox/runtime.h"

#include "base/error.h"
#include "base/statedir.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_BYTES 8                            /* random, of folders and of sockets */
#define LONGEST_TAIL (2 * (1 + 2 * NAME_BYTES)) /* "/FOLDER/SOCKET" */
#define LONGEST_PATH (sizeof((struct sockaddr_un *)0)->sun_path - 1)

struct DkrRuntime {
    char *directory;
    char *refused; /* atomic, set once */
};

DkrRuntime *dkr_runtime_new(const char *directory)
{
    DkrRuntime *runtime = g_new0(DkrRuntime, 1);
    runtime->directory = spr_state_directory(directory);
    return runtime;
}

void dkr_runtime_free(DkrRuntime *runtime)
{
    if (!runtime)
        return;
    g_free(runtime->directory);
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
    g_autofree char *name = spr_random_hex(NAME_BYTES);
    g_autofree char *folder = g_build_filename(runtime->directory, name, NULL);
    if (!ensure_directory(runtime->directory, error) || !make_folder(folder, error))
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

void dkr_runtime_remove_folder(const char *folder)
{
    g_autofree char *directory = g_path_get_dirname(folder);
    if (!is_folder_path(folder) || !spr_directory_is_private(directory))
        return;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(fd, entry->d_name, 0);
    closedir(dir);
    rmdir(folder);
}
