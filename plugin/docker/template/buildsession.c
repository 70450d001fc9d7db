#include "template/buildsession.h"

#include "base/text.h"
#include "engine/failure.h"
#include "engine/hijack.h"

#define ID_BYTES 16

struct DkrBuildSession {
    char *id;
    DkrHijack *hijack;
    DkrSession *session;
    DkrBeside beside;
    bool is_over;
};

/* What an engine may ask is told by name, as its own clients do. */
static bool dial(DkrBuildSession *session, DkrClient *client, const SprWait *wait, GError **error)
{
    g_autofree char *headers = g_strdup_printf(
        "X-Docker-Expose-Session-Uuid: %s\r\n"
        "X-Docker-Expose-Session-Name: sprov\r\n"
        "X-Docker-Expose-Session-Sharedkey: \r\n"
        "X-Docker-Expose-Session-Grpc-Method: /moby.buildkit.secrets.v1.Secrets/GetSecret\r\n"
        "X-Docker-Expose-Session-Grpc-Method: /moby.filesync.v1.Auth/Credentials\r\n"
        "X-Docker-Expose-Session-Grpc-Method: /grpc.health.v1.Health/Check\r\n",
        session->id);
    const DkrHijackRequest request = {.path = "/session", .protocol = "h2c", .headers = headers};
    g_autoptr(GError) why = NULL;
    if (dkr_hijack_open(client, &request, wait, &session->hijack, &why)) {
        return dkr_hijack_is_upgraded(session->hijack) ||
               spr_fail(error, SPR_E_UNSUPPORTED, "no-buildkit",
                        "the engine, or a proxy before it, opens no build session");
    }
    if (dkr_failure_status(why) == 404)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-buildkit",
                        "the engine has no BuildKit, which steps with secrets need: %s",
                        why->message);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* Sends what fits. False when the connection broke. */
static bool flush(DkrBuildSession *session)
{
    const void *data;
    gsize size, sent;
    for (;;) {
        dkr_session_pending(session->session, &data, &size);
        if (size == 0)
            return true;
        if (!dkr_hijack_write(session->hijack, data, size, &sent, NULL))
            return false;
        dkr_session_sent(session->session, sent);
        if (sent == 0)
            return true;
    }
}

/* Reads until there is nothing, so that a transport with a buffer of its own is drained too. */
static bool take(DkrBuildSession *session)
{
    guint8 bytes[16 * 1024];
    gsize size;
    bool end;
    for (;;) {
        if (!dkr_hijack_read(session->hijack, bytes, sizeof bytes, &size, &end, NULL) || end)
            return false;
        if (size == 0)
            return true;
        if (!dkr_session_feed(session->session, bytes, size, NULL) || !flush(session))
            return false;
    }
}

void dkr_build_session_serve(DkrBuildSession *session)
{
    if (!session->is_over)
        session->is_over = !flush(session) || !take(session) || !flush(session);
}

static void on_ready(void *ctx)
{
    dkr_build_session_serve(ctx);
}

static short wanted_events(void *ctx)
{
    DkrBuildSession *session = ctx;
    const void *data;
    gsize size;
    if (session->is_over)
        return 0;
    dkr_session_pending(session->session, &data, &size);
    return size > 0 ? POLLIN | POLLOUT : POLLIN;
}

bool dkr_build_session_open(DkrClient *client, const DkrServices *services, const SprWait *wait,
                            DkrBuildSession **ret_session, GError **error)
{
    g_autoptr(DkrBuildSession) session = g_new0(DkrBuildSession, 1);
    session->id = spr_random_hex(ID_BYTES);
    session->session = dkr_session_new(services);
    if (!session->session)
        return spr_fail(error, SPR_E_EXHAUSTED, "memory", "no memory for the session of a build");
    if (!dial(session, client, wait, error))
        return false;
    session->beside = (DkrBeside){.fd = dkr_hijack_fd(session->hijack),
                                  .events = wanted_events,
                                  .ready = on_ready,
                                  .ctx = session};
    dkr_build_session_serve(session);
    *ret_session = g_steal_pointer(&session);
    return true;
}

const char *dkr_build_session_id(const DkrBuildSession *session)
{
    return session->id;
}

const DkrBeside *dkr_build_session_beside(const DkrBuildSession *session)
{
    return &session->beside;
}

void dkr_build_session_free(DkrBuildSession *session)
{
    if (!session)
        return;
    dkr_hijack_free(session->hijack);
    dkr_session_free(session->session);
    g_free(session->id);
    g_free(session);
}
