#include "base/statedir.h"

#include "base/error.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

char *spr_state_directory(const char *wanted, char **environment)
{
    const char *state = g_environ_getenv(environment, "XDG_STATE_HOME");
    const char *home = g_environ_getenv(environment, "HOME");
    if (wanted)
        return g_strdup(wanted);
    if (state && *state == '/')
        return g_build_filename(state, "sprov", NULL);
    return g_build_filename(home && *home ? home : g_get_home_dir(), ".local", "state", "sprov",
                            NULL);
}

bool spr_directory_is_private(const char *directory)
{
    struct stat st;
    return lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

bool spr_directory_make_private(const char *directory, GError **error)
{
    if (g_mkdir_with_parents(directory, 0700) < 0)
        return spr_fail_errno(error, SPR_E_DENIED, errno, "runtime-dir",
                              "runtimeDir \"%s\" can't be made", directory);
    return spr_directory_is_private(directory) ||
           spr_fail(error, SPR_E_DENIED, "runtime-dir",
                    "runtimeDir \"%s\" must be a directory of this user's own that nobody else "
                    "enters: chmod 700, or name another",
                    directory);
}
