/*
 * A spawned command, seen from one handle: named within the supervisor that has it, reached over
 * whatever connection the life of its sandbox has just now, so that it outlasts a broken one. Every
 * call of a process whose sandbox has ended is SPR_E_NOT_READY with SANDBOX_GONE. Any thread.
 */
#pragma once

#include "supervised/own.h"
#include "supervisor/client/process.h"

typedef struct DkrProcess DkrProcess;

/* Starts it in a life. command->user may be another user than the life's. A command that is
 * missing or can't be executed is a process too, one that has ended with 127 or 126. */
bool dkr_process_spawn(const DkrContext *context, DkrLife *life, const SprSpawn *spawn,
                       const SprWait *wait, DkrProcess **ret_process, GError **error);

/* SPR_E_NOT_FOUND for a name that this life has not. */
bool dkr_process_find(const DkrContext *context, DkrLife *life, const char *name,
                      const SprWait *wait, DkrProcess **ret_process, GError **error);

/* One JSON object a process to each(). */
bool dkr_process_list(const DkrContext *context, DkrLife *life,
                      void (*each)(void *ctx, const char *json), void *ctx, const SprWait *wait,
                      GError **error);

DkrProcess *dkr_process_ref(DkrProcess *process);
void dkr_process_unref(DkrProcess *process);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrProcess, dkr_process_unref)

const char *dkr_process_name(const DkrProcess *process);
bool dkr_process_is_on_terminal(const DkrProcess *process);

/* A live connection to it and its number there. */
bool dkr_process_connect(DkrProcess *process, const SprWait *wait, SprSupervisor **ret_supervisor,
                         guint64 *ret_id, GError **error);

/* After a call over a connection failed with *error: true when it is worth connecting again (the
 * error is cleared then). tries counts the attempts. */
bool dkr_process_may_reconnect(const SprWait *wait, guint *tries, GError **error);

/* As their namesakes of the client; nowait: SPR_E_WOULD_BLOCK instead of waiting. */
bool dkr_process_wait(DkrProcess *process, const SprWait *wait, bool nowait, SprExit *ret_exit,
                      GError **error);
bool dkr_process_kill(DkrProcess *process, int signal, SprScope scope, gint64 grace_ms,
                      const SprWait *wait, GError **error);
bool dkr_process_write(DkrProcess *process, const void *data, gsize size, gsize *ret_written,
                       const SprWait *wait, bool nowait, GError **error);
bool dkr_process_close_stdin(DkrProcess *process, const SprWait *wait, GError **error);
bool dkr_process_resize(DkrProcess *process, guint16 rows, guint16 columns, const SprWait *wait,
                        GError **error);
bool dkr_process_read(DkrProcess *process, SprStream stream, guint64 *offset, void *buffer,
                      gsize room, gsize *ret_count, const SprWait *wait, bool nowait,
                      GError **error);

/* Whether a read from offset on would not wait. */
bool dkr_process_has_output(DkrProcess *process, SprStream stream, guint64 offset);

bool dkr_process_forget(DkrProcess *process, const SprWait *wait, GError **error);
