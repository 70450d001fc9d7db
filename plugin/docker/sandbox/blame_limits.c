/* Limits of blame.c: engines tell them in words, runtimes by what the kernel refused. */
#include "sandbox/blame_own.h"

#include <string.h>
#include <sys/resource.h>

char *dkr_blame_cpus(const DkrSandboxOptions *o, const char *low)
{
    return o->nano_cpus.is_set ? g_strdup_printf("cpus %g", (double)o->nano_cpus.value / 1e9)
                               : NULL;
}

/* Runtimes tell a limit by the kernel's number. */
static const struct {
    const char *name;
    int number;
} rlimits[] = {
    {"cpu", RLIMIT_CPU},           {"fsize", RLIMIT_FSIZE},
    {"data", RLIMIT_DATA},         {"stack", RLIMIT_STACK},
    {"core", RLIMIT_CORE},         {"rss", RLIMIT_RSS},
    {"nproc", RLIMIT_NPROC},       {"nofile", RLIMIT_NOFILE},
    {"memlock", RLIMIT_MEMLOCK},   {"as", RLIMIT_AS},
    {"locks", RLIMIT_LOCKS},       {"sigpending", RLIMIT_SIGPENDING},
    {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"rtprio", RLIMIT_RTPRIO},     {"rttime", RLIMIT_RTTIME},
};

static bool means_ulimit(const char *low, const char *name)
{
    g_autofree char *spelled = g_strconcat("rlimit_", name, NULL);
    if (dkr_blame_has(low, spelled) || dkr_blame_has(low, name))
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(rlimits); i++) {
        g_autofree char *numbered = g_strdup_printf("rlimit type %d:", rlimits[i].number);
        if (g_ascii_strcasecmp(rlimits[i].name, name) == 0)
            return strstr(low, numbered) != NULL;
    }
    return false;
}

char *dkr_blame_ulimit(const DkrSandboxOptions *o, const char *low)
{
    for (size_t i = 0; i < o->ulimits.count; i++) {
        if (means_ulimit(low, o->ulimits.items[i].name))
            return dkr_blame_named_at("ulimits", i, ".name", o->ulimits.items[i].name);
    }
    return o->ulimits.count > 0 ? g_strdup("ulimits") : NULL;
}

/* The first of names (NULL-terminated) that there is. */
static char *first_ulimit(const DkrSandboxOptions *o, const char *const *names)
{
    for (size_t i = 0; i < o->ulimits.count; i++) {
        g_autofree char *low = g_ascii_strdown(o->ulimits.items[i].name, -1);
        if (g_strv_contains(names, low))
            return dkr_blame_named_at("ulimits", i, ".name", o->ulimits.items[i].name);
    }
    return NULL;
}

char *dkr_blame_files(const DkrSandboxOptions *o, const char *low)
{
    static const char *const names[] = {"nofile", NULL};
    return first_ulimit(o, names);
}

char *dkr_blame_addresses(const DkrSandboxOptions *o, const char *low)
{
    static const char *const names[] = {"as", "data", "memlock", "stack", NULL};
    char *found = first_ulimit(o, names);
    return found ? found : dkr_blame_named_number("memory", o->memory);
}

char *dkr_blame_processes(const DkrSandboxOptions *o, const char *low)
{
    static const char *const names[] = {"nproc", NULL};
    char *found = first_ulimit(o, names);
    return found ? found : dkr_blame_named_number("pidsLimit", o->pids_limit);
}
