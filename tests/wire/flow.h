/*
 * What is to be written to one side of a connection, in order: bytes in the writes they are meant
 * to go out in, pauses, and the end. The faults of an exchange are put in here as they come up,
 * and the poll loop pumps. One thread.
 */
#pragma once

#include "wire/fault.h"

typedef struct WireFlow WireFlow;

typedef enum {
    WIRE_PUMP_GO,       /* within flow.c alone: there is more to do at once */
    WIRE_PUMP_EMPTY,    /* nothing to write */
    WIRE_PUMP_WRITABLE, /* poll for POLLOUT */
    WIRE_PUMP_LATER,    /* not before *ret_wake_us */
    WIRE_PUMP_ENDED,    /* *ret_end is due: CLOSE, RESET or STALL */
    WIRE_PUMP_BROKEN    /* nobody reads any more */
} WirePump;

WireFlow *wire_flow_new(void);
void wire_flow_free(WireFlow *flow);

/* shape (may be NULL) is copied. */
void wire_flow_bytes(WireFlow *flow, const void *data, gsize size, const WireShape *shape);
void wire_flow_pause(WireFlow *flow, gint64 ms);
void wire_flow_end(WireFlow *flow, WireEnd end);

/* Headers without an end: until nobody reads any more, or 80 MB of them were read. */
void wire_flow_endless(WireFlow *flow);

/* Bytes that wait. */
gsize wire_flow_size(const WireFlow *flow);

/* Writes what can be written now. */
WirePump wire_flow_pump(WireFlow *flow, int fd, gint64 *ret_wake_us, WireEnd *ret_end);
