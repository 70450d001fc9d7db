/*
 * The spawned commands: found by their number from any connection, kept for a while after their
 * end.
 */
#pragma once

#include "command.h"
#include "compose.h"

/* A detached RUN gets its number and its kept output. */
void sup_process_init(SupCommand *command, const SupRun *run);

/* It runs: from now on it can be found. */
void sup_process_started(SupCommand *command);

/* Its end may be told: waiters are, and its time to be kept begins. */
void sup_process_ended(SupCommand *command);

/* NULL when there is none (any more). */
SupCommand *sup_process_find(uint64_t id);

/* The one with the lowest number above id, or NULL. */
SupCommand *sup_process_after(uint64_t id);

void sup_process_forget(SupCommand *command);

/* Makes room in the account of kept bytes; false when no ended one has any. */
bool sup_process_drop_oldest_output(void);
