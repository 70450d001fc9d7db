#include "buildkit/trace.h"

#include "base/error.h"

#include <string.h>

typedef enum {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
} WireType;

typedef struct {
    const guint8 *at;
    const guint8 *end;
} Cursor;

typedef struct {
    guint32 number;
    WireType type;
    guint64 value;       /* of a varint */
    DkrTraceBytes bytes; /* of WIRE_BYTES */
} Field;

static bool read_varint(Cursor *in, guint64 *ret_value)
{
    guint64 value = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        guint8 byte = *in->at++;
        value |= (guint64)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool skip(Cursor *in, guint64 size)
{
    if (size > (guint64)(in->end - in->at))
        return false;
    in->at += size;
    return true;
}

static bool read_field(Cursor *in, Field *field)
{
    guint64 tag, size;
    memset(field, 0, sizeof *field);
    if (!read_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > G_MAXUINT32)
        return false;
    field->number = (guint32)(tag >> 3);
    field->type = (WireType)(tag & 7);
    switch (field->type) {
    case WIRE_VARINT:
        return read_varint(in, &field->value);
    case WIRE_FIXED64:
        return skip(in, 8);
    case WIRE_FIXED32:
        return skip(in, 4);
    case WIRE_BYTES:
        if (!read_varint(in, &size))
            return false;
        field->bytes = (DkrTraceBytes){in->at, (gsize)size};
        return skip(in, size);
    }
    return false; /* groups, which BuildKit does not use, and what protobuf leaves free */
}

static Cursor cursor_of(DkrTraceBytes bytes)
{
    return (Cursor){bytes.data, bytes.data + bytes.size};
}

static bool decode_vertex(DkrTraceBytes bytes, const DkrTraceVisitor *visitor, void *ctx)
{
    Cursor in = cursor_of(bytes);
    DkrTraceVertex vertex = {0};
    Field field;
    while (in.at < in.end) {
        if (!read_field(&in, &field))
            return false;
        if (field.number == 4 && field.type == WIRE_VARINT)
            vertex.cached = field.value != 0;
        if (field.type != WIRE_BYTES)
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

static bool decode_log(DkrTraceBytes bytes, const DkrTraceVisitor *visitor, void *ctx)
{
    Cursor in = cursor_of(bytes);
    DkrTraceLog log = {0};
    Field field;
    while (in.at < in.end) {
        if (!read_field(&in, &field))
            return false;
        if (field.number == 1 && field.type == WIRE_BYTES)
            log.vertex = field.bytes;
        else if (field.number == 3 && field.type == WIRE_VARINT)
            log.stream = field.value == 2 ? 2 : 1;
        else if (field.number == 4 && field.type == WIRE_BYTES)
            log.text = field.bytes;
    }
    visitor->log(ctx, &log);
    return true;
}

bool dkr_trace_decode(const void *data, gsize size, const DkrTraceVisitor *visitor, void *ctx,
                      GError **error)
{
    if (size == 0) /* data may be NULL then */
        return true;
    Cursor in = cursor_of((DkrTraceBytes){data, size});
    Field field;
    while (in.at < in.end) {
        bool ok = read_field(&in, &field);
        if (ok && field.type == WIRE_BYTES && field.number == 1)
            ok = decode_vertex(field.bytes, visitor, ctx);
        else if (ok && field.type == WIRE_BYTES && field.number == 3)
            ok = decode_log(field.bytes, visitor, ctx);
        if (!ok)
            return spr_fail(error, SPR_E_IO, "bad-trace",
                            "a progress record of the engine is cut or malformed");
    }
    return true;
}
