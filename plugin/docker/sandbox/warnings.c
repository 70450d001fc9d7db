#include "sandbox/warnings.h"

#include <string.h>

static bool is_privileged(const json_t *inspect)
{
    return json_is_true(json_object_get(json_object_get(inspect, "HostConfig"), "Privileged"));
}

/* A privileged container has what these take away. */
static char *bypassed(const DkrSandboxOptions *o)
{
    const struct {
        const char *name;
        char **texts;
    } options[] = {
        {"capDrop", o->cap_drop}, {"capAdd", o->cap_add}, {"securityOpt", o->security_opt}};
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (options[i].texts && *options[i].texts)
            g_ptr_array_add(names, (char *)options[i].name);
    }
    if (names->len == 0)
        return NULL;
    g_ptr_array_add(names, NULL);
    return g_strjoinv(", ", (char **)names->pdata);
}

static void append_difference(GString *list, const DkrSpecDifference *d)
{
    g_string_append_printf(list, "%s%s", list->len ? ", " : "", d->path);
    if (d->asked)
        g_string_append_printf(list, " (asked for %s, it has %s)", d->asked, d->got);
}

/* Takes line over. */
static void add_line(GPtrArray *lines, const GString *list, char *line)
{
    if (list->len > 0)
        g_ptr_array_add(lines, line);
    else
        g_free(line);
}

/* That nobody asked for a privileged container is told in words of its own. */
static void add_differences(GPtrArray *lines, const DkrSandboxOptions *options,
                            const json_t *inspect, const DkrSpecImages *images)
{
    g_autoptr(GPtrArray) found = dkr_spec_compare(options, inspect, images);
    g_autoptr(GString) kept = g_string_new(NULL);
    g_autoptr(GString) used = g_string_new(NULL);
    for (guint i = 0; i < found->len; i++) {
        const DkrSpecDifference *d = found->pdata[i];
        if (strcmp(d->path, "privileged") != 0 || options->privileged.is_set)
            append_difference(d->is_used ? used : kept, d);
        else
            g_ptr_array_add(
                lines,
                g_strdup_printf("the existing container of sandbox \"%s\" is privileged, which "
                                "was not asked for: destroy it to have one that is not",
                                options->id));
    }
    add_line(lines, kept,
             g_strdup_printf("the existing container of sandbox \"%s\" differs from the options "
                             "and keeps its own: %s; destroy it to have one with these options",
                             options->id, kept->str));
    add_line(lines, used,
             g_strdup_printf("the existing container of sandbox \"%s\" was made with other values "
                             "of: %s; calls of this handle go by those asked for, its main process "
                             "keeps its own",
                             options->id, used->str));
}

char **dkr_warnings(const DkrSandboxOptions *options, const json_t *inspect,
                    const DkrSpecImages *images, bool made_now)
{
    GPtrArray *lines = g_ptr_array_new();
    g_autofree char *useless = is_privileged(inspect) ? bypassed(options) : NULL;
    if (useless)
        g_ptr_array_add(lines, g_strdup_printf("sandbox \"%s\": privileged containers can bypass "
                                               "%s: leave \"privileged\" out to have them hold",
                                               options->id, useless));
    if (!made_now)
        add_differences(lines, options, inspect, images);
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}
