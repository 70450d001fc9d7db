/*
 * Drains the output of one engine exec whatever its consumer does: an unread stream stalls every
 * other exec of the container and loses its tail. A thread of its own reads and demultiplexes into
 * a bounded buffer; the calling thread takes chunks out and hands them to the host's sinks.
 *
 * A full buffer holds the engine back for as long as the consumer goes on taking: an engine waits
 * 2 s with what it has left. One that takes nothing for 1.5 s overflows: from then on output is
 * read and dropped, and the command has to be killed.
 */
#pragma once

#include "engine/demux.h"
#include "engine/hijack.h"

#define DKR_OUTPUT_MOST (4u << 20)

typedef struct DkrOutput DkrOutput;

typedef struct {
    int stream; /* DKR_STREAM_OUT or _ERR */
    gsize size;
    gsize rest; /* of its frame, still to come */
    guint8 data[];
} DkrChunk;

/* Takes over the reading side of hijack, which must outlive it. */
bool dkr_output_start(DkrHijack *hijack, DkrOutput **ret_output, GError **error);

/* Readable when dkr_output_take() has something to say. */
int dkr_output_fd(const DkrOutput *output);

/* The next chunk (g_free it), or NULL: nothing now, or *ret_end when the stream is over. */
DkrChunk *dkr_output_take(DkrOutput *output, bool *ret_end);

bool dkr_output_has_overflowed(DkrOutput *output);

/* False with the error when the stream broke instead of ending. Ask after its end. */
bool dkr_output_check(DkrOutput *output, GError **error);

/* Ends the thread; what was not taken is dropped. */
void dkr_output_free(DkrOutput *output);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrOutput, dkr_output_free)
