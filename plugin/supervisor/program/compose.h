/*
 * From the bytes of RUN to what a keeper can execute. Pure: reads the payload and the server's own
 * environment, writes the region.
 */
#pragma once

#include "launch.h"

typedef struct {
    uint32_t flags;
    uint16_t rows, columns;
    uint64_t retain;
    int64_t deadline_ms, grace_ms;
    uint32_t credit_out, credit_err;
    uint32_t n_argv, n_env;
    const char *strings; /* n_argv + n_env + 2, NUL-terminated, exactly `size` bytes */
    size_t size;
} SupRun;

/* False when the payload is no RUN. */
bool sup_run_parse(SprWireReader *r, SupRun *run);

/* Fills the region; false with E2BIG when it is too small. text gets the command for people. */
bool sup_run_compose(const SupRun *run, SupLaunch *launch, char text[SPR_WIRE_COMMAND_TEXT]);
