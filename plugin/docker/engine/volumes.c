#include "engine/volumes.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/failure.h"

bool dkr_volume_ensure(DkrClient *client, const char *name, json_t *labels, const SprWait *wait,
                       char **ret_created, GError **error)
{
    json_auto_t *answer = NULL;
    json_auto_t *body = json_pack("{s:s, s:O}", "Name", name, "Labels", labels);
    char *text = json_dumps(body, JSON_COMPACT);
    DkrRequest request = {.method = "POST", .path = "/volumes/create", .body = text};
    bool ok = dkr_client_json(client, &request, wait, &answer, error);
    free(text);
    if (ok && ret_created)
        *ret_created = g_strdup(json_string_value(json_object_get(answer, "CreatedAt")) ?: "");
    return ok;
}

bool dkr_volume_list(DkrClient *client, const char *label, const SprWait *wait, json_t **ret_array,
                     GError **error)
{
    g_autofree char *filters = g_strdup_printf("{\"label\":[\"%s\"]}", label);
    g_autofree char *escaped = spr_url_escape(filters);
    g_autofree char *path = g_strdup_printf("/volumes?filters=%s", escaped);
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    json_t *volumes = json_object_get(answer, "Volumes");
    if (!json_is_object(answer) || (!json_is_array(volumes) && !json_is_null(volumes)))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's list of volumes is none");
    *ret_array = json_is_array(volumes) ? json_incref(volumes) : json_array();
    return true;
}

bool dkr_volume_remove(DkrClient *client, const char *name, const SprWait *wait, GError **error)
{
    g_autofree char *escaped = spr_url_escape(name);
    g_autofree char *path = g_strdup_printf("/volumes/%s", escaped);
    DkrRequest request = {.method = "DELETE", .path = path};
    g_autoptr(GError) why = NULL;
    if (dkr_client_json(client, &request, wait, NULL, &why) || dkr_failure_status(why) == 404)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
