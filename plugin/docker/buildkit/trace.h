/*
 * Decoder of the records in which BuildKit tells its progress: moby.buildkit.v1.StatusResponse in
 * protobuf, as it comes in the "moby.buildkit.trace" lines of a build. Knows the wire format and
 * nothing of builds; fields it does not know are skipped. Pure, any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Bytes inside the record that is being decoded; BuildKit's text is UTF-8 by habit, not by law. */
typedef struct {
    const guint8 *data;
    gsize size;
} DkrTraceBytes;

typedef struct {
    DkrTraceBytes digest;
    DkrTraceBytes name;
    DkrTraceBytes error; /* empty: none */
    bool cached;
    bool started;
    bool completed;
} DkrTraceVertex;

typedef struct {
    DkrTraceBytes vertex; /* its digest */
    int stream;           /* 1 stdout, 2 stderr */
    DkrTraceBytes text;
} DkrTraceLog;

/* Both are called while dkr_trace_decode() runs, in the order of the record. */
typedef struct {
    void (*vertex)(void *ctx, const DkrTraceVertex *vertex);
    void (*log)(void *ctx, const DkrTraceLog *log);
} DkrTraceVisitor;

/* False with SPR_E_IO when the record is cut or malformed; what came before it was handed out. */
bool dkr_trace_decode(const void *data, gsize size, const DkrTraceVisitor *visitor, void *ctx,
                      GError **error);
