#include "local/differences.h"

#include "base/text.h"

#include <string.h>

static void add_name(GString *list, const char *name)
{
    g_string_append_printf(list, "%s%s", list->len ? ", " : "", name);
}

/* NULL asks for nothing. */
static void compare_text(GString *list, const char *name, const char *asked, const char *has)
{
    if (!asked || g_strcmp0(asked, has) == 0)
        return;
    g_autofree char *quoted = dkr_json_quote(asked);
    g_autofree char *own = has ? dkr_json_quote(has) : g_strdup("its default");
    add_name(list, name);
    g_string_append_printf(list, " (asked for %s, it has %s)", quoted, own);
}

static char *limit_text(gint64 limit)
{
    return limit > 0 ? g_strdup_printf("%" G_GINT64_FORMAT, limit) : g_strdup("no limit");
}

static void compare_limit(GString *list, const char *name, const DkrOptInt *asked, gint64 has)
{
    if (!asked->is_set || asked->value == has)
        return;
    g_autofree char *wanted = limit_text(asked->value);
    g_autofree char *own = limit_text(has);
    add_name(list, name);
    g_string_append_printf(list, " (asked for %s, it has %s)", wanted, own);
}

static const char *value_of(const DkrPairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].name, name) == 0)
            return pairs->items[i].value;
    }
    return NULL;
}

/* Their values are the user's own business. */
static void compare_labels(GString *list, const DkrPairs *asked, const DkrPairs *has)
{
    for (size_t i = 0; i < asked->count; i++) {
        const DkrPair *label = &asked->items[i];
        if (g_strcmp0(label->value, value_of(has, label->name)) == 0)
            continue;
        g_autofree char *quoted = dkr_json_quote(label->name);
        g_autofree char *name = g_strdup_printf("labels[%s]", quoted);
        add_name(list, name);
    }
}

char *local_differences(const DkrSandboxOptions *options, const LocalRecord *record,
                        const char *workdir)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_autofree char *wanted = options->working_directory ? spr_clean_path(workdir) : NULL;
    g_autofree char *own = spr_clean_path(record->workdir);
    compare_text(list, "isolation", options->isolation, record->isolation);
    compare_text(list, "network", options->network_is_set ? options->network : NULL,
                 record->network);
    compare_text(list, "hostname", options->hostname, record->hostname);
    compare_text(list, "workingDirectory", wanted, own);
    compare_limit(list, "memory", &options->memory, record->memory);
    compare_limit(list, "pidsLimit", &options->pids_limit, record->pids);
    if (options->mounts.is_given && !local_mounts_equal(&options->mounts, &record->mounts))
        add_name(list, "mounts");
    compare_labels(list, &options->labels, &record->labels);
    return list->len > 0 ? g_strdup(list->str) : NULL;
}
