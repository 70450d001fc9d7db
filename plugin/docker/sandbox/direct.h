/*
 * The direct way to a sandbox's supervisor where host and engine share a machine: a socket of ours
 * in a folder that is mounted into the sandbox, which the supervisor connects to. Who connects is
 * believed to be it when the kernel says so (the process that the engine started, at its boot) or
 * when it brings the nonce that the supervisor alone was told. Anything else is closed unread.
 * Belongs to a DkrLink; any thread.
 */
#pragma once

#include "sandbox/runtime.h"
#include "supervisor/client/supervisor.h"

#include <sys/types.h>

typedef struct DkrDirect DkrDirect;

/* Listens in folder, which is there, under a random name. */
bool dkr_direct_new(const char *folder, DkrDirect **ret_direct, GError **error);

/* Listens in the folder of path, made again where it is gone: under the same name, which the
 * container's supervisor dials when it boots, unless another host listens there. */
bool dkr_direct_restore(const char *path, DkrDirect **ret_direct, GError **error);
void dkr_direct_free(DkrDirect *direct);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrDirect, dkr_direct_free)

/* Of the socket, on this machine. */
const char *dkr_direct_path(const DkrDirect *direct);

/* The supervisor that boots is this process, and needs no nonce, once. 0: it is not known. */
void dkr_direct_expect(DkrDirect *direct, pid_t pid);

/* The connection that the booting supervisor makes; NULL when none came within wait_ms or none is
 * expected. */
SprSupervisor *dkr_direct_boot(DkrDirect *direct, gint64 wait_ms);

/* Another connection, asked for over one that there is. */
bool dkr_direct_dial(DkrDirect *direct, SprSupervisor *through, const SprWait *wait,
                     SprSupervisor **ret_supervisor, GError **error);
