/*
 * libFuzzer target: any bytes as what an engine sends in the session of a build, or as the request of
 * one call. The first byte says which, and how the rest is cut into pieces.
 */
#include "buildkit/session.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool give_secret(void *ctx, const char *id, const SprSecret **ret_value)
{
    if (*id == 'M') /* as in "MISSING" */
        return false;
    *ret_value = ctx;
    return true;
}

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    if (*registry == 'M')
        return false;
    *ret_user = *registry == 'T' ? NULL : spr_secret_new("user", 4);
    *ret_password = spr_secret_new("password", 8);
    return true;
}

static void one_call(const DkrServices *services, const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"/moby.buildkit.secrets.v1.Secrets/GetSecret",
                                        "/moby.filesync.v1.Auth/Credentials",
                                        "/grpc.health.v1.Health/Check", "/other"};
    if (size == 0)
        return;
    g_autofree uint8_t *copy = g_memdup2(data + 1, size - 1); /* to see reads beyond it */
    g_autoptr(SprSecret) answer = NULL;
    DkrGrpcStatus status = dkr_service_answer(services, paths[data[0] % G_N_ELEMENTS(paths)],
                                              (DkrProtoBytes){copy, size - 1}, &answer);
    require((status == DKR_GRPC_OK) == (answer != NULL));
    require(!answer || spr_secret_size(answer) >= 5);
}

/* Reads all that is to be sent, a bit at a time. */
static void drain(DkrSession *session, size_t piece)
{
    const void *out;
    gsize size = 1;
    for (guint rounds = 0; size > 0 && rounds < 10000; rounds++) {
        dkr_session_pending(session, &out, &size);
        dkr_session_sent(session, MIN(size, piece));
    }
}

static void whole_session(const DkrServices *services, const uint8_t *data, size_t size,
                          size_t piece)
{
    g_autoptr(DkrSession) session = dkr_session_new(services);
    require(session != NULL);
    if (!dkr_session_feed(session, MAGIC, strlen(MAGIC), NULL))
        return;
    while (size > 0) {
        size_t n = MIN(piece, size);
        g_autofree uint8_t *copy = g_memdup2(data, n);
        if (!dkr_session_feed(session, copy, n, NULL))
            return;
        drain(session, piece * 16);
        data += n;
        size -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(SprSecret) value = spr_secret_new("a value", 7);
    DkrServices services = {.ctx = value, .secret = give_secret, .login = give_login};
    if (size == 0)
        return 0;
    if (data[0] == 0)
        one_call(&services, data + 1, size - 1);
    else
        whole_session(&services, data + 1, size - 1, data[0]);
    return 0;
}
