/*
 * What a build asks of its session, one gRPC call each: secrets, whether we live, credentials of a
 * registry. From the bytes of a request to those of its answer; the session moves both. Called on
 * the thread that reads the build.
 */
#pragma once

#include "base/wipe.h"
#include "buildkit/protobuf.h"

/* Where answers come from. Either function may be NULL, and answers false when it has none. */
typedef struct {
    void *ctx;
    /* Belongs to the services and lives as long as they. */
    bool (*secret)(void *ctx, const char *id, const SprSecret **ret_value);
    bool (*login)(void *ctx, const char *registry, SprSecret **ret_user, SprSecret **ret_password);
} DkrServices;

/* gRPC's own numbers. */
typedef enum {
    DKR_GRPC_OK = 0,
    DKR_GRPC_NOT_FOUND = 5,
    DKR_GRPC_RESOURCE_EXHAUSTED = 8,
    DKR_GRPC_UNIMPLEMENTED = 12,
    DKR_GRPC_INTERNAL = 13
} DkrGrpcStatus;

/* A request that is longer, with its prefix, is refused: none of ours comes near. */
#define DKR_GRPC_REQUEST_MOST (64u << 10)

/* Answers the call of this path. request is what came, with gRPC's prefix. On DKR_GRPC_OK
 * *ret_answer is the message to send with its prefix. */
DkrGrpcStatus dkr_service_answer(const DkrServices *services, const char *path,
                                 DkrProtoBytes request, SprSecret **ret_answer);
