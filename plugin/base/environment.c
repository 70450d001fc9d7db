#include "base/environment.h"

#include <dlfcn.h>
#include <glib.h>
#include <unistd.h>

/* A program that is no PIE and names environ has it, and not libc. Who was opened with
 * RTLD_DEEPBIND, and GLib with it, sees libc's, which stays empty then; getenv() reads the
 * program's. */
char **spr_environment(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    char ***of_program = program ? (char ***)dlsym(program, "environ") : NULL;
    char **strings = of_program ? *of_program : environ;
    char **copy = strings ? g_strdupv(strings) : g_new0(char *, 1);
    if (program)
        dlclose(program);
    return copy;
}
