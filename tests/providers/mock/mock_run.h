/*
 * One running command as its call sees it: the loop over its keeper, pipes, source, token and
 * deadlines. Made by mock_exec(), which also turns what is left here into an answer. One thread.
 */
#pragma once

#include "mock.h"

#define MOCK_CHUNK 65536

typedef enum {
    MOCK_GOING,
    MOCK_TIMED_OUT,
    MOCK_CANCELLED,
    MOCK_CALL_TIMEOUT,
    MOCK_REFUSED,
    MOCK_WRONG_SIZE
} MockEnding;

typedef struct {
    const sprov_exec_request *request;
    const MockWait *wait;
    char *buffer; /* MOCK_CHUNK bytes for output */
    int control;
    int out, err, in; /* -1 once closed */

    char *pending; /* MOCK_CHUNK bytes of the source that the command has yet to take */
    size_t pending_at, pending_size;
    uint64_t taken;
    bool source_waits; /* it said AGAIN */

    int64_t started_ms, ended_ms, run_deadline_ms, kill_ms, confirm_ms;
    MockEnding ending;
    bool has_exited, is_over, is_gone, is_empty, kill_ordered;
    int wait_status;
    uint32_t flags; /* SPROV_EXEC_UNCONFIRMED */
    uint64_t out_bytes, err_bytes;
} MockRun;

/* Returns when the call may: the command has ended or its tree was killed. Closes in only. */
void mock_run(MockRun *run);
