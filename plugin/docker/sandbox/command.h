/*
 * One command in a running container through an engine exec: created, started, its streams pumped
 * between engine and host, ended with its whole tree when its time is up, its exit code read from
 * the engine's record. Sinks and source run on the calling thread. Any thread, any number at once.
 */
#pragma once

#include "sandbox/context.h"
#include "supervised/command.h"

/* True when the command ran, also when it was killed by its run timeout or the token. False with
 * ret_result filled when it had begun: SPR_E_TIMEOUT, SPR_E_REFUSED (a sink or the source gave
 * up), SPR_E_EXHAUSTED (a sink did not keep up), SPR_E_NOT_READY with SANDBOX_GONE. */
bool dkr_command_run(const DkrContext *context, const char *container, const DkrCommand *command,
                     const SprWait *wait, DkrCommandResult *ret_result, GError **error);
