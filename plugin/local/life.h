/*
 * What is known of one local sandbox that runs: immutable, shared by reference with the calls that
 * use it. Any thread.
 */
#pragma once

#include "local/store.h"
#include "supervised/own.h"

struct DkrContext {
    SprLog log;
    LocalStore *store;
    char *bwrap; /* its path; NULL: there is none */
};

struct DkrLife {
    gatomicrefcount refs;
    char *workdir;
    DkrLink *link;
    DkrTransfers transfers;
};

/* record: of a sandbox that runs. Takes over process (local_launch_find()) and the first connection
 * to its supervisor, which may be NULL. */
DkrLife *local_life_new(const LocalRecord *record, const char *folder, int process,
                        SprSupervisor *supervisor);

/* Its first process has ended. */
bool local_life_is_over(const DkrLife *life);

/* The same, or it is just about to: its sockets are closed before it is gone. */
bool local_life_ends(const DkrLife *life);
