#include "buildkit/protobuf.h"

#include <string.h>

static bool read_varint(DkrProtoCursor *in, guint64 *ret_value)
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

static bool skip(DkrProtoCursor *in, guint64 size)
{
    if (size > (guint64)(in->end - in->at))
        return false;
    in->at += size;
    return true;
}

DkrProtoCursor dkr_proto_cursor(DkrProtoBytes message)
{
    /* An empty message may have no address, and NULL + 0 is none either. */
    return (DkrProtoCursor){message.data,
                            message.size > 0 ? message.data + message.size : message.data};
}

bool dkr_proto_next(DkrProtoCursor *cursor, DkrProtoField *ret_field)
{
    guint64 tag, size;
    DkrProtoField *field = ret_field;
    memset(field, 0, sizeof *field);
    if (!read_varint(cursor, &tag) || tag >> 3 == 0 || tag >> 3 > G_MAXUINT32)
        return false;
    field->number = (guint32)(tag >> 3);
    field->type = (DkrProtoType)(tag & 7);
    switch (field->type) {
    case DKR_PROTO_VARINT:
        return read_varint(cursor, &field->value);
    case DKR_PROTO_FIXED64:
        return skip(cursor, 8);
    case DKR_PROTO_FIXED32:
        return skip(cursor, 4);
    case DKR_PROTO_BYTES:
        if (!read_varint(cursor, &size))
            return false;
        field->bytes = (DkrProtoBytes){cursor->at, (gsize)size};
        return skip(cursor, size);
    }
    return false; /* groups, which BuildKit does not use, and what protobuf leaves free */
}

bool dkr_proto_find_bytes(DkrProtoBytes message, guint32 number, DkrProtoBytes *ret_bytes)
{
    DkrProtoCursor in = dkr_proto_cursor(message);
    DkrProtoField field;
    bool found = false;
    while (in.at < in.end) {
        if (!dkr_proto_next(&in, &field))
            return false;
        if (field.number != number || field.type != DKR_PROTO_BYTES)
            continue;
        *ret_bytes = field.bytes;
        found = true;
    }
    return found;
}

static guint8 *put_varint(guint8 *at, guint64 value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (guint8)(value | 0x80);
    *at++ = (guint8)value;
    return at;
}

gsize dkr_proto_bytes_size(gsize size)
{
    guint8 scratch[10];
    return 1 + (gsize)(put_varint(scratch, size) - scratch) + size;
}

guint8 *dkr_proto_put_bytes(guint8 *at, guint32 number, const void *data, gsize size)
{
    *at++ = (guint8)(number << 3 | DKR_PROTO_BYTES);
    at = put_varint(at, size);
    if (size > 0)
        memcpy(at, data, size);
    return at + size;
}
