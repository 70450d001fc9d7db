#include "options/build.h"

#include "options/json.h"

#include <stddef.h>
#include <string.h>

#define SCOPE_MOST 1024

void dkr_build_options_free(DkrBuildOptions *options)
{
    if (!options)
        return;
    g_free(options->network);
    g_free(options->platform);
    g_free(options->cache_scope);
    g_free(options);
}

/* "os/architecture" or "os/architecture/variant". */
static const char *wrong_platform(const char *key, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", -1);
    guint count = g_strv_length(parts);
    bool ok = count == 2 || count == 3;
    for (char **part = parts; *part; part++)
        ok = ok && **part && (*part)[strspn(*part, "abcdefghijklmnopqrstuvwxyz0123456789_")] == 0;
    return ok ? NULL : "must be like linux/amd64 or linux/arm/v7, in small letters";
}

static const char *const networks[] = {"default", "host", "none", NULL};

#define AT(member) offsetof(DkrBuildOptions, member)

static const DkrJsonField fields[] = {
    {"network", dkr_json_read_word, AT(network), .words = networks},
    {"platform", dkr_json_read_text, AT(platform), .wrong = wrong_platform},
    {"cacheScope", dkr_json_read_text, AT(cache_scope), .min = 1, .max = SCOPE_MOST},
    {"pull", dkr_json_read_bool, AT(pull)},
    {NULL},
};

bool dkr_build_options_parse(const char *json, DkrBuildOptions **ret_options, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "build options", &object, error))
        return false;
    g_autoptr(DkrBuildOptions) options = g_new0(DkrBuildOptions, 1);
    if (!dkr_json_read_object(object, NULL, fields, options, error))
        return false;
    *ret_options = g_steal_pointer(&options);
    return true;
}
