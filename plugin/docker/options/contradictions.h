/*
 * Options for which every engine takes two answers to one question and lets one of them go in
 * silence. For options/sandbox.c alone; pure, any thread.
 */
#pragma once

#include "options/sandbox.h"

/* Refuses a capability that is dropped and added, a security option with two values and a limit
 * that is named twice. */
bool dkr_contradictions_check(const DkrSandboxOptions *options, GError **error);
