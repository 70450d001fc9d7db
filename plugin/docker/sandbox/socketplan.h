/*
 * What a start prepares of the direct way to a sandbox (direct.h) before the engine starts its
 * container. Called with the transition held; any thread.
 */
#pragma once

#include "sandbox/link.h"
#include "sandbox/placement.h"

/* For a container that is to be created: listens, or says why not. False where the options require
 * a socket. */
bool dkr_socket_plan_new(const DkrContext *context, const DkrSandboxOptions *options,
                         const DkrPlacement *placement, DkrLinkSocket *ret_socket, GError **error);

/* For one that stands still and has the socket's folder mounted, which has to be there again; what
 * goes wrong is logged, for the engine tells when it matters. path NULL: it has none. */
void dkr_socket_plan_restore(const DkrContext *context, const DkrSandboxOptions *options,
                             const char *path, DkrLinkSocket *ret_socket);

/* The container is not made, or gone: removes what plan_new() made and no life took over. */
void dkr_socket_plan_drop(DkrLinkSocket *socket);

/* The same by the path that the container's label names; NULL is none. */
void dkr_socket_forget(const char *path);
