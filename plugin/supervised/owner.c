#include "supervised/owner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Counted behind the name in /proc/PID/stat: the 3rd and the 22nd. */
#define STATE_FIELD 1
#define START_TIME_FIELD 20
#define OWNER_PARTS 4

/* NULL when there is no such process, or it only waits to be reaped. */
static char *start_time(const char *pid)
{
    g_autofree char *path = g_build_filename("/proc", pid, "stat", NULL);
    g_autofree char *stat = NULL;
    if (!g_file_get_contents(path, &stat, NULL, NULL))
        return NULL;
    const char *behind_name = strrchr(stat, ')');
    g_auto(GStrv) fields = g_strsplit(behind_name ? behind_name + 1 : "", " ", -1);
    if (g_strv_length(fields) <= START_TIME_FIELD || strchr("ZX", *fields[STATE_FIELD]))
        return NULL;
    return g_strdup(fields[START_TIME_FIELD]);
}

static char *boot_id(void)
{
    char *boot = NULL;
    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
        return g_strdup("unknown");
    return g_strstrip(boot);
}

/* The digits of "pid:[4026531836]". */
static char *pid_namespace(void)
{
    g_autofree char *link = g_file_read_link("/proc/self/ns/pid", NULL);
    const char *digits = link ? strchr(link, '[') : NULL;
    return digits ? g_strndup(digits + 1, strspn(digits + 1, "0123456789")) : g_strdup("unknown");
}

const char *dkr_owner(void)
{
    static char *owner;
    static gsize once;
    if (g_once_init_enter(&once)) {
        g_autofree char *boot = boot_id();
        g_autofree char *started = start_time("self");
        g_autofree char *namespace = pid_namespace();
        owner =
            g_strdup_printf("%s:%d:%s:%s", boot, (int)getpid(), started ? started : "0", namespace);
        g_once_init_leave(&once, 1);
    }
    return owner;
}

char *dkr_owner_created(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    return g_date_time_format(now, "%Y-%m-%dT%H:%M:%S.%fZ");
}

json_t *dkr_owner_labels(const char *version)
{
    g_autofree char *created = dkr_owner_created();
    return json_pack("{s:s, s:s, s:s}", DKR_LABEL_VERSION, version, DKR_LABEL_CREATED, created,
                     DKR_LABEL_OWNER, dkr_owner());
}

DkrOwnerState dkr_owner_state(const char *owner)
{
    g_auto(GStrv) parts = g_strsplit(owner ? owner : "", ":", -1);
    g_auto(GStrv) own = g_strsplit(dkr_owner(), ":", -1);
    if (g_strv_length(parts) != OWNER_PARTS || strcmp(parts[0], own[0]) != 0 ||
        strcmp(parts[3], own[3]) != 0 || strcmp(own[0], "unknown") == 0 ||
        strcmp(own[3], "unknown") == 0 || !*parts[1] ||
        strspn(parts[1], "0123456789") != strlen(parts[1]))
        return DKR_OWNER_UNKNOWN;
    g_autofree char *started = start_time(parts[1]);
    return g_strcmp0(started, parts[2]) == 0 ? DKR_OWNER_LIVES : DKR_OWNER_GONE;
}
