#include "engine/archive.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/failure.h"

#define IDLE_MS (30 * 1000)

static char *archive_path(const char *container, const char *path, const char *more)
{
    g_autofree char *escaped = spr_url_escape(path);
    return g_strdup_printf("/containers/%s/archive?path=%s%s", container, escaped, more);
}

/* An answer to HEAD has no body for the engine's words; that to the same GET has. */
static bool fail_in_words(DkrClient *client, const char *url, const GError *why,
                          const SprWait *wait, GError **error)
{
    DkrRequest request = {.method = "GET", .path = url};
    g_autoptr(DkrReply) reply = NULL;
    bool is_silent = dkr_failure_status(why) != 0 && dkr_failure_status(why) != 404;
    if (!is_silent || dkr_client_open(client, &request, wait, &reply, error))
        g_propagate_error(error, g_error_copy(why));
    return false;
}

/* A number of the engine's record of path. */
static bool ask_stat(DkrClient *client, const char *container, const char *path, const char *key,
                     const SprWait *wait, guint64 *ret_number, GError **error)
{
    g_autofree char *url = archive_path(container, path, "");
    DkrRequest request = {.method = "HEAD", .path = url};
    g_autoptr(DkrReply) reply = NULL;
    g_autoptr(GError) why = NULL;
    if (!dkr_client_open(client, &request, wait, &reply, &why))
        return fail_in_words(client, url, why, wait, error);
    const char *stat = dkr_reply_header(reply, "x-docker-container-path-stat");
    gsize length = 0;
    g_autofree guchar *text = stat ? g_base64_decode(stat, &length) : NULL;
    json_auto_t *object = text ? json_loadb((const char *)text, length, 0, NULL) : NULL;
    json_t *number = json_object_get(object, key);
    if (!json_is_integer(number))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's record of the file %s is none",
                        path);
    *ret_number = (guint64)json_integer_value(number);
    return true;
}

bool dkr_archive_size(DkrClient *client, const char *container, const char *path,
                      const SprWait *wait, guint64 *ret_size, GError **error)
{
    return ask_stat(client, container, path, "size", wait, ret_size, error);
}

bool dkr_archive_mode(DkrClient *client, const char *container, const char *path,
                      const SprWait *wait, guint *ret_mode, GError **error)
{
    static const struct {
        guint go, unix_bit;
    } bits[] = {{1u << 20, 01000}, {1u << 22, 02000}, {1u << 23, 04000}};
    guint64 mode;
    if (!ask_stat(client, container, path, "mode", wait, &mode, error))
        return false;
    *ret_mode = (guint)mode & 0777; /* the rest is where Go has it */
    for (gsize i = 0; i < G_N_ELEMENTS(bits); i++)
        *ret_mode |= mode & bits[i].go ? bits[i].unix_bit : 0;
    return true;
}

bool dkr_archive_get(DkrClient *client, const char *container, const char *path,
                     const SprWait *wait, DkrReply **ret_reply, GError **error)
{
    g_autofree char *url = archive_path(container, path, "");
    DkrRequest request = {.method = "GET", .path = url, .limit_ms = -1, .idle_ms = IDLE_MS};
    return dkr_client_open(client, &request, wait, ret_reply, error);
}

bool dkr_archive_put(DkrClient *client, const char *container, const char *directory,
                     SprTarWriter *tar, const SprWait *wait, GError **error)
{
    g_autofree char *url = archive_path(container, directory, "&noOverwriteDirNonDir=1");
    DkrRequest request = {.method = "PUT",
                          .path = url,
                          .read_body = spr_tar_writer_read,
                          .read_ctx = tar,
                          .body_size = spr_tar_writer_size(tar),
                          .body_type = "application/x-tar",
                          .limit_ms = -1,
                          .idle_ms = IDLE_MS};
    return dkr_client_json(client, &request, wait, NULL, error);
}
