/*
 * Heads and bodies that the proxy makes or changes: edits a head, puts a body into a framing, and
 * hands an answer of a rule to the flow of its client. Called by the exchange; one thread.
 */
#pragma once

#include "wire/flow.h"

/* The head with its start line and headers changed: status 0 and reason NULL keep the start line's;
 * changes (may be NULL) maps a name to its value, or to null to take it away. */
GByteArray *wire_head_edit(const GByteArray *head, int status, const char *reason,
                           const json_t *changes);

/* The head for a body of size bytes in this framing, in place of what it says of its own. */
GByteArray *wire_head_frame(const GByteArray *head, WireFraming framing, gsize size);

/* At least size bytes of head. */
void wire_head_pad(GByteArray *head, gsize size);

/* Appends data as chunks of at most chunk bytes (0: one). */
void wire_chunks_append(GByteArray *to, const guint8 *data, gsize size, gsize chunk);

/* Appends the last chunk, with trailers (may be NULL). */
void wire_chunks_end(GByteArray *to, const json_t *trailers);

/* data with every replacement of [{from, to}] made in turn. */
GByteArray *wire_bytes_replace(const GByteArray *data, const json_t *replace);

/* Which shape the parts of a message go out in. */
typedef struct {
    WireShape head;
    WireShape body;
} WireShapes;

/* The bytes of a body in this framing; fault (may be NULL) tells chunk size and trailers. */
GByteArray *wire_body_frame(const WireFault *fault, WireFraming framing, const guint8 *data,
                            gsize size);

/* The head as the fault (NULL: not at all) changes it. */
void wire_flow_head(WireFlow *flow, const WireFault *fault, const GByteArray *head,
                    const WireShape *shape);

/* All of an answer in place of the engine's. */
void wire_flow_answer(WireFlow *flow, const WireFault *fault, bool to_head,
                      const WireShapes *shapes);
