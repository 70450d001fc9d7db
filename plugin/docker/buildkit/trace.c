#include "buildkit/trace.h"

#include "base/error.h"
#include "buildkit/protobuf.h"

static bool decode_vertex(DkrProtoBytes bytes, const DkrTraceVisitor *visitor, void *ctx)
{
    DkrProtoCursor in = dkr_proto_cursor(bytes);
    DkrTraceVertex vertex = {0};
    DkrProtoField field;
    while (in.at < in.end) {
        if (!dkr_proto_next(&in, &field))
            return false;
        if (field.number == 4 && field.type == DKR_PROTO_VARINT)
            vertex.cached = field.value != 0;
        if (field.type != DKR_PROTO_BYTES)
            continue;
        if (field.number == 1)
            vertex.digest = field.bytes;
        else if (field.number == 3)
            vertex.name = field.bytes;
        else if (field.number == 5)
            vertex.started = true;
        else if (field.number == 6)
            vertex.completed = true;
        else if (field.number == 7)
            vertex.error = field.bytes;
    }
    visitor->vertex(ctx, &vertex);
    return true;
}

static bool decode_log(DkrProtoBytes bytes, const DkrTraceVisitor *visitor, void *ctx)
{
    DkrProtoCursor in = dkr_proto_cursor(bytes);
    DkrTraceLog log = {0};
    DkrProtoField field;
    while (in.at < in.end) {
        if (!dkr_proto_next(&in, &field))
            return false;
        if (field.number == 1 && field.type == DKR_PROTO_BYTES)
            log.vertex = field.bytes;
        else if (field.number == 3 && field.type == DKR_PROTO_VARINT)
            log.stream = field.value == 2 ? 2 : 1;
        else if (field.number == 4 && field.type == DKR_PROTO_BYTES)
            log.text = field.bytes;
    }
    visitor->log(ctx, &log);
    return true;
}

static bool decode_status(DkrProtoBytes bytes, const DkrTraceVisitor *visitor, void *ctx)
{
    DkrProtoCursor in = dkr_proto_cursor(bytes);
    DkrTraceStatus status = {0};
    DkrProtoField field;
    while (in.at < in.end) {
        if (!dkr_proto_next(&in, &field))
            return false;
        bool is_bytes = field.type == DKR_PROTO_BYTES, is_number = field.type == DKR_PROTO_VARINT;
        if (field.number == 1 && is_bytes)
            status.id = field.bytes;
        else if (field.number == 2 && is_bytes)
            status.vertex = field.bytes;
        else if (field.number == 4 && is_number)
            status.current = field.value;
        else if (field.number == 5 && is_number)
            status.total = field.value;
        else if (field.number == 8 && is_bytes)
            status.completed = true;
    }
    visitor->status(ctx, &status);
    return true;
}

bool dkr_trace_decode(const void *data, gsize size, const DkrTraceVisitor *visitor, void *ctx,
                      GError **error)
{
    if (size == 0) /* data may be NULL then */
        return true;
    DkrProtoCursor in = dkr_proto_cursor((DkrProtoBytes){data, size});
    DkrProtoField field;
    while (in.at < in.end) {
        bool ok = dkr_proto_next(&in, &field);
        if (ok && field.type == DKR_PROTO_BYTES && field.number == 1)
            ok = decode_vertex(field.bytes, visitor, ctx);
        else if (ok && field.type == DKR_PROTO_BYTES && field.number == 2)
            ok = decode_status(field.bytes, visitor, ctx);
        else if (ok && field.type == DKR_PROTO_BYTES && field.number == 3)
            ok = decode_log(field.bytes, visitor, ctx);
        if (!ok)
            return spr_fail(error, SPR_E_IO, "bad-trace",
                            "a progress record of the engine is cut or malformed");
    }
    return true;
}
