/*
 * A relay's hijacked stream as the byte pipe that the supervisor's client talks over: the engine's
 * frames are taken off, what the relay prints on its error stream goes to the log.
 */
#pragma once

#include "engine/hijack.h"
#include "supervisor/client/pipe.h"

/* What it has printed there so far, to be read while nobody else uses the pipe. */
typedef struct {
    char text[512];
} DkrRelayWords;

DkrRelayWords *dkr_relay_words_new(void);
void dkr_relay_words_unref(DkrRelayWords *words);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrRelayWords, dkr_relay_words_unref)

/* Takes hijack over; it is freed when the pipe is closed. log must outlive the pipe. */
SprPipe dkr_relay_pipe(DkrHijack *hijack, DkrRelayWords *words, const SprLog *log);
