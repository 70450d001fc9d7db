/*
 * Runs a program of the machine (git) to its end and takes what it prints. It begins with default
 * signal dispositions, none blocked, no descriptor but its three, nothing to read, and in a session
 * of its own, so that no terminal answers its questions. Waited for by its own pid, so that a host
 * may ignore SIGCHLD. Any thread.
 */
#pragma once

#include "base/wait.h"

/* Of either stream, from its beginning. */
#define SPR_PROGRAM_OUTPUT_MOST (4u << 20)

typedef struct {
    GString *out;
    GString *err;
    int exit_code; /* 128 + n for signal n, -1 when the host took it away */
} SprProgramResult;

/* environment is "NAME=value", NULL-terminated; argv[0] is looked up in its PATH.
 * False with SPR_E_NOT_FOUND, reason "no-program", when it cannot be started; when the wait ends
 * first, it and what it started is killed. */
bool spr_program_run(const char *const *argv, const char *const *environment, const SprWait *wait,
                     SprProgramResult *ret_result, GError **error);

void spr_program_result_clear(SprProgramResult *result);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SprProgramResult, spr_program_result_clear)
