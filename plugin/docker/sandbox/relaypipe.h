/*
 * A relay's hijacked stream as the byte pipe that the supervisor's client talks over: the engine's
 * frames are taken off, what the relay prints on its error stream goes to the log.
 */
#pragma once

#include "engine/hijack.h"
#include "supervisor/client/pipe.h"

/* To be read while nobody else uses the pipe. */
typedef struct {
    char text[512];  /* what it has printed there so far */
    char first[512]; /* the beginning of its output: the engine's words where it never ran */
    gsize first_size;
    bool is_greeted; /* set when first is not needed any more, before others use the pipe */
} DkrRelayWords;

DkrRelayWords *dkr_relay_words_new(void);
void dkr_relay_words_unref(DkrRelayWords *words);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrRelayWords, dkr_relay_words_unref)

/* Takes hijack over; it is freed when the pipe is closed. log must outlive the pipe. */
SprPipe dkr_relay_pipe(DkrHijack *hijack, DkrRelayWords *words, const SprLog *log);
