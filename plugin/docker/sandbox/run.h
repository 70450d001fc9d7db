/*
 * One command in a running container by the best way there is: its supervisor, or an engine exec
 * where there is none. The same request, the same answers (command.h). Any thread.
 */
#pragma once

#include "sandbox/command.h"
#include "sandbox/link.h"

/* Where commands run. Borrowed; as long as the life it is taken from. */
typedef struct {
    const DkrContext *context;
    const char *container;
    DkrLink *link; /* NULL: by engine exec */
} DkrVenue;

bool dkr_run(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
             DkrCommandResult *ret_result, GError **error);
