/*
 * What is known of one container that runs: taken from the engine's inspect at start, immutable,
 * shared by reference with the calls that use it, so that a stop or a destroy beside them takes
 * nothing away under their feet.
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
    DkrLink *link;   /* to its supervisor; NULL: none */
    char *socket;    /* of the host, that it was made with; NULL: none */
    char **mounts;   /* where volumes and binds are: what the archive API sees beside the root */
} DkrLife;

/* NULL with SPR_E_IO when inspect is not what it should be. options: of the sandbox it is for.
 * socket: what was prepared before its start, taken over; NULL when it ran already. */
DkrLife *dkr_life_new(const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, GError **error);
DkrLife *dkr_life_ref(DkrLife *life);
void dkr_life_unref(DkrLife *life);

/* Where its commands run; as long as life. */
DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context);

/* path made absolute by the working directory; not normalized: that is the sandbox's own view. */
char *dkr_life_absolute(const DkrLife *life, const char *path);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrLife, dkr_life_unref)
