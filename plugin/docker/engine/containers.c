#include "engine/containers.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/demux.h"
#include "engine/failure.h"

#include <string.h>

#define LAST_OUTPUT_MOST (4u << 10)
#define REMOVE_LIMIT_MS (60 * 1000)

static bool get_json(DkrClient *client, const char *path, const SprWait *wait, json_type type,
                     json_t **ret, GError **error)
{
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    if (!answer || json_typeof(answer) != type)
        return spr_fail(error, SPR_E_IO, "bad-answer",
                        "the engine's answer to %s is not what it should be", path);
    *ret = g_steal_pointer(&answer);
    return true;
}

static bool list_at(DkrClient *client, const char *path, const SprWait *wait, json_t **ret_array,
                    GError **error)
{
    json_auto_t *array = NULL;
    size_t i;
    json_t *element;
    if (!get_json(client, path, wait, JSON_ARRAY, &array, error))
        return false;
    json_array_foreach(array, i, element)
    {
        if (!json_is_string(json_object_get(element, "Id")))
            return spr_fail(error, SPR_E_IO, "bad-answer",
                            "the engine's list of containers holds something else");
    }
    *ret_array = g_steal_pointer(&array);
    return true;
}

/* The containers that pass one filter. */
static bool list(DkrClient *client, const char *filter, const char *value, const SprWait *wait,
                 json_t **ret_array, GError **error)
{
    json_auto_t *filters = json_pack("{s:[s]}", filter, value);
    if (!filters)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "not-utf8", "the sandbox's id is not UTF-8");
    char *text = json_dumps(filters, JSON_COMPACT);
    g_autofree char *escaped = spr_url_escape(text);
    free(text);
    g_autofree char *path = g_strdup_printf("/containers/json?all=1&filters=%s", escaped);
    return list_at(client, path, wait, ret_array, error);
}

bool dkr_container_list_all(DkrClient *client, const SprWait *wait, json_t **ret_array,
                            GError **error)
{
    return list_at(client, "/containers/json?all=1", wait, ret_array, error);
}

bool dkr_container_list(DkrClient *client, const char *label, const SprWait *wait,
                        json_t **ret_array, GError **error)
{
    return list(client, "label", label, wait, ret_array, error);
}

bool dkr_container_list_of_image(DkrClient *client, const char *image, const SprWait *wait,
                                 json_t **ret_array, GError **error)
{
    return list(client, "ancestor", image, wait, ret_array, error);
}

bool dkr_container_inspect(DkrClient *client, const char *container, const SprWait *wait,
                           json_t **ret_object, GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s/json", container);
    json_auto_t *object = NULL;
    if (!get_json(client, path, wait, JSON_OBJECT, &object, error))
        return false;
    if (!json_is_string(json_object_get(object, "Id")) ||
        !json_is_object(json_object_get(object, "State")))
        return spr_fail(error, SPR_E_IO, "bad-answer",
                        "the engine's record of container %s is none", container);
    *ret_object = g_steal_pointer(&object);
    return true;
}

/* "&key=value", or "" without a value */
static char *query_part(const char *key, const char *value)
{
    g_autofree char *escaped = value ? spr_url_escape(value) : NULL;
    return value ? g_strdup_printf("&%s=%s", key, escaped) : g_strdup("");
}

bool dkr_container_create(DkrClient *client, const char *name, const char *platform,
                          const char *body, const SprWait *wait, char **ret_id, GError **error)
{
    g_autofree char *named = query_part("name", name);
    g_autofree char *placed = query_part("platform", platform);
    g_autofree char *query = g_strconcat(named, placed, NULL);
    g_autofree char *path =
        g_strdup_printf("/containers/create%s%s", *query ? "?" : "", *query ? query + 1 : "");
    DkrRequest request = {
        .method = "POST", .path = path, .body = body, .limit_ms = -1, .patient = true};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    const char *id = json_string_value(json_object_get(answer, "Id"));
    if (!id || !*id)
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine made a container without an id");
    *ret_id = g_strdup(id);
    return true;
}

