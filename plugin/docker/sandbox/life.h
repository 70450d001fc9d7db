/*
 * What is known of one container that runs: taken from the engine's inspect at start, immutable,
 * shared by reference with the calls that use it, so that a stop or a destroy beside them takes
 * nothing away under their feet. Any thread.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/run.h"

#include <jansson.h>

typedef struct {
    gatomicrefcount refs;
    char *container; /* its full id */
    char *image;     /* as it was asked for */
    char *workdir;   /* absolute */
    char *started;   /* when, in the engine's words: tells it from a later life of its container */
    DkrLink *link;   /* to its supervisor; NULL: none, */
    char *unlinked;  /* for this reason */
    char *socket;    /* of the host, that it was made with; NULL: none */
    char **mounts;   /* where volumes and binds are: what the archive API sees beside the root */

    GMutex lock; /* guards all below */
    GCond left;
    guint transfers;
    SprLatch *ending; /* opens when they have to end; NULL before the first */
} DkrLife;

/* NULL with SPR_E_IO when inspect is not what it should be, with SPR_E_UNSUPPORTED when a
 * supervisor is required and can't be had. options: of the sandbox it is for. socket: what was
 * prepared before its start, taken over; NULL when it ran already. A container of the reference
 * gets the supervisor's program here, so that this may wait. */
DkrLife *dkr_life_new(const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, const SprWait *wait,
                      GError **error);
DkrLife *dkr_life_ref(DkrLife *life);
void dkr_life_unref(DkrLife *life);

/* Why commands do not go through a supervisor; NULL: they do. g_free() it. */
char *dkr_life_unsupervised(const DkrLife *life);

/* Where its commands run; as long as life. */
DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context);

/* Around a call that may transfer an archive. The engine keeps the container's lock meanwhile, so
 * that a stop or remove would wait for the last byte: dkr_life_end() ends *ret_wait, and the
 * connection of a request that waits by it. False when the process has no descriptor left. */
bool dkr_life_enter(DkrLife *life, const SprWait *wait, SprWait *ret_wait, GError **error);
void dkr_life_leave(DkrLife *life, const SprWait *entered);

/* Before the container is stopped or removed: ends the transfers, gives them a moment to tidy up,
 * and lets none begin, until that failed and life goes on. */
void dkr_life_end_transfers(DkrLife *life);
void dkr_life_go_on(DkrLife *life);

/* path made absolute by the working directory; not normalized: that is the sandbox's own view. */
char *dkr_life_absolute(const DkrLife *life, const char *path);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrLife, dkr_life_unref)
