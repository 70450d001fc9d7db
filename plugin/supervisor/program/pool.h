/*
 * Keepers as the server sees them: forked ahead, taken for a command, back when nothing of its tree
 * is left. Their messages go on to command.h.
 */
#pragma once

#include "launch.h"
#include "server.h"

struct SupCommand;

typedef struct {
    SupLink link;
    SupWatch control;
    pid_t pid;
    uint64_t mark; /* that all it starts bears; 0: none */
    SupLaunch *launch;
    struct SupCommand *command;
    bool starting; /* it was forked, and has not said yet that it is ready */
    bool ended;    /* by us: whatever it still says, it is no use */
} SupKeeper;

void sup_pool_init(void);

/* After how many ms without anything else to do a keeper should be forked; -1: there are enough. */
int sup_pool_refill_after(void);
void sup_pool_refill(void);

/* One that is ready, forked now if need be; NULL with errno. It becomes this command's. */
SupKeeper *sup_pool_take(struct SupCommand *command);

/* Starts what keeper->launch says with given[3], of which those that are -1 stay the keeper's. */
bool sup_keeper_start(SupKeeper *keeper, const int given[3]);

/* Lets go of one that was taken and could not be started. */
void sup_pool_give_back(SupKeeper *keeper);

void sup_keeper_kill(SupKeeper *keeper, const SupMessage *message);

/* Ends the tree from outside, and the keeper, which does not do it itself. False when some of it
 * may live on. The end of the keeper is told as ever. */
bool sup_keeper_end(SupKeeper *keeper);

/* How many are with a command that is a use and of which anything lives. */
unsigned sup_pool_busy(void);

/* A child of the server ended or stopped; false when it is no keeper. */
bool sup_pool_ended(pid_t pid);
void sup_pool_stopped(pid_t pid);
