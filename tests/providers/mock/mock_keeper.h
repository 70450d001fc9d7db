/*
 * The inside of a keeper, for the two that there are: that of exec() (mock_keeper.c) and that of
 * spawn() (mock_spawned.c). All of it runs in the keeper's process alone.
 */
#pragma once

#include "mock.h"

typedef struct MockKeeper {
    const MockLaunch *launch;
    void (*on_exit)(struct MockKeeper *keeper, int status); /* the leader has ended */
    pid_t leader;
    int control; /* -1 once the provider has left */
    int out, err;
    bool left;  /* the call is over: drain the pipes, and end with the last child */
    bool ended; /* the sandbox ends: the leader's death is not its own */
    char run_file[512];
} MockKeeper;

void mock_keeper_report(const MockKeeper *keeper, int kind, int value);
/* Starts the command, or reports why not and ends the process. */
void mock_keeper_begin(MockKeeper *keeper);
_Noreturn void mock_keeper_leave(MockKeeper *keeper);
/* Where SIGCHLD and SIGTERM can be read from. */
int mock_keeper_signals(void);
/* Signals the keeper's children, or all that descends from it, and tells how many. */
int mock_keeper_signal(int number, bool deep);
/* Reaps what has ended. False when no child is left. */
bool mock_keeper_reap(MockKeeper *keeper);
/* Kills all that descends from it. Children of the killed become its own, so this ends when none
 * appears any more; false when some is left. */
bool mock_keeper_kill(MockKeeper *keeper);
/* Reads a pipe and keeps nothing; closes it at its end. */
void mock_keeper_discard(int *fd);

/* ---- mock_spawned.c */

_Noreturn void mock_keep_spawned(const MockLaunch *launch);
