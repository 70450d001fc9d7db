#include "template/buildengine.h"

#include "engine/containers.h"
#include "engine/images.h"
#include "engine/registry.h"
#include "template/buildsession.h"
#include "template/identity.h"
#include "template/join.h"

#include <string.h>

#define SWEEP_LIMIT_MS (10 * 1000)

typedef struct {
    DkrClient *client;
    const DkrBuildRequest *request;
    DkrBuildSession *session; /* NULL: none is open */
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
    if (image)
        return true;
    const DkrBuildHost *host = &link->request->host;
    g_autoptr(SprSecret) auth = dkr_registry_auth(name, host->login, host->ctx);
    return dkr_image_pull(link->client, name, NULL, auth, wait, link->request->on_progress,
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

static bool open_session(void *ctx, const DkrServices *services, const SprWait *wait, char **ret_id,
                         GError **error)
{
    Link *link = ctx;
    if (!dkr_build_session_open(link->client, services, wait, &link->session, error))
        return false;
    *ret_id = g_strdup(dkr_build_session_id(link->session));
    return true;
}

static void close_session(void *ctx)
{
    Link *link = ctx;
    g_clear_pointer(&link->session, dkr_build_session_free);
}

/* An image is removed by its name or, where it has none, by its id; one that never had a name is
 * about to be given it. */
static bool has_lost_its_name(const json_t *image)
{
    const json_t *metadata = json_object_get(image, "Metadata");
    const char *named = json_string_value(json_object_get(metadata, "LastTagTime"));
    return json_array_size(json_object_get(image, "RepoTags")) == 0 && named &&
           !g_str_has_prefix(named, "0001-");
}

static void sweep_one(Link *link, const char *id, const SprWait *wait)
{
    json_auto_t *image = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_image_inspect(link->client, id, wait, &image, &why) || !has_lost_its_name(image))
        return;
    if (!dkr_image_remove(link->client, id, wait, &why))
        spr_log(link->request->log, SPR_LOG_DEBUG, "template", "the replaced image %s stays: %s",
                id, why->message);
}

/* Best effort: a build that succeeded stays one. */
static void sweep(void *ctx, const char *name)
{
    Link *link = ctx;
    SprWait wait = spr_wait_for(SWEEP_LIMIT_MS);
    json_auto_t *images = NULL;
    json_t *image;
    gsize i;
    g_autofree char *label = g_strdup_printf(DKR_TEMPLATE_LABEL "=%s", name);
    if (!dkr_image_list_dangling(link->client, label, &wait, &images, NULL))
        return;
    json_array_foreach(images, i, image)
    {
        const char *id = json_string_value(json_object_get(image, "Id"));
        if (id)
            sweep_one(link, id, &wait);
    }
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
    if (link->session)
        request.beside = dkr_build_session_beside(link->session);
    if (!dkr_client_open(link->client, &request, wait, &reply, error))
        return false;
    const void *data;
    gsize size = 1;
    while (size > 0) {
        if (link->session) /* a build that prints without pause does not keep it waiting */
            dkr_build_session_serve(link->session);
        if (!dkr_reply_read(reply, wait, &data, &size, error) ||
            (size > 0 && !on_chunk(chunk_ctx, data, size, error)))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------- joined */

typedef struct {
    Link link;
    const DkrRecipe *recipe;
    DkrBuildRequest request;
    const SprWait *wait;
} Work;

static DkrBuildEngine engine_of(Link *link)
{
    return (DkrBuildEngine){.ctx = link,
                            .inspect = inspect,
                            .ensure_base = ensure_base,
                            .open_session = open_session,
                            .close_session = close_session,
                            .post_build = post_build,
                            .sweep = sweep};
}

static bool work(void *ctx, DkrReportFn report, void *report_ctx, DkrTemplateImage **ret_image,
                 GError **error)
{
    Work *w = ctx;
    DkrBuildEngine engine = engine_of(&w->link);
    w->request.on_progress = report;
    w->request.progress_ctx = report_ctx;
    w->link.request = &w->request;
    return dkr_template_build(w->recipe, &w->request, &engine, w->wait, ret_image, error);
}

/* What makes two builds of one template differ, or their answers. */
static char *variant_of(const DkrRecipe *recipe, const DkrBuildRequest *request)
{
    bool asks = recipe->secret_names[0] || request->host.login;
    return g_strdup_printf("%d %d %s %s %s", request->force, request->pull,
                           request->network ? request->network : "-",
                           recipe->cache_scope ? recipe->cache_scope : "-",
                           asks && request->host.name ? request->host.name : "-");
}

bool dkr_template_build_on(DkrClient *client, const DkrRecipe *recipe,
                           const DkrBuildRequest *request, const SprWait *wait,
                           DkrTemplateImage **ret_image, GError **error)
{
    Work w = {.link = {.client = client, .request = request},
              .recipe = recipe,
              .request = *request,
              .wait = wait};
    DkrBuildEngine engine = engine_of(&w.link);
    if (!request->force && !dkr_template_find(recipe, &engine, wait, ret_image, error))
        return false;
    if (!request->force && *ret_image)
        return true;
    g_autofree char *variant = variant_of(recipe, request);
    DkrJoinKey key = {.engine = dkr_client_endpoint(client)->address,
                      .template_id = recipe->template_id,
                      .variant = variant};
    return dkr_join(&key, work, &w, request->on_progress, request->progress_ctx, wait, ret_image,
                    error);
}

/* ------------------------------------------------------------------------- its users */

#define USERS_SHOWN 5

char *dkr_template_users(DkrClient *client, const char *template_id, const SprWait *wait)
{
    json_auto_t *found = NULL;
    json_t *container;
    gsize i;
    if (!dkr_container_list_of_image(client, template_id, wait, &found, NULL) ||
        json_array_size(found) == 0)
        return NULL;
    GString *text = g_string_new(NULL);
    json_array_foreach(found, i, container)
    {
        const char *name =
            json_string_value(json_array_get(json_object_get(container, "Names"), 0));
        if (i < USERS_SHOWN)
            g_string_append_printf(text, "%s%s", i > 0 ? ", " : "",
                                   name ? name + (*name == '/') : "a container without a name");
    }
    if (i > USERS_SHOWN)
        g_string_append_printf(text, " and %zu more", i - USERS_SHOWN);
    return g_string_free(text, FALSE);
}
