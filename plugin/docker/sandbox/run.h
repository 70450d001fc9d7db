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

/* The supervisor for commands of user, NULL where there is none. The one of the container's own
 * user changes users where it may; another is started through the engine where it may not.
 * *ret_user is what is left to change. */
bool dkr_venue_supervisor(const DkrVenue *venue, const char *user, const SprWait *wait,
                          SprSupervisor **ret_supervisor, const char **ret_user, GError **error);

/* Whether the engine says that its container does not run any more. */
bool dkr_venue_is_over(const DkrVenue *venue);

/* What a broken connection means: SPR_E_NOT_READY when its container has ended, otherwise why, to be
 * tried again. Takes why over; returns false. */
bool dkr_venue_fail_broken(const DkrVenue *venue, GError *why, GError **error);

/* The shapes of supervisor/client for ours, which have to outlive them. */
SprSink dkr_supervisor_sink(const DkrSink *sink);

typedef struct {
    const DkrSource *source;
    SprSource adapted;
    GError *error; /* why the source gave up; of the owner */
} DkrFeed;

void dkr_feed_init(DkrFeed *feed, const DkrSource *source);
