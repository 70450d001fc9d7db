#include "buildkit/service.h"

#include <string.h>

#define PREFIX_BYTES 5

typedef DkrGrpcStatus (*Method)(const DkrServices *services, DkrProtoBytes message,
                                SprSecret **ret_answer);

/* One message behind gRPC's prefix: a flag for compression, which nobody was offered, and its size
 * in big endian. */
static bool take_message(DkrProtoBytes request, DkrProtoBytes *ret_message)
{
    const guint8 *data = request.data;
    if (request.size < PREFIX_BYTES || data[0] != 0)
        return false;
    gsize size = (gsize)data[1] << 24 | (gsize)data[2] << 16 | (gsize)data[3] << 8 | data[4];
    *ret_message = (DkrProtoBytes){data + PREFIX_BYTES, size};
    return size == request.size - PREFIX_BYTES;
}

/* A message of up to two bytes fields, 1 and 2; empty ones are left out, as protobuf does. */
static SprSecret *make_answer(DkrProtoBytes first, DkrProtoBytes second)
{
    gsize size = (first.size > 0 ? dkr_proto_bytes_size(first.size) : 0) +
                 (second.size > 0 ? dkr_proto_bytes_size(second.size) : 0);
    gsize whole = PREFIX_BYTES + size;
    guint8 *bytes = g_try_malloc(whole);
    if (!bytes)
        return NULL;
    bytes[0] = 0;
    for (gsize i = 0; i < 4; i++)
        bytes[1 + i] = (guint8)(size >> (24 - 8 * i));
    guint8 *at = bytes + PREFIX_BYTES;
    if (first.size > 0)
        at = dkr_proto_put_bytes(at, 1, first.data, first.size);
    if (second.size > 0)
        dkr_proto_put_bytes(at, 2, second.data, second.size);
    SprSecret *answer = spr_secret_new(bytes, whole);
    spr_wipe_free(bytes, whole);
    return answer;
}

static DkrGrpcStatus give(DkrProtoBytes first, DkrProtoBytes second, SprSecret **ret_answer)
{
    SprSecret *answer = make_answer(first, second);
    if (!answer)
        return DKR_GRPC_RESOURCE_EXHAUSTED;
    *ret_answer = answer;
    return DKR_GRPC_OK;
}

static DkrProtoBytes bytes_of(const SprSecret *secret)
{
    if (!secret)
        return (DkrProtoBytes){NULL, 0};
    return (DkrProtoBytes){(const guint8 *)spr_secret_data(secret), spr_secret_size(secret)};
}

/* Field 1 as text; NULL when there is none or it holds a NUL. */
static char *first_text(DkrProtoBytes message)
{
    DkrProtoBytes field;
    if (!dkr_proto_find_bytes(message, 1, &field) || memchr(field.data, '\0', field.size))
        return NULL;
    return g_strndup((const char *)field.data, field.size);
}

static DkrGrpcStatus get_secret(const DkrServices *services, DkrProtoBytes message,
                                SprSecret **ret_answer)
{
    g_autofree char *id = first_text(message);
    const SprSecret *value = NULL;
    if (!id || !services->secret || !services->secret(services->ctx, id, &value))
        return DKR_GRPC_NOT_FOUND;
    return give(bytes_of(value), (DkrProtoBytes){NULL, 0}, ret_answer);
}

/* No login is an empty answer: the registry is asked without one. */
static DkrGrpcStatus credentials(const DkrServices *services, DkrProtoBytes message,
                                 SprSecret **ret_answer)
{
    g_autofree char *registry = first_text(message);
    g_autoptr(SprSecret) user = NULL;
    g_autoptr(SprSecret) password = NULL;
    if (registry && services->login)
        services->login(services->ctx, registry, &user, &password);
    return give(bytes_of(user), bytes_of(password), ret_answer);
}

/* BuildKit closes the session of who does not say that it is well: SERVING is 1. */
static DkrGrpcStatus check_health(const DkrServices *services, DkrProtoBytes message,
                                  SprSecret **ret_answer)
{
    static const guint8 serving[] = {0, 0, 0, 0, 2, 0x08, 0x01};
    *ret_answer = spr_secret_new(serving, sizeof serving);
    return *ret_answer ? DKR_GRPC_OK : DKR_GRPC_RESOURCE_EXHAUSTED;
}

static const struct {
    const char *path;
    Method method;
} methods[] = {
    {"/moby.buildkit.secrets.v1.Secrets/GetSecret", get_secret},
    {"/moby.filesync.v1.Auth/Credentials", credentials},
    {"/grpc.health.v1.Health/Check", check_health},
};

DkrGrpcStatus dkr_service_answer(const DkrServices *services, const char *path,
                                 DkrProtoBytes request, SprSecret **ret_answer)
{
    DkrProtoBytes message;
    for (gsize i = 0; i < G_N_ELEMENTS(methods); i++) {
        if (strcmp(path, methods[i].path) != 0)
            continue;
        if (!take_message(request, &message))
            return DKR_GRPC_INTERNAL;
        return methods[i].method(services, message, ret_answer);
    }
    return DKR_GRPC_UNIMPLEMENTED;
}
