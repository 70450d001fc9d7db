/*
 * What process.c (names, finding, connecting) and process_calls.c share. Internal to the two.
 */
#pragma once

#include "supervised/process.h"

struct DkrProcess {
    gatomicrefcount refs;
    const DkrContext *context;
    DkrLife *life;
    char *name;
    char *user; /* whose supervisor has it; NULL: the container's own */
    bool on_terminal;
};
