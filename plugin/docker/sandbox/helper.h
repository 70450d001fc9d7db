/*
 * A container that is never started: the archive API reads and writes a volume through it all the
 * same. It has a name of its own, by which it is removed also where nobody heard that it was made.
 * Any thread.
 */
#pragma once

#include "sandbox/context.h"

/* For volume, mounted at DKR_SUPERVISOR_DIRECTORY. The caller drops it. */
bool dkr_helper_make(const DkrContext *context, const char *volume, const char *image,
                     const SprWait *wait, char **ret_helper, GError **error);

/* call: of the call that it served, which may be over. */
void dkr_helper_drop(const DkrContext *context, const char *helper, const SprWait *call);
