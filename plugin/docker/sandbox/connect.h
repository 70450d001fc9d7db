/*
 * From a container that carries a sandbox's id to its life: find it, make it run, look at what it
 * became. Called by sandbox.c and create.c with the transition held; blocking, no state of its own.
 */
#pragma once

#include "sandbox/life.h"
#include "supervised/backend.h"

/* How long the engine, or another process, may be in the middle of something. */
#define DKR_UNSEEN_STEP_US (50 * 1000)

#define DKR_LABEL_ID "mastra.sandbox.id"

/* The container with this id, or *ret_container NULL when there is none. Two are SPR_E_CONFLICT,
 * naming both. ret_socket (may be NULL) is the host's socket of its label, or NULL. */
bool dkr_connect_find(const DkrContext *context, const char *id, const SprWait *wait,
                      char **ret_container, char **ret_socket, GError **error);

/* Finds it and makes it run again, a paused one too. *ret_life stays as it is when there is
 * none. */
bool dkr_connect(const DkrContext *context, const DkrSandboxOptions *options, const SprWait *wait,
                 DkrLife **ret_life, GError **error);

/* Starts the container that inspect is the engine's record of, warns of what it has otherwise than
 * the options say, and looks long enough to see a main process that ends at once: SPR_E_NOT_READY,
 * reason main-process-ended, with its code and last output. */
bool dkr_connect_bring_up(const DkrContext *context, const DkrSandboxOptions *options,
                          const json_t *inspect, bool made_now, DkrLinkSocket *socket,
                          const SprWait *wait, DkrLife **ret_life, GError **error);

/* The host's socket of its label, or NULL. */
const char *dkr_connect_socket_of(const json_t *inspect);

/* The engine's; "" from one, or a proxy before it, that refuses to tell. */
bool dkr_connect_architecture(const DkrContext *context, const SprWait *wait,
                              const char **ret_architecture, GError **error);

/* A moment in which what is not seen yet may come. */
bool dkr_connect_wait_unseen(const SprWait *wait, GError **error);
