/*
 * Execs of the Engine API: making one and asking what became of it. Its streams are a hijacked
 * connection (hijack.h). Any thread.
 */
#pragma once

#include "engine/hijack.h"

typedef struct {
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated "NAME=value", or "NAME" to take it away; or NULL */
    const char *cwd;         /* absolute, or NULL */
    const char *user;        /* or NULL */
    bool with_stdin;
    bool urgent; /* it ends another: does not queue behind others */
} DkrExecSpec;

typedef struct {
    bool running;
    bool has_exit_code;
    int exit_code;
    gint64 pid; /* in the engine's own pid namespace; 0: never started */
} DkrExecState;

bool dkr_exec_create(DkrClient *client, const char *container, const DkrExecSpec *spec,
                     const SprWait *wait, char **ret_id, GError **error);

/* Starts it and takes its connection over. */
bool dkr_exec_start(DkrClient *client, const char *id, const DkrExecSpec *spec, const SprWait *wait,
                    DkrHijack **ret_hijack, GError **error);

/* Never ask while output is unread: engines of version 26 wait for the reader. */
bool dkr_exec_inspect(DkrClient *client, const char *id, const SprWait *wait, DkrExecState *ret,
                      GError **error);

/* The program that it runs; NULL when it does not run, or not any more. g_free() it. */
bool dkr_exec_program(DkrClient *client, const char *id, const SprWait *wait, char **ret_program,
                      GError **error);

/* The same behind the end of its streams. A code that is null is none, and is waited for limit_ms
 * at the most; then SPR_E_IO, reason "no-exit-code". SPR_E_IO, "connection-broken", while it runs.
 */
bool dkr_exec_outcome(DkrClient *client, const char *id, gint64 limit_ms, const SprWait *wait,
                      DkrExecState *ret, GError **error);

/* What an engine records for an exec whose output it could not write, whatever its real code. */
#define DKR_EXEC_CODE_OF_LOST 126

/* The exit code that the engine told in an event, which a lost connection does not change; -1 when
 * it told none, or forgot it. */
int dkr_exec_told(DkrClient *client, const char *container, const char *id, const SprWait *wait);
