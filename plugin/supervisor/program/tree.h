/*
 * The descendants of a process, found in /proc, and their end. Nothing here allocates or forks: it
 * has to work when a fork bomb has taken every pid the sandbox may have. Keepers use it on their
 * own tree, the server on what a killed keeper left.
 */
#pragma once

#include "../protocol.h"

#include <sys/types.h>

/* Opens /proc and touches the memory that small trees need. Without /proc only leaders and their
 * groups can be reached. */
void sup_tree_open(void);

/* The command line of a process that sleeps, each word with its NUL: how many bytes; 0 for one that
 * does not, or where it can't be seen. */
size_t sup_tree_sleeper(pid_t pid, char *words, size_t room);

/* A mark that every process started from now on inherits and that an unprivileged one can't raise
 * again: a hard RLIMIT_RTTIME so high that it means nothing. Unlike parents, sessions and
 * environments it outlives the keeper. False where it can't be set or seen. */
#define SUP_MARK_LEAST ((uint64_t)1 << 62)
bool sup_mark_self(uint64_t mark);

/* Which descendants of root are meant. */
typedef struct {
    pid_t root;
    pid_t leader;       /* of the command */
    SprWireScope scope; /* GROUP and LEADER by their numbers, still descendants only */
    bool session;       /* TREE, but only of the leader's session */
    uint64_t mark;      /* TREE, but only with this mark; 0: any */
} SupTree;

typedef struct {
    unsigned alive;  /* found, zombies not counted */
    unsigned denied; /* might not be signalled */
} SupTreeCount;

/* Sends signal (0: only counts) to each that is no zombie. */
SupTreeCount sup_tree_signal(const SupTree *tree, int signal);

typedef enum {
    SUP_NO_CHILD, /* none is left */
    SUP_REAPED,   /* some ended and were reaped */
    SUP_IDLE      /* some are left and none ended in time */
} SupReap;

/* Ends them: stops until nothing new appears, kills, calls reap() as long as it reaps, and all over
 * again until no child is left (of a part of the tree, or another's: until none of it is found).
 * False when some live on after two seconds or may not be signalled. */
bool sup_tree_kill(const SupTree *tree, SupReap (*reap)(int wait_ms));
