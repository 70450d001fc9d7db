#include "engine/archive.h"

#include "base/text.h"

#define IDLE_MS (30 * 1000)

static char *archive_path(const char *container, const char *path, const char *more)
{
    g_autofree char *escaped = spr_url_escape(path);
    return g_strdup_printf("/containers/%s/archive?path=%s%s", container, escaped, more);
}

bool dkr_archive_get(DkrClient *client, const char *container, const char *path,
                     const SprWait *wait, DkrReply **ret_reply, GError **error)
{
    g_autofree char *url = archive_path(container, path, "");
    DkrRequest request = {.method = "GET", .path = url, .limit_ms = -1, .idle_ms = IDLE_MS};
    return dkr_client_open(client, &request, wait, ret_reply, error);
}

bool dkr_archive_put(DkrClient *client, const char *container, const char *directory,
                     DkrBodyFn read_body, void *read_ctx, const SprWait *wait, GError **error)
{
    g_autofree char *url = archive_path(container, directory, "&noOverwriteDirNonDir=1");
    DkrRequest request = {.method = "PUT",
                          .path = url,
                          .read_body = read_body,
                          .read_ctx = read_ctx,
                          .body_type = "application/x-tar",
                          .limit_ms = -1,
                          .idle_ms = IDLE_MS};
    return dkr_client_json(client, &request, wait, NULL, error);
}
