/*
 * The wire format of protobuf, as much as the trace records and the session need: a reader of
 * fields, and a writer of bytes fields. Knows no message. Pure, any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Bytes inside the message that is being read. */
typedef struct {
    const guint8 *data;
    gsize size;
} DkrProtoBytes;

typedef enum {
    DKR_PROTO_VARINT = 0,
    DKR_PROTO_FIXED64 = 1,
    DKR_PROTO_BYTES = 2,
    DKR_PROTO_FIXED32 = 5
} DkrProtoType;

typedef struct {
    const guint8 *at;
    const guint8 *end;
} DkrProtoCursor;

typedef struct {
    guint32 number;
    DkrProtoType type;
    guint64 value;       /* of a varint */
    DkrProtoBytes bytes; /* of DKR_PROTO_BYTES */
} DkrProtoField;

DkrProtoCursor dkr_proto_cursor(DkrProtoBytes message);

/* The next field, while cursor->at < cursor->end. False when the message is cut or malformed;
 * groups count as that. */
bool dkr_proto_next(DkrProtoCursor *cursor, DkrProtoField *ret_field);

/* The last bytes field of that number; false when the message has none or is malformed. */
bool dkr_proto_find_bytes(DkrProtoBytes message, guint32 number, DkrProtoBytes *ret_bytes);

/* How many bytes dkr_proto_put_bytes() appends for number below 16. */
gsize dkr_proto_bytes_size(gsize size);

/* Writes a bytes field and returns where it ends; number is below 16. */
guint8 *dkr_proto_put_bytes(guint8 *at, guint32 number, const void *data, gsize size);
