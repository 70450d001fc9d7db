/*
 * One command in a running container through an engine exec: created, started, its streams pumped
 * between engine and host, ended with its whole tree when its time is up, its exit code read from
 * the engine's record. Sinks and source run on the calling thread. Any thread, any number at once.
 */
#pragma once

#include "sandbox/context.h"

/* False: no more, please. */
typedef bool (*DkrSinkFn)(void *ctx, const void *data, gsize size);

typedef struct {
    DkrSinkFn write; /* NULL: discard */
    void *ctx;
} DkrSink;

typedef struct {
    DkrBodyFn read; /* NULL: end of file at once */
    void *ctx;
} DkrSource;

typedef struct {
    const char *const *argv;
    const char *const *env; /* on top of the container's */
    const char *cwd;        /* NULL: the container's */
    const char *user;       /* NULL: the container's */
    DkrSource source;
    DkrSink out;
    DkrSink err;
    gint64 run_timeout_ms; /* 0 or below: none */
    gint64 stall_ms;       /* the same since the last byte either way, while its source has any */
    gint64 grace_ms;
    bool wait_background; /* ends with the last of its tree; an engine exec cannot */
    bool is_helper;       /* looks after another command; nothing looks after it */
} DkrCommand;

enum { /* equal to SPROV_EXEC_* */
    DKR_COMMAND_TIMED_OUT = 1u << 0,
    DKR_COMMAND_KILLED = 1u << 1,
    DKR_COMMAND_UNCONFIRMED = 1u << 2
};

typedef struct {
    bool was_cut; /* the runtime gave up before anything ran or was read: once more may do */
    bool began;   /* the rest is filled only then */
    guint flags;
    int exit_code;
    int term_signal;
    guint64 duration_ms;
    guint64 out_bytes;
    guint64 err_bytes;
} DkrCommandResult;

/* True when the command ran, also when it was killed by its run timeout or the token. False with
 * ret_result filled when it had begun: SPR_E_TIMEOUT, SPR_E_REFUSED (a sink or the source gave
 * up), SPR_E_EXHAUSTED (a sink did not keep up), SPR_E_NOT_READY with SANDBOX_GONE. */
bool dkr_command_run(const DkrContext *context, const char *container, const DkrCommand *command,
                     const SprWait *wait, DkrCommandResult *ret_result, GError **error);
