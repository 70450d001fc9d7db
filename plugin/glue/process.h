/*
 * The handle of a spawned process: its life from spawn() or find() to the end of its threads, and
 * the sinks that its output is pushed to. For spawn.c and processes.c.
 */
#pragma once

#include "glue/command.h"
#include "glue/extensions.h"

#include "base/turn.h"
#include "supervised/cursors.h"
#include "supervised/push.h"

struct sprov_process {
    gatomicrefcount refs; /* the handle, each running call, each thread */
    sprov_sandbox *sandbox;
    DkrProcess *process; /* NULL before it is spawned */
    DkrCursors *cursors;
    DkrPush *push; /* NULL: no sinks */
    GlueSink out, err;
    SprTurn input; /* of calls that write */

    /* Guarded by the provider's lock. */
    guint threads;
    bool released;
};

/* With the sinks of a command (NULL: none), which are done() when the handle is gone. */
bool glue_process_new(sprov_sandbox *sandbox, GlueCommand *command, sprov_process **ret_process,
                      GError **error);

/* Makes it the handle of process, which it takes over. */
void glue_process_set(sprov_process *process, DkrProcess *spawned);

/* From here on its sinks are called: the host has the handle. */
void glue_process_begin(sprov_process *process);

void glue_process_ref(sprov_process *process);
void glue_process_unref(sprov_process *process);

/* The host lets go. */
void glue_process_release(sprov_process *process);

/* SPR_E_UNSUPPORTED for a sandbox whose options leave the supervisor out. */
bool glue_process_check_supervised(sprov_sandbox *sandbox, GError **error);

/* The member of the vtable that has a file of its own. */
sprov_status glue_spawn(sprov_sandbox *sandbox, const sprov_spawn_request *request,
                        const sprov_call *call, sprov_process **process, sprov_error *error);
