/*
 * A command from RUN to its answer and beyond: until nothing of its tree is left and, for a spawned
 * one, until it is forgotten. Ties a keeper and the three streams to a connection or to what is
 * kept (process.h).
 */
#pragma once

#include "pool.h"
#include "stream.h"

#define SUP_MAX_COMMANDS 4096

typedef struct SupCommand {
    SupLink link;              /* of its connection, of the processes, or of those without either */
    SupConnection *connection; /* NULL once detached, answered or left alone */
    SupKeeper *keeper;         /* until its tree is gone */
    SupStream out, err;
    SupInput input;
    SupTimer drain;
    SupTimer patience; /* with a keeper that should have ended the tree */
    SupMessage result;
    uint64_t id; /* of a spawned one */
    uint32_t channel;
    uint32_t flags; /* SPR_WIRE_RUN_* */
    bool terminal;
    bool of_visit;   /* its connection was one */
    bool ended;      /* the leader */
    bool settled;    /* time to see the pipes' end is over */
    bool kill_asked; /* the client that runs it wants its end */
    bool overdue;    /* its keeper let its deadline pass */
    bool unconfirmed;
    bool answered; /* the end was told, or may be */

    /* Spawned ones. */
    SupLink requests;
    SupTimer expiry;
    pid_t leader;
    int64_t started_ms; /* since 1970 */
    char text[SPR_WIRE_COMMAND_TEXT];
} SupCommand;

/* Frames of a client; false when they break the rules. */
bool sup_command_run(SupConnection *connection, uint32_t channel, SprWireReader *r);
bool sup_command_stdin(SupConnection *connection, SprWireHeader header, const uint8_t *payload);
bool sup_command_credit(SupConnection *connection, SprWireHeader header, SprWireReader *r);

/* Of this channel, or NULL when it is answered already. */
SupCommand *sup_command_of(SupConnection *connection, uint32_t channel);

/* Kills the tree of a command whose client wants that: the answer stays EXITED. */
void sup_command_end(SupCommand *command, int signal, SprWireScope scope, int64_t grace_ms);

/* End of file behind what was written. */
void sup_command_end_input(SupCommand *command);

/* Its keeper has so long to end the tree; a hung one is ended as well. */
void sup_command_expect_end(SupCommand *command, int64_t in_ms);

bool sup_command_resize(SupCommand *command, uint32_t rows, uint32_t columns);

/* The connection can take more, or is gone. */
void sup_commands_resume(SupConnection *connection);
void sup_commands_orphan(SupConnection *connection);

/* From its keeper. */
void sup_command_message(SupCommand *command, const SupMessage *message);
void sup_command_lost(SupCommand *command, bool ended_all);

/* From its streams. */
void sup_command_output_came(SupCommand *command, uint8_t number);
void sup_command_input_moved(SupCommand *command);

/* Tells the end when it is time; frees the command when nothing is left to do. */
void sup_command_settle(SupCommand *command);

/* Whether somebody may still want something of it. */
bool sup_command_is_use(const SupCommand *command);

/* A spawned one that is forgotten. */
void sup_command_free(SupCommand *command);

/* EXITED for it. */
#define SUP_EXITED_SIZE 40
void sup_command_put_exited(const SupCommand *command, uint8_t payload[SUP_EXITED_SIZE]);
