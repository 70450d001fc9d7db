/*
 * Records and items of a request about files (filerecords.h) as values: what the program sends is
 * checked here, what it gets is put together here. Pure functions, any thread.
 */
#pragma once

#include "supervisor/filerecords.h"
#include "supervisor/protocol.h"

#include <glib.h>
#include <stdbool.h>

typedef struct {
    SprFileType type;
    guint mode; /* 07777 */
    guint32 uid, gid;
    guint32 device_major, device_minor;
    guint64 size;
    gint64 mtime_ns;
    guint64 length;     /* of the bytes that follow, SPR_FILE_UNKNOWN: until the end */
    const char *path;   /* any bytes but NUL, not empty */
    const char *target; /* of a link; "" of all else */
} SprFileEntry;

/* Who takes the records; false from a function ends the decoding. */
typedef struct {
    bool (*entry)(void *ctx, const SprFileEntry *entry); /* NULL: there must be none */
    bool (*bytes)(void *ctx, const void *bytes, gsize size);
    bool (*status)(void *ctx, int errno_value, guint32 number, const char *path);
    void *ctx;
} SprFileTaker;

typedef struct {
    SprFileTaker taker;
    guint64 left; /* bytes of an entry that are still to come */
    bool ended;   /* END came */
    bool stopped; /* the taker said so */
    bool broken;  /* these are no records */
    gsize have;
    guint8 record[SPR_FILE_HEADER + SPR_FILE_MAX_RECORD];
} SprFileDecoder;

/* False once ended, stopped or broken. */
bool spr_file_decode(SprFileDecoder *decoder, const guint8 *bytes, gsize size);

/* Whether it stands between two records. */
bool spr_file_decoder_is_idle(const SprFileDecoder *decoder);

/* kind FILE to SET_DIRECTORY, or END with NULL for the rest. False when a path is too long. */
bool spr_file_put_item(GByteArray *to, SprFileKind kind, guint mode, gint64 mtime_ns,
                       const char *path, const char *target);

/* The size of a chunk, before its bytes. */
void spr_file_put_chunk(guint8 to[4], gsize size);

/* What an errno of the program means for the caller. Sets error, returns false. path: for the
 * message. */
bool spr_file_fail(GError **error, int errno_value, const char *path);
