/*
 * One sandbox: the state machine between a handle and what runs for it. At most one of start, stop
 * and destroy works at a time, others wait for it; commands and transfers run beside with the
 * DkrLife they took. Every function from any thread; the owner frees it when no call is left.
 */
#pragma once

#include "supervised/backend.h"

typedef struct DkrSandbox DkrSandbox;

enum {
    DKR_READY_NO_START = 1u << 0,
    DKR_READY_NO_CREATE = 1u << 1
};

/* Takes options over. */
DkrSandbox *dkr_sandbox_new(const DkrContext *context, DkrSandboxOptions *options);
void dkr_sandbox_free(DkrSandbox *sandbox);

const DkrSandboxOptions *dkr_sandbox_options(const DkrSandbox *sandbox);
const DkrCommonOptions *dkr_sandbox_common(const DkrSandbox *sandbox);

/* Reconnects to the sandbox that has this id, or creates one. Calls at the same
 * time share one attempt; a failed one leaves nothing behind. */
bool dkr_sandbox_start(DkrSandbox *sandbox, guint ready_flags, const DkrStartHooks *hooks,
                       const SprWait *wait, DkrStartOutcome *ret_outcome, GError **error);

/* Something done in a life. attempt is called once more, in a new life, when the old one turned
 * out to be over and may_repeat says that nothing has happened yet. */
typedef struct {
    bool (*attempt)(void *ctx, DkrLife *life, GError **error);
    bool (*may_repeat)(void *ctx);
    void *ctx;
} DkrWork;

/* Does it in a sandbox that is ready, started first where flags and options allow it. */
bool dkr_sandbox_work(DkrSandbox *sandbox, guint ready_flags, const DkrStartHooks *hooks,
                      const SprWait *wait, const DkrWork *work, GError **error);

/* Does it in a sandbox that runs, whoever started it, and never starts one: *ret_runs tells whether
 * there was a life to do it in. may_repeat is not asked. */
bool dkr_sandbox_visit(DkrSandbox *sandbox, const SprWait *wait, const DkrWork *work,
                       bool *ret_runs, GError **error);

bool dkr_sandbox_stop(DkrSandbox *sandbox, const SprWait *wait, GError **error);

/* Final, unless it fails. */
bool dkr_sandbox_destroy(DkrSandbox *sandbox, const SprWait *wait, GError **error);

bool dkr_sandbox_is_destroyed(DkrSandbox *sandbox);

/* JSON of schema/info.json; describe asks nobody, info asks the backend. g_free() it. */
char *dkr_sandbox_describe(DkrSandbox *sandbox);
bool dkr_sandbox_info(DkrSandbox *sandbox, const SprWait *wait, char **ret_json, GError **error);

/* Changes the environment of commands from now on, see env.h. */
void dkr_sandbox_set_env(DkrSandbox *sandbox, const char *const *changes);

/* The environment of a command: what the sandbox has, with changes on top. dkr_env_free() it. */
char **dkr_sandbox_command_env(DkrSandbox *sandbox, const char *const *changes);
