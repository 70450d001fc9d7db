/*
 * What the commands for spawned processes share: finding one by what the user typed, starting one,
 * and passing its output on. Main thread.
 */
#pragma once

#include <jansson.h>

#include "session.h"
#include "streams.h"

/* name: the id that ps shows, or what stands behind its last '-' where that is enough. */
bool hs_process_find(HsSession *session, sprov_sandbox *sandbox, const char *name,
                     sprov_process **ret_process, GError **error);

/* The command of the command line; on a terminal when rows is not 0. */
bool hs_process_spawn(HsSession *session, sprov_sandbox *sandbox, guint16 rows, guint16 columns,
                      sprov_process **ret_process, GError **error);

/* Spawns it, prints its id and lets go. */
bool hs_process_detach(HsSession *session, sprov_sandbox *sandbox, GError **error);

/* Objects of list(). */
bool hs_process_list(HsSession *session, sprov_sandbox *sandbox, json_t *found, GError **error);

/* What read() has at *offset (NULL: the handle's cursor) to the sink. *ret_end: that was all, ever.
 * With SPROV_CALL_NOWAIT it returns with *ret_again once there is nothing for now. */
bool hs_process_pass(HsSession *session, sprov_process *process, sprov_stream stream,
                     uint64_t *offset, guint32 call_flags, HsSink *sink, bool *ret_end,
                     bool *ret_again, GError **error);
