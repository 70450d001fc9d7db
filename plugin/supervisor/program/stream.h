/*
 * The three pipes of a command as the server holds them: output on its way to a client or into
 * what is kept, input on its way to the command.
 */
#pragma once

#include "connection.h"
#include "kept.h"

struct SupCommand;

typedef struct {
    SupWatch watch; /* fd -1 once it ended */
    struct SupCommand *command;
    uint8_t number;
    bool widened;    /* tried once */
    bool discard;    /* read and thrown away */
    uint64_t offset; /* of the next byte */
    uint64_t credit; /* that a client gave */
    uint64_t owed;   /* before this offset the leader wrote it */
    SupKept kept;    /* detached commands */
} SupStream;

typedef struct {
    SupWatch watch; /* fd -1 once closed */
    struct SupCommand *command;
    uint8_t *bytes; /* room of them, made when the pipe is full */
    size_t room;    /* what the client may have on its way */
    size_t start, end;
    size_t consumed; /* not told to the client yet */
    bool closing;    /* close when all is written */
    bool gone;       /* its reader is */
} SupInput;

void sup_stream_open(SupStream *stream, struct SupCommand *command, uint8_t number, int fd);

/* Passes on what comes when it comes; without it, when sup_stream_pump() is called. */
void sup_stream_watch(SupStream *stream);

/* Whether there is credit for whatever a read may answer: of a packet too long for it the rest
 * would be lost. */
bool sup_stream_may_read(const SupStream *stream);

/* Passes on what can be, until the pipe is empty or something is in the way. */
void sup_stream_pump(SupStream *stream);

/* Notes how much was in the pipe when the leader ended. */
void sup_stream_mark(SupStream *stream);

/* Everything owed was passed on, and if not `settled`, the end was seen as well. */
bool sup_stream_is_done(const SupStream *stream, bool settled);

/* HOLD keeps the leader's last bytes in the pipe until somebody takes what is kept. */
bool sup_stream_is_held(const SupStream *stream);

void sup_stream_discard(SupStream *stream);
void sup_stream_close(SupStream *stream);

void sup_input_open(SupInput *input, struct SupCommand *command, int fd, size_t room);

/* Takes up to size bytes; how many fitted. */
size_t sup_input_write(SupInput *input, const uint8_t *bytes, size_t size);

/* End of file behind what was taken. */
void sup_input_end(SupInput *input);
void sup_input_close(SupInput *input);
