#include "engine/images.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/failure.h"
#include "engine/jsonstream.h"

#include <string.h>

bool dkr_image_inspect(DkrClient *client, const char *image, const SprWait *wait,
                       json_t **ret_object, GError **error)
{
    g_autofree char *escaped = spr_url_escape(image);
    g_autofree char *path = g_strdup_printf("/images/%s/json", escaped);
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error)) {
        if (error && dkr_failure_status(*error) == 404)
            spr_error_set_reason(error, "image-not-found");
        return false;
    }
    if (!json_is_object(answer))
        return spr_fail(error, SPR_E_IO, "bad-answer",
                        "the engine's record of image \"%s\" is none", image);
    *ret_object = g_steal_pointer(&answer);
    return true;
}

/* The images that pass filters, which is JSON. */
static bool list(DkrClient *client, const char *filters, const SprWait *wait, json_t **ret_array,
                 GError **error)
{
    g_autofree char *escaped = spr_url_escape(filters);
    g_autofree char *path = g_strdup_printf("/images/json?filters=%s", escaped);
    DkrRequest request = {.method = "GET", .path = path};
    json_auto_t *answer = NULL;
    if (!dkr_client_json(client, &request, wait, &answer, error))
        return false;
    if (!json_is_array(answer))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's list of images is none");
    *ret_array = g_steal_pointer(&answer);
    return true;
}

bool dkr_image_list(DkrClient *client, const char *repository, const SprWait *wait,
                    json_t **ret_array, GError **error)
{
    g_autofree char *filters = g_strdup_printf("{\"reference\":[\"%s\"]}", repository);
    return list(client, filters, wait, ret_array, error);
}

bool dkr_image_list_dangling(DkrClient *client, const char *label, const SprWait *wait,
                             json_t **ret_array, GError **error)
{
    g_autofree char *filters =
        g_strdup_printf("{\"dangling\":[\"true\"],\"label\":[\"%s\"]}", label);
    return list(client, filters, wait, ret_array, error);
}

bool dkr_image_remove(DkrClient *client, const char *image, const SprWait *wait, GError **error)
{
    g_autofree char *escaped = spr_url_escape(image);
    g_autofree char *path = g_strdup_printf("/images/%s", escaped);
    DkrRequest request = {.method = "DELETE", .path = path};
    g_autoptr(GError) why = NULL;
    if (dkr_client_json(client, &request, wait, NULL, &why) || dkr_failure_status(why) == 404)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* ------------------------------------------------------------------------------ pull */

typedef struct {
    const char *image;
    DkrProgressFn progress;
    void *progress_ctx;
} Pull;

static void report(const Pull *pull, const json_t *object)
{
    json_t *detail = json_object_get(object, "progressDetail");
    json_t *layer = json_object_get(object, "id");
    json_t *status = json_object_get(object, "status");
    if (!pull->progress || !json_is_string(status))
        return;
    json_auto_t *out =
        json_pack("{s:s, s:s, s:O*, s:O, s:O*, s:O*}", "type", "pull", "image", pull->image,
                  "layer", layer, "status", status, "current", json_object_get(detail, "current"),
                  "total", json_object_get(detail, "total"));
    char *text = out ? json_dumps(out, JSON_COMPACT) : NULL;
    if (text)
        pull->progress(pull->progress_ctx, text);
    free(text);
}

static bool fail_pull(const char *image, const char *why, GError **error)
{
    return spr_fail(error, SPR_E_NOT_FOUND, "image-not-found",
                    "the image \"%s\" could not be pulled: %s; build or load it, or check its name",
                    image, why);
}

/* Errors come inside an answer of 200. */
static bool on_line(void *ctx, json_t *object, GError **error)
{
    const Pull *pull = ctx;
    json_t *message = json_object_get(json_object_get(object, "errorDetail"), "message");
    if (!json_is_string(message))
        message = json_object_get(object, "error");
    if (json_is_string(message))
        return fail_pull(pull->image, json_string_value(message), error);
    report(pull, object);
    return true;
}

/* "repo:tag", "repo@digest" or "repo"; a port in the registry's name is no tag. Without a tag the
 * engine would pull all of them. */
static char *pull_path(const char *image, const char *platform)
{
    const char *at = strchr(image, '@');
    const char *slash = strrchr(image, '/');
    const char *colon = strrchr(slash ? slash : image, ':');
    const char *cut = at ? at : colon;
    g_autofree char *repository = cut ? g_strndup(image, (gsize)(cut - image)) : g_strdup(image);
    g_autofree char *name = spr_url_escape(repository);
    g_autofree char *tag = spr_url_escape(cut ? cut + 1 : "latest");
    g_autofree char *of = platform ? spr_url_escape(platform) : NULL;
    return g_strdup_printf("/images/create?fromImage=%s&tag=%s%s%s", name, tag,
                           of ? "&platform=" : "", of ? of : "");
}

static bool open_pull(DkrClient *client, const char *image, const char *platform,
                      const SprSecret *auth, const SprWait *wait, DkrReply **ret_reply,
                      GError **error)
{
    g_autofree char *path = pull_path(image, platform);
    DkrRequest request = {
        .method = "POST", .path = path, .limit_ms = -1, .patient = true, .registry_auth = auth};
    g_autoptr(GError) why = NULL;
    if (dkr_client_open(client, &request, wait, ret_reply, &why))
        return true;
    if (dkr_failure_status(why) != 0)
        return fail_pull(image, why->message, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_image_pull(DkrClient *client, const char *image, const char *platform,
                    const SprSecret *auth, const SprWait *wait, DkrProgressFn progress,
                    void *progress_ctx, GError **error)
{
    Pull pull = {image, progress, progress_ctx};
    g_autoptr(DkrReply) reply = NULL;
    if (!open_pull(client, image, platform, auth, wait, &reply, error))
        return false;
    g_autoptr(DkrJsonStream) stream = dkr_json_stream_new(on_line, &pull);
    const void *data;
    gsize size = 1;
    while (size > 0) {
        if (!dkr_reply_read(reply, wait, &data, &size, error) ||
            !dkr_json_stream_push(stream, data, size, error))
            return false;
    }
    return dkr_json_stream_finish(stream, error);
}
