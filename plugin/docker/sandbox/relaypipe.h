/*
 * A relay's hijacked stream as the byte pipe that the supervisor's client talks over: the engine's
 * frames are taken off, what the relay prints on its error stream goes to the log.
 */
#pragma once

#include "engine/hijack.h"
#include "supervisor/client/pipe.h"

/* Takes hijack over; it is freed when the pipe is closed. log must outlive the pipe. */
SprPipe dkr_relay_pipe(DkrHijack *hijack, const SprLog *log);
