#include "prune.h"

#include <jansson.h>
#include <string.h>

#include "error.h"
#include "streams.h"
#include "table.h"
#include "values.h"

static const HsColumn columns[] = {
    {"KIND", "kind"}, {"NAME", "what"}, {"AGE", "age"}, {"RESULT", "result"}, {NULL}};

void hs_prune_clear(HsPrune *prune)
{
    g_free(prune->older_than);
    g_strfreev(prune->labels);
    g_strfreev(prune->only);
}

static bool put_labels(json_t *options, char *const *labels, GError **error)
{
    json_t *object = json_object();
    bool ok = true;
    for (; ok && labels && *labels; labels++) {
        g_auto(GStrv) parts = g_strsplit(*labels, "=", 2);
        ok = g_strv_length(parts) == 2 && *parts[0]
                 ? json_object_set_new(object, parts[0], json_string(parts[1])) == 0
                 : hs_fail(error, HS_USAGE, "--label \"%s\" is no NAME=VALUE", *labels);
    }
    if (json_object_size(object) > 0)
        json_object_set(options, "labels", object);
    json_decref(object);
    return ok;
}

static bool put_kinds(json_t *options, char *const *kinds, GError **error)
{
    static const char *const known[] = {"sandbox", "helper", "folder", "volume", "template", NULL};
    json_t *only = json_array();
    for (char *const *kind = kinds; kind && *kind; kind++) {
        if (!g_strv_contains(known, *kind)) {
            json_decref(only);
            return hs_fail(error, HS_USAGE,
                           "--only %s is no kind: give sandbox, helper, folder, volume or template",
                           *kind);
        }
        json_array_append_new(only, json_string(*kind));
    }
    if (json_array_size(only) > 0)
        json_object_set(options, "only", only);
    json_decref(only);
    return true;
}

bool hs_prune_options(const HsPrune *prune, char **ret_json, GError **error)
{
    gint64 older_than = 0;
    if (prune->older_than && !hs_parse_age(prune->older_than, &older_than, error)) {
        g_prefix_error_literal(error, "--older-than: ");
        return false;
    }
    json_t *options = json_object();
    if (prune->older_than)
        json_object_set_new(options, "olderThan", json_integer(older_than));
    if (prune->orphans)
        json_object_set_new(options, "orphans", json_true());
    if (prune->dry_run)
        json_object_set_new(options, "dryRun", json_true());
    bool ok = put_kinds(options, prune->only, error) && put_labels(options, prune->labels, error);
    if (ok)
        *ret_json = json_dumps(options, JSON_COMPACT);
    json_decref(options);
    return ok;
}

/* What is worked out of the object for people. */
static void explain(json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "id"));
    const char *name = json_string_value(json_object_get(row, "name"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    const char *message = json_string_value(json_object_get(row, "message"));
    bool removed = json_is_true(json_object_get(row, "removed"));
    bool dry = g_strcmp0(reason, "dry-run") == 0;
    g_autofree char *age = hs_age_text(json_integer_value(json_object_get(row, "ageMs")) / 1000);
    g_autofree char *result = removed ? g_strdup("removed")
                              : dry   ? g_strdup("would be removed")
                                      : g_strdup_printf("kept: %s", message ? message : reason);
    json_object_set_new(row, "what", json_string(id ? id : name));
    json_object_set_new(row, "age", json_string(age));
    json_object_set_new(row, "result", json_string(result));
}

bool hs_prune_run(HsSession *session, const HsPrune *prune, const char *options, GError **error)
{
    json_t *found = json_array(), *row;
    size_t i;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!session->lib->provider)
        return hs_fail(error, SPROV_E_UNSUPPORTED,
                       "the provider lacks the extension " SPROV_EXT_PROVIDER);
    sprov_status status = session->lib->provider->prune(session->provider, options, &call,
                                                        hs_table_take, found, &failure);
    json_array_foreach(found, i, row)
    {
        if (!prune->as_json)
            explain(row);
    }
    g_autofree char *text = prune->as_json ? hs_table_lines(found)
                            : i > 0        ? hs_table(found, columns)
                                           : g_strdup("");
    json_decref(found);
    return hs_print(text, error) && (status == SPROV_OK || hs_fail_call(error, status, &failure));
}
