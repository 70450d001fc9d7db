/*
 * One client: its frames in and out. Output waits in one buffer of bounded size and is written once
 * per round of the event loop, so that what belongs together travels together.
 */
#pragma once

#include "../protocol.h"
#include "bulk.h"
#include "server.h"

#define SUP_MAX_GIVEN 3 /* descriptors that come with one frame */

typedef struct SupConnection {
    SupLink link;
    SupWatch input, output; /* one socket, or what a relay lent */
    SupWatch lender;        /* the relay's socket; its end is the connection's */
    bool output_is_pipe;    /* the relay's, into which others can be emptied */
    SupBulk bulk;           /* goes out before what is in out */
    uint8_t *in;
    size_t in_size, in_room;
    uint8_t *out;
    size_t out_start, out_end, out_peak;
    bool greeted;
    bool visits;              /* says that it is no use of the sandbox */
    bool broken;              /* closed at the end of the round */
    bool closing;             /* closed once all is written */
    bool blocked;             /* the peer does not read; whoever has output waits */
    SupLink commands;         /* not answered yet, started on it */
    SupLink requests;         /* waiting for a process */
    bool dialed;              /* by us: descriptors may come with any frame */
    bool gone;                /* the peer is: nothing is begun any more of what it sent before */
    int given[SUP_MAX_GIVEN]; /* that came and no frame has taken yet, or -1 */
} SupConnection;

void sup_connections_init(void);

/* Takes the descriptor, a connected and non-blocking socket; false, and it is closed, when there
 * are too many. */
bool sup_connection_open(int fd);

/* Connects to a socket of a client and greets it; 0 or errno. */
int sup_connection_dial(const char *path, const uint8_t nonce[SPR_WIRE_NONCE]);

/* Moves the descriptors that came with a frame; false when there are none. */
bool sup_connection_take_given(SupConnection *connection, int given[SUP_MAX_GIVEN]);

/* Writes what is there, closes what is broken. */
void sup_connections_flush(void);

/* Appends a frame. False when there is no room now: sup_connection's owner is called again through
 * sup_command_resume() and sup_request_resume() when there is. */
bool sup_connection_send(SupConnection *connection, SprWireHeader header, const void *payload);

/* What must not be lost: there is always room for the answer to a frame just read. A client that
 * lets thousands of later ones wait as well loses the connection rather than one of them. */
void sup_connection_answer(SupConnection *connection, SprWireHeader header, const void *payload);

/* DONE for a channel. */
void sup_connection_done(SupConnection *connection, uint32_t channel, int error, uint16_t flags,
                         uint64_t value);

/* Where up to *room bytes of a stream may be put, at most SPR_WIRE_MAX_DATA; NULL when it must
 * wait. Then commit what was put there as one OUTPUT, or nothing. */
uint8_t *sup_connection_reserve(SupConnection *connection, size_t *room);
void sup_connection_commit(SupConnection *connection, uint32_t channel, uint8_t stream,
                           uint16_t flags, uint64_t offset, size_t size);

/* Up to `most` bytes that wait in a pipe go from there into our output, if that is a pipe with
 * nothing before them, and no byte is copied: how many; 0: not that way. */
size_t sup_connection_splice(SupConnection *connection, uint32_t channel, uint8_t stream,
                             uint64_t offset, int pipe, uint64_t most);
