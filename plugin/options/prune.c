#include "options/prune.h"

#include "options/json.h"

#include <stddef.h>
#include <string.h>

const char *const dkr_prune_kinds[] = {"sandbox", "helper", "folder", "volume", "template", NULL};

void dkr_prune_options_free(DkrPruneOptions *options)
{
    if (!options)
        return;
    g_strfreev(options->only);
    dkr_pairs_clear(&options->labels);
    g_free(options);
}

static const char *wrong_kind(const char *key, const char *text)
{
    return g_strv_contains(dkr_prune_kinds, text)
               ? NULL
               : "must be sandbox, helper, folder, volume or template";
}

#define AT(member) offsetof(DkrPruneOptions, member)

static const DkrJsonField fields[] = {
    {"olderThan", dkr_json_read_integer, AT(older_than), .min = 0, .max = G_MAXINT64},
    {"orphans", dkr_json_read_bool, AT(orphans)},
    {"dryRun", dkr_json_read_bool, AT(dry_run)},
    {"only", dkr_json_read_texts, AT(only), .wrong = wrong_kind},
    {"labels", dkr_json_read_pairs, AT(labels)},
    {NULL},
};

bool dkr_prune_options_parse(const char *json, DkrPruneOptions **ret_options, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "prune options", &object, error))
        return false;
    g_autoptr(DkrPruneOptions) options = g_new0(DkrPruneOptions, 1);
    if (!dkr_json_read_object(object, NULL, fields, options, error))
        return false;
    *ret_options = g_steal_pointer(&options);
    return true;
}

bool dkr_prune_options_mean(const DkrPruneOptions *options, const char *kind)
{
    if (options->labels.count > 0 && strcmp(kind, dkr_prune_kinds[0]) != 0)
        return false;
    return !options->only || g_strv_contains((const char *const *)options->only, kind);
}
