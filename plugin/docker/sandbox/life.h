/*
 * What is known of one container that runs: taken from the engine's inspect at start, immutable,
 * shared by reference with the calls that use it, so that a stop or a destroy beside them takes
 * nothing away under their feet. Any thread.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/link.h"
#include "supervised/own.h"

#include <jansson.h>

struct DkrLife {
    gatomicrefcount refs;
    char *container; /* its full id */
    char *image;     /* as it was asked for */
    char *workdir;   /* absolute */
    bool only_stays; /* its main process is a keep-alive and nothing else */
    char *started;   /* when, in the engine's words: tells it from a later life of its container */
    DkrLink *link;   /* to its supervisor; NULL: none, */
    char *unlinked;  /* for this reason */
    char *socket;    /* of the host, that it was made with; NULL: none */
    char **mounts;   /* where volumes and binds are: what the archive API sees beside the root */

    DkrTransfers transfers;
};

/* Whether the main process of a container is a keep-alive that nobody asked for by name: the
 * supervisor's own, or sleep. It ends at once, and nothing is lost with it. */
bool dkr_life_only_stays(const json_t *inspect);

/* NULL with SPR_E_IO when inspect is not what it should be, with SPR_E_UNSUPPORTED when a
 * supervisor is required and can't be had. options: of the sandbox it is for. socket: what was
 * prepared before its start, taken over; NULL when it ran already. A container of the reference
 * gets the supervisor's program here, so that this may wait. */
DkrLife *dkr_life_new(const DkrContext *context, const DkrSandboxOptions *options,
                      const json_t *inspect, DkrLinkSocket *socket, const SprWait *wait,
                      GError **error);
