/*
 * Decoder of the records in which BuildKit tells its progress: moby.buildkit.v1.StatusResponse in
 * protobuf, as it comes in the "moby.buildkit.trace" lines of a build. Its text is UTF-8 by habit,
 * not by law; fields it does not know are skipped. Pure, any thread.
 */
#pragma once

#include "buildkit/protobuf.h"

typedef struct {
    DkrProtoBytes digest;
    DkrProtoBytes name;
    DkrProtoBytes error; /* empty: none */
    bool cached;
    bool started;
    bool completed;
} DkrTraceVertex;

typedef struct {
    DkrProtoBytes vertex; /* its digest */
    int stream;           /* 1 stdout, 2 stderr */
    DkrProtoBytes text;
} DkrTraceLog;

/* How far a part of a step is, such as a layer on its way. */
typedef struct {
    DkrProtoBytes vertex; /* its digest */
    DkrProtoBytes id;
    guint64 current, total; /* bytes; total 0: not known */
    bool completed;
} DkrTraceStatus;

/* All are called while dkr_trace_decode() runs, in the order of the record. */
typedef struct {
    void (*vertex)(void *ctx, const DkrTraceVertex *vertex);
    void (*log)(void *ctx, const DkrTraceLog *log);
    void (*status)(void *ctx, const DkrTraceStatus *status);
} DkrTraceVisitor;

/* False with SPR_E_IO when the record is cut or malformed; what came before it was handed out. */
bool dkr_trace_decode(const void *data, gsize size, const DkrTraceVisitor *visitor, void *ctx,
                      GError **error);
