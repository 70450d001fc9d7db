/*
 * A new connection to the engine before anything is said on it: a unix socket, a TCP connection, or
 * the socket of an ssh that runs "docker system dial-stdio" on the other side. For the plain
 * requests (lane.h) and the hijacked ones (conn.h) alike. Belongs to one owner; any thread.
 */
#pragma once

#include "base/child.h"
#include "base/gate.h"
#include "base/wait.h"
#include "engine/endpoint.h"

#include <sys/socket.h>

typedef struct {
    int fd;          /* non-blocking, close-on-exec, none of the standard streams */
    int listener;    /* ssh, until it is started: fd will be connected to it; else -1 */
    SprChild *child; /* ssh; else NULL */
    SprPass *login;  /* ssh, until it is known to have got through; else NULL */
    bool heard;      /* something came */
} DkrDial;

#define DKR_DIAL_NONE                                                                              \
    {                                                                                              \
        .fd = -1, .listener = -1                                                                   \
    }

typedef struct {
    struct sockaddr_storage address;
    socklen_t size;
} DkrTarget;

/* login: of one of endpoint->logins, taken over whatever comes of it.
 * Within 10 s; SPR_E_UNAVAILABLE, reason "engine-unreachable", when nobody takes it. An ssh is only
 * started: what it cannot do shows in the first answer. */
bool dkr_dial(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait, DkrDial *ret_dial,
              GError **error);

/* The same in two steps, for libcurl, which insists on connecting by itself: a socket, and where it
 * is to be connected to. */
bool dkr_dial_prepare(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait,
                      DkrDial *ret_dial, DkrTarget *ret_target, GError **error);

/* For ssh, after every step of libcurl: starts the ssh once the socket is connected. */
bool dkr_dial_settle(const DkrEndpoint *endpoint, DkrDial *dial, GError **error);

/* Something came on it, so that the next ssh may log in. */
void dkr_dial_heard(DkrDial *dial);

/* Ends it, for whoever else has its descriptor as well, and its child; leaves DKR_DIAL_NONE. */
void dkr_dial_close(DkrDial *dial);
