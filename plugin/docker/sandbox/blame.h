/*
 * Which option an engine means that refuses to create or to start a container. Engines tell it in
 * words alone, and seldom by the name that the option has here. Called by create.c, and by
 * connect.c for one that starts again; pure.
 */
#pragma once

#include "options/sandbox.h"

/* The option's path with its value, as it stands before a message ('capDrop[0] "NOPE"'), or NULL:
 * text names none of the options that are set. g_free() it. */
char *dkr_blame(const DkrSandboxOptions *options, const char *text);

/* Puts that before the message of an engine's failure, whose reason becomes "option-refused", or of
 * a main process that ended at once. False: it is no option's fault, and error stays as it is. */
bool dkr_blame_option(const DkrSandboxOptions *options, GError **error);
