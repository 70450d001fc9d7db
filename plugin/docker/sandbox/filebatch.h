/*
 * Writing several files without a supervisor, where an engine's exec for each step of each would
 * take seconds a file: they are looked at together, sent one by one, and put in their places
 * together. Blocking; any number at once.
 */
#pragma once

#include "sandbox/filecalls.h"

/* Stores what became of each in its failure. */
void dkr_file_write_batch(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                          gsize count, const SprWait *wait);
