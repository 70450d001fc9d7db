/*
 * Commands and files as values: what is asked for, where the bytes go to and come from, and what
 * became of it. Shared by supervised/, glue/ and the providers.
 */
#pragma once

#include "base/wait.h"
#include "options/values.h"
#include "supervisor/client/supervisor.h"

/* False: no more, please. */
typedef bool (*DkrSinkFn)(void *ctx, const void *data, gsize size);

typedef struct {
    DkrSinkFn write; /* NULL: discard */
    void *ctx;
} DkrSink;

/* Hands out the next bytes of a stream: *ret_size 0 is its end, unless *ret_again_fd is set to a
 * descriptor to poll before asking again. */
typedef bool (*DkrSourceFn)(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                            int *ret_again_fd, GError **error);

typedef struct {
    DkrSourceFn read; /* NULL: end of file at once */
    void *ctx;
} DkrSource;

typedef struct {
    const char *const *argv;
    const char *const *env; /* on top of the sandbox's */
    const char *cwd;        /* NULL: the sandbox's */
    const char *user;       /* NULL: the sandbox's */
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

typedef struct {
    guint mode;
    guint64 size;
    gint64 mtime_ns;
    guint64 count;
} DkrReadResult;

typedef struct {
    const char *path;
    guint mode;   /* 0: as it was, or 0644 */
    guint64 size; /* UINT64_MAX: unknown */
    DkrSource source;
    GError *failure; /* stored: NULL when it is there; SPR_E_CANCELLED when it was not reached */
} DkrFileWrite;
