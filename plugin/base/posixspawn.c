#include "base/posixspawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#define PATH_UNLESS_SET "/bin:/usr/bin"

/* NULL: there is none. */
static char *find_program(const char *name, const char *const *environment)
{
    const char *path = g_environ_getenv((char **)environment, "PATH");
    g_auto(GStrv) folders = g_strsplit(path ? path : PATH_UNLESS_SET, ":", -1);
    if (strchr(name, '/'))
        return g_strdup(name);
    for (char **folder = folders; *folder; folder++) {
        g_autofree char *full = g_build_filename(**folder ? *folder : ".", name, NULL);
        if (g_file_test(full, G_FILE_TEST_IS_EXECUTABLE) && !g_file_test(full, G_FILE_TEST_IS_DIR))
            return g_steal_pointer(&full);
    }
    return NULL;
}

int spr_spawn(const char *const *argv, const char *const *environment, int in, int out, int err,
              pid_t *ret_pid)
{
    g_autofree char *program = find_program(argv[0], environment);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    if (!program)
        return ENOENT;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    if (in < 0)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    int why = posix_spawn(ret_pid, program, &actions, &attributes, (char *const *)argv,
                          (char *const *)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}
