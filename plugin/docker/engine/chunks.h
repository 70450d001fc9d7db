/*
 * Takes the chunked coding off a stream, however the stream is cut. For hijacked connections,
 * which libcurl does not read: a proxy that answers an upgrade with 200 sends the stream so. Pure;
 * a DkrChunks belongs to the thread that reads.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    int part;
    guint64 left;    /* of the chunk */
    char line[24];   /* the beginning of a line */
    gsize line_size; /* of all of it */
    bool ended;      /* the last chunk and its trailers were there */
} DkrChunks;

/* Leaves the bytes without the coding at the beginning of data. False with SPR_E_IO, reason
 * "bad-answer", where there is none. What follows the end is dropped. */
bool dkr_chunks_decode(DkrChunks *chunks, guint8 *data, gsize size, gsize *ret_size,
                       GError **error);
