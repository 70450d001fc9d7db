/*
 * One command in a running sandbox by the best way there is: its supervisor, or what its provider
 * has where there is none. The same request, the same answers (command.h). Any thread.
 */
#pragma once

#include "supervised/own.h"

/* True when the command ran, also when it was killed by its run timeout or the token. False with
 * ret_result filled when it had begun: SPR_E_TIMEOUT, SPR_E_REFUSED (a sink or the source gave
 * up), SPR_E_EXHAUSTED (a sink did not keep up), SPR_E_NOT_READY with SANDBOX_GONE. */
bool dkr_run(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
             DkrCommandResult *ret_result, GError **error);

/* The supervisor for commands of user, NULL where there is none. The one of the sandbox's own
 * user changes users where it may; another is started as that user where it may not.
 * *ret_user is what is left to change. */
bool dkr_venue_supervisor(const DkrVenue *venue, const char *user, const SprWait *wait,
                          SprSupervisor **ret_supervisor, const char **ret_user, GError **error);

/* What a broken connection means: SPR_E_NOT_READY when its sandbox has ended, otherwise why, to be
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
