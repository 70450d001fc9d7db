/*
 * The two sockets in the folder run/ of a sandbox: the supervisor's, which hosts connect to, and
 * one of the host, which the supervisor dials when it boots. The folder is the sandbox's to write
 * in: no link is followed, and who answers must be the supervisor's process. Any thread.
 */
#pragma once

#include "supervisor/client/supervisor.h"

/* A connection to the supervisor, whose process is pid. */
bool local_socket_connect(const char *folder, pid_t pid, const SprWait *wait,
                          SprSupervisor **ret_supervisor, GError **error);

/* The same to look only: it does not count as a use of the sandbox. */
bool local_socket_visit(const char *folder, pid_t pid, const SprWait *wait,
                        SprSupervisor **ret_supervisor, GError **error);

/* The process that listens as the supervisor; below 1: none. */
pid_t local_socket_peer(const char *folder);

/* Listens for the supervisor that is about to boot; what is left of an earlier life goes. */
bool local_socket_listen(const char *folder, int *ret_listener, GError **error);

/* The first that connects, once the listener is readable. *ret_pid is its process. Removes the
 * host's socket. */
bool local_socket_accept(const char *folder, int listener, const SprWait *wait, pid_t *ret_pid,
                         SprSupervisor **ret_supervisor, GError **error);
