/*
 * What clients ask about spawned commands: each request is answered once, now or when its time
 * comes.
 */
#pragma once

#include "command.h"

/* A frame that is no RUN and no stream; false when it breaks the rules. */
bool sup_request(SupConnection *connection, SprWireHeader header, SprWireReader *r);

/* The connection can take more, or is gone. */
void sup_requests_resume(SupConnection *connection);
void sup_requests_drop(SupConnection *connection);

/* The command has new output or the end of a stream, room for input, an end, or is forgotten. */
void sup_requests_output(SupCommand *command, uint8_t stream);
void sup_requests_input(SupCommand *command);
void sup_requests_ended(SupCommand *command);
void sup_requests_lose(SupCommand *command);

/* Whether a KILL waits for its keeper. */
bool sup_requests_kill(const SupCommand *command);

/* Its keeper answered KILL `number` with errno. */
void sup_requests_killed(SupCommand *command, uint32_t number, int error, bool unsure);
