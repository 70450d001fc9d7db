/*
 * Spawned commands: they outlive the call, the connection and the host that started them. A process
 * is named by its number within one instance of the program, so nothing here has to be kept: any
 * connection to that instance will do, also one of another host. Any thread.
 */
#pragma once

#include "supervisor/client/supervisor.h"

#define SPR_RETAIN_NONE G_MAXUINT64

typedef enum {
    SPR_STREAM_OUT = 1,
    SPR_STREAM_ERR = 2
} SprStream;

typedef enum {
    SPR_SCOPE_TREE = 0,
    SPR_SCOPE_GROUP = 1,
    SPR_SCOPE_LEADER = 2
} SprScope;

typedef struct {
    const SprCommand *command;
    guint64 retain_bytes; /* newest bytes kept of each stream; 0: 1 MiB */
    bool feeds_stdin;     /* else it sees end of file at once */
    bool holds;           /* full kept bytes hold the process back instead of being dropped */
} SprSpawn;

typedef struct {
    guint64 id;
    guint32 pid; /* 0: it could not be run */
    bool ended, on_terminal, takes_stdin;
    bool has_background; /* ended, but children of it live */
    SprExit exit;        /* once it ended */
    gint64 started_ms;   /* since 1970, by the sandbox's clock */
    struct {
        guint64 start, end; /* what is kept; start is also how much was dropped */
    } out, err;
    char command[256]; /* shortened, for people */
} SprProcessInfo;

/* Returns once the command runs. One that is missing or can't be executed is a process that has
 * ended with 127 or 126, and its error stream says why. */
bool spr_process_spawn(SprSupervisor *supervisor, const SprSpawn *spawn, const SprWait *wait,
                       guint64 *ret_id, GError **error);

/* Its name for everybody, and back: SPR_E_NOT_FOUND for one of another instance. */
char *spr_process_name(SprSupervisor *supervisor, guint64 id);
bool spr_process_parse_name(SprSupervisor *supervisor, const char *name, guint64 *ret_id,
                            GError **error);

/* All below: SPR_E_NOT_FOUND, reason "process-not-found", for one that is not there (any more). */

bool spr_process_find(SprSupervisor *supervisor, guint64 id, const SprWait *wait,
                      SprProcessInfo *ret_info, GError **error);

/* each() is called on this thread, between the answers; false ends the list. */
bool spr_process_list(SprSupervisor *supervisor,
                      bool (*each)(void *ctx, const SprProcessInfo *info), void *ctx,
                      const SprWait *wait, GError **error);

/* NULL wait: does not wait but fails with SPR_E_WOULD_BLOCK, here and below. */
bool spr_process_wait(SprSupervisor *supervisor, guint64 id, const SprWait *wait, SprExit *ret_exit,
                      GError **error);

/* SPR_E_NOT_FOUND, reason "process-ended", when nothing of the scope is left. True means that the
 * signal was sent and, for SIGKILL and the one after grace_ms, that nothing is left;
 * *ret_confirmed is false when that could not be seen to its end. */
bool spr_process_kill(SprSupervisor *supervisor, guint64 id, int signal, SprScope scope,
                      gint64 grace_ms, const SprWait *wait, bool *ret_confirmed, GError **error);

/* Copies what is kept from *offset on, moved up to the oldest kept byte first. Waits for one byte
 * at least; *ret_count 0 is the end of the stream. take: all before *offset was taken, so that a
 * process that is held back may go on. */
bool spr_process_read(SprSupervisor *supervisor, guint64 id, SprStream stream, bool take,
                      guint64 *offset, void *buffer, gsize room, gsize *ret_count,
                      const SprWait *wait, GError **error);

enum {
    SPR_READY_END = 1u << 0,
    SPR_READY_OUT = 1u << SPR_STREAM_OUT,
    SPR_READY_ERR = 1u << SPR_STREAM_ERR
};

/* Waits until one of `wanted` is so: bytes from that stream's offset on or its end, the end of the
 * command. One thread can thus watch all of a process. *ret_ready may be 0 without a wait. */
bool spr_process_watch(SprSupervisor *supervisor, guint64 id, guint wanted, guint64 out_offset,
                       guint64 err_offset, const SprWait *wait, guint *ret_ready, GError **error);

/* Waits until all is taken; without a wait takes what fits. Whoever writes from several threads
 * takes turns. SPR_E_CONFLICT, reason "stdin-closed", when nobody reads it. */
bool spr_process_write(SprSupervisor *supervisor, guint64 id, const void *data, gsize size,
                       gsize *ret_written, const SprWait *wait, GError **error);
bool spr_process_close_stdin(SprSupervisor *supervisor, guint64 id, const SprWait *wait,
                             GError **error);

bool spr_process_resize(SprSupervisor *supervisor, guint64 id, guint16 rows, guint16 columns,
                        const SprWait *wait, GError **error);

/* Drops an ended process and its output; SPR_E_CONFLICT, reason "process-runs", before. */
bool spr_process_forget(SprSupervisor *supervisor, guint64 id, const SprWait *wait, GError **error);
