/*
 * What cases of spawned processes are written with: short ways to spawn, to pull output and to
 * wait. A provider that cannot spawn in the sandboxes of this run makes the case skipped.
 */
#pragma once

#include "check/case.h"

const sprov_ext_processes *process_api(void);

/* SPROV_INIT for a shell command; it lives until the case ends. */
sprov_spawn_request process_request(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* exec of a request made by process_request(), to be changed. */
sprov_exec_request *process_exec(const sprov_spawn_request *request);

/* These must succeed. */
sprov_process *process_start(sprov_sandbox *sandbox, const sprov_spawn_request *request);
sprov_process *process_spawn(sprov_sandbox *sandbox, const char *format, ...) G_GNUC_PRINTF(2, 3);
sprov_process *process_find(sprov_sandbox *sandbox, const char *id);
sprov_exec_result process_wait(sprov_process *process);
void process_send(sprov_process *process, CaseBytes bytes);
void process_close(sprov_process *process);

/* Everything of a stream that is kept, to its end. */
CaseBytes process_output(sprov_process *process, sprov_stream stream);
/* The next n bytes at the handle's own cursor; fewer at the end. */
CaseBytes process_next(sprov_process *process, sprov_stream stream, gsize n);

sprov_status process_kill(sprov_process *process, int signal, sprov_kill_scope scope);
/* Forgets an ended process and lets go of it. */
void process_forget(sprov_process *process);
/* Kills it if it runs, and does the same. */
void process_end(sprov_process *process);

/* The JSON object that list() has for this id, or NULL. */
const char *process_listed(sprov_sandbox *sandbox, const char *id);
int process_count(sprov_sandbox *sandbox);