bool dkr_container_start(DkrClient *client, const char *container, const SprWait *wait,
                         GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s/start", container);
    DkrRequest request = {.method = "POST", .path = path, .limit_ms = -1, .patient = true};
    return dkr_client_json(client, &request, wait, NULL, error);
}

bool dkr_container_has_ended(DkrClient *client, const char *container, gint64 within_ms,
                             const SprWait *wait, bool *ret_ended, GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s/wait?condition=not-running", container);
    DkrRequest request = {.method = "POST", .path = path, .limit_ms = within_ms};
    g_autoptr(GError) why = NULL;
    *ret_ended = dkr_client_json(client, &request, wait, NULL, &why);
    if (*ret_ended || spr_error_is(why, SPR_E_TIMEOUT, "engine-silent"))
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_container_unpause(DkrClient *client, const char *container, const SprWait *wait,
                           GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s/unpause", container);
    DkrRequest request = {.method = "POST", .path = path};
    return dkr_client_json(client, &request, wait, NULL, error);
}

bool dkr_container_stop(DkrClient *client, const char *container, int grace_s, const SprWait *wait,
                        GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s/stop?t=%d", container, grace_s);
    DkrRequest request = {
        .method = "POST", .path = path, .limit_ms = DKR_REQUEST_LIMIT_MS + (gint64)grace_s * 1000};
    return dkr_client_json(client, &request, wait, NULL, error);
}

/* *ret_status: of the engine where it refused, 0 where it did not. */
static bool remove_with(DkrClient *client, const char *container, bool force, const SprWait *wait,
                        int *ret_status, GError **error)
{
    g_autofree char *path = g_strdup_printf("/containers/%s?force=%d&v=1", container, force);
    DkrRequest request = {.method = "DELETE", .path = path, .limit_ms = REMOVE_LIMIT_MS};
    g_autoptr(GError) why = NULL;
    *ret_status = 0;
    if (dkr_client_json(client, &request, wait, NULL, &why))
        return true;
    *ret_status = dkr_failure_status(why);
    g_autofree char *text = g_ascii_strdown(why->message, -1);
    if (*ret_status == 404 || (*ret_status == 409 && strstr(text, "already in progress")))
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_container_remove(DkrClient *client, const char *container, const SprWait *wait,
                          GError **error)
{
    int status;
    return remove_with(client, container, true, wait, &status, error);
}

bool dkr_container_remove_found(DkrClient *client, const char *container, const SprWait *wait,
                                bool *ret_was_there, GError **error)
{
    int status;
    bool ok = remove_with(client, container, true, wait, &status, error);
    *ret_was_there = status != 404;
    return ok;
}

bool dkr_container_remove_idle(DkrClient *client, const char *container, const SprWait *wait,
                               GError **error)
{
    int status;
    return remove_with(client, container, false, wait, &status, error);
}

bool dkr_container_stats(DkrClient *client, const char *container, const SprWait *wait,
                         json_t **ret_object, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/containers/%s/stats?stream=false&one-shot=true", container);
    return get_json(client, path, wait, JSON_OBJECT, ret_object, error);
}

static void append_output(void *ctx, int stream, const guint8 *data, gsize size)
{
    GString *text = ctx;
    if (text->len < LAST_OUTPUT_MOST)
        g_string_append_len(text, (const char *)data,
                            (gssize)MIN(size, LAST_OUTPUT_MOST - text->len));
}

char *dkr_container_last_output(DkrClient *client, const char *container, const SprWait *wait)
{
    g_autofree char *path =
        g_strdup_printf("/containers/%s/logs?stdout=1&stderr=1&tail=20", container);
    DkrRequest request = {.method = "GET", .path = path};
    g_autoptr(DkrReply) reply = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    DkrDemux demux = {0};
    const void *data;
    gsize size = 1;
    if (!dkr_client_open(client, &request, wait, &reply, NULL))
        return g_strdup("");
    while (size > 0 && text->len < LAST_OUTPUT_MOST) {
        if (!dkr_reply_read(reply, wait, &data, &size, NULL) ||
            !dkr_demux_push(&demux, data, size, append_output, text, NULL))
            break;
    }
    return g_strstrip(g_utf8_make_valid(text->str, (gssize)text->len));
}
