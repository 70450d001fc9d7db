#include "template/buildengine.h"

#include "engine/images.h"

#include <string.h>

typedef struct {
    DkrClient *client;
    const DkrBuildRequest *request;
} Link;

typedef struct {
    const char *data;
    gsize size;
} Unsent;

static char *member_text(const json_t *object, const char *key)
{
    return g_strdup(json_string_value(json_object_get(object, key)));
}

static bool inspect(void *ctx, const char *name, const SprWait *wait, DkrTemplateImage **ret_image,
                    GError **error)
{
    const Link *link = ctx;
    json_auto_t *found = NULL;
    g_autoptr(GError) failure = NULL;
    if (!dkr_image_inspect(link->client, name, wait, &found, &failure)) {
        if (!spr_error_is(failure, SPR_E_NOT_FOUND, "image-not-found")) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        *ret_image = NULL;
        return true;
    }
    *ret_image = g_new0(DkrTemplateImage, 1);
    (*ret_image)->id = member_text(found, "Id");
    (*ret_image)->working_dir = member_text(json_object_get(found, "Config"), "WorkingDir");
    return true;
}

static bool ensure_base(void *ctx, const char *name, const SprWait *wait, GError **error)
{
    const Link *link = ctx;
    g_autoptr(DkrTemplateImage) image = NULL;
    if (!inspect(ctx, name, wait, &image, error))
        return false;
    return image || dkr_image_pull(link->client, name, NULL, wait, link->request->on_progress,
                                   link->request->progress_ctx, error);
}

static bool send_tar(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                     GError **error)
{
    Unsent *unsent = ctx;
    *ret_size = MIN(capacity, unsent->size);
    memcpy(buffer, unsent->data, *ret_size);
    unsent->data += *ret_size;
    unsent->size -= *ret_size;
    return true;
}

static bool post_build(void *ctx, const char *path, GBytes *tar, const SprWait *wait,
                       DkrChunkFn on_chunk, void *chunk_ctx, GError **error)
{
    const Link *link = ctx;
    Unsent unsent;
    g_autoptr(DkrReply) reply = NULL;
    unsent.data = g_bytes_get_data(tar, &unsent.size);
    /* A step may take an hour and print nothing. */
    DkrRequest request = {.method = "POST",
                          .path = path,
                          .read_body = send_tar,
                          .read_ctx = &unsent,
                          .body_type = "application/x-tar",
                          .limit_ms = -1,
                          .patient = true};
    if (!dkr_client_open(link->client, &request, wait, &reply, error))
        return false;
    const void *data;
    gsize size = 1;
    while (size > 0) {
        if (!dkr_reply_read(reply, wait, &data, &size, error) ||
            (size > 0 && !on_chunk(chunk_ctx, data, size, error)))
            return false;
    }
    return true;
}

bool dkr_template_build_on(DkrClient *client, const DkrRecipe *recipe,
                           const DkrBuildRequest *request, const SprWait *wait,
                           DkrTemplateImage **ret_image, GError **error)
{
    Link link = {.client = client, .request = request};
    DkrBuildEngine engine = {
        .ctx = &link, .inspect = inspect, .ensure_base = ensure_base, .post_build = post_build};
    return dkr_template_build(recipe, request, &engine, wait, ret_image, error);
}
