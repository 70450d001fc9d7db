/*
 * So many at a time: a pass is waited for with deadline and cancel token, first come first served.
 * Whoever keeps one for longer than the gate's patience no longer keeps others out, so that what is
 * stuck stops nobody. Any thread; a pass belongs to one owner.
 */
#pragma once

#include "base/latch.h"

typedef struct SprGate SprGate;
typedef struct SprPass SprPass;

SprGate *spr_gate_new(guint most, gint64 patience_ms);

/* All passes were given back. */
void spr_gate_free(SprGate *gate);

/* NULL gate: *ret_pass is NULL, which is as well. */
bool spr_gate_enter(SprGate *gate, const SprWait *wait, SprPass **ret_pass, GError **error);

/* How many wait for a pass now. */
guint spr_gate_waiting(SprGate *gate);

/* Gives it back and leaves NULL. */
void spr_gate_leave(SprPass **pass);
