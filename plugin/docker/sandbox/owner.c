#include "sandbox/owner.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define START_TIME_FIELD 20 /* counted behind the name: the 22nd of /proc/self/stat */

static char *start_time(void)
{
    g_autofree char *stat = NULL;
    if (!g_file_get_contents("/proc/self/stat", &stat, NULL, NULL))
        return g_strdup("0");
    char *behind_name = strrchr(stat, ')');
    g_auto(GStrv) fields = g_strsplit(behind_name ? behind_name + 1 : "", " ", -1);
    return g_strdup(g_strv_length(fields) > START_TIME_FIELD ? fields[START_TIME_FIELD] : "0");
}

const char *dkr_owner(void)
{
    static char *owner;
    static gsize once;
    if (g_once_init_enter(&once)) {
        g_autofree char *boot = NULL;
        g_autofree char *started = start_time();
        if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
            boot = g_strdup("unknown");
        owner = g_strdup_printf("%s:%d:%s", g_strstrip(boot), (int)getpid(), started);
        g_once_init_leave(&once, 1);
    }
    return owner;
}
