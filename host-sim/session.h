/*
 * What nearly every command does around its work: load and open the provider with this host's
 * services, make a handle to a sandbox, take all of it down again, and turn what happened into an
 * exit code. Main thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "cli.h"
#include "loader.h"
#include "services.h"

typedef struct {
    const HsCommand *command;
    const HsCli *cli;
    HsServices services;
    HsProvider *lib;
    sprov_provider *provider;
} HsSession;

/* The session stays where it is until hs_session_end(), which also follows a failure of this. */
bool hs_session_open(HsSession *session, const HsCommand *command, const HsCli *cli,
                     GError **error);

/* Closes everything and returns the exit code: 128 + n after signal n, the one of the error
 * (which it reports and frees) if there is one, else exit_code. */
int hs_session_end(HsSession *session, int exit_code, GError *error);

/* A handle made of --options with "id" set to id (NULL: as the options say). */
bool hs_session_create(HsSession *session, const char *id, sprov_sandbox **ret_sandbox,
                       GError **error);

/* What a command does with one sandbox. data is its own. */
typedef bool (*HsWork)(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                       GError **error);

/* Does work on a handle to the sandbox with this id (NULL: as the options say), from opening the
 * session to ending it. Returns the exit code. */
int hs_session_work(const HsCommand *command, const HsCli *cli, const char *id, HsWork work,
                    void *data);

/* A call that signals cancel and that tells its progress to the log. */
sprov_call hs_session_call(HsSession *session, guint32 flags);

/* Makes the sandbox ready, found or new. */
bool hs_session_start(HsSession *session, sprov_sandbox *sandbox, sprov_start_result *ret_started,
                      GError **error);

/* Removes the sandbox for good, whatever signals come meanwhile. */
bool hs_session_destroy(HsSession *session, sprov_sandbox *sandbox, const char *id, GError **error);

/* False with SPROV_E_UNSUPPORTED when the provider lacks sprov.lifecycle/1. */
bool hs_session_need_lifecycle(const HsSession *session, GError **error);

/* False with SPROV_E_NOT_FOUND when there is no such sandbox, as far as the provider can tell: to
 * many calls that is no error, to who mistyped an id it is. */
bool hs_session_check_there(HsSession *session, sprov_sandbox *sandbox, const char *id,
                            GError **error);

/* Runs the command of the command line in the sandbox on this process's own streams. */
bool hs_session_exec(HsSession *session, sprov_sandbox *sandbox, guint32 call_flags, int *ret_exit,
                     GError **error);

/* False with SPROV_E_UNSUPPORTED when the provider lacks sprov.processes/1. */
bool hs_session_need_processes(const HsSession *session, GError **error);

/* The command of the command line as a request, without streams. */
sprov_exec_request hs_session_request(const HsSession *session);

/* What the result of a command means for ours, told in the log where it needs words. */
int hs_session_exit_code(const HsSession *session, const sprov_exec_result *result);
