/*
 * The ways to the supervisor of one running container: for each user one connection that all share,
 * opened by the first call that needs it. For the container's own user it is a socket where host
 * and engine share a machine, beside which calls get connections for themselves; else, and for
 * other users, the stream of an engine exec of the program as a relay. Belongs to a DkrLife; any
 * thread.
 */
#pragma once

#include "sandbox/context.h"
#include "sandbox/direct.h"

typedef enum {
    DKR_LINK_MAIN,   /* it runs already, as the container's main process */
    DKR_LINK_OURS,   /* the first connection starts it */
    DKR_LINK_ADOPTED /* so it does here, where nobody has seen it run yet */
} DkrLinkKind;

/* What is known of the socket when a container is made or started. */
typedef struct {
    DkrDirect *direct; /* listens; NULL: none, or not yet */
    char *reason;      /* why there is to be none, or NULL */
} DkrLinkSocket;

void dkr_link_socket_clear(DkrLinkSocket *socket);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DkrLinkSocket, dkr_link_socket_clear)

typedef struct {
    const char *container;
    const char *sandbox; /* its id, for messages */
    DkrLinkKind kind;
    const char *program;     /* its path inside */
    bool is_required;        /* its failure is an error, not a reason to do without */
    bool is_visit;           /* to look only: no use of the sandbox that counts */
    const char *transport;   /* "auto", "socket" or "stream" */
    const char *socket_path; /* what the container was made with, or NULL */
    pid_t pid;               /* of its first process, on the engine's machine */
    DkrLinkSocket *socket;   /* taken over; may be NULL */
} DkrLinkSpec;

DkrLink *dkr_link_new(const DkrContext *context, const DkrLinkSpec *spec);
void dkr_link_free(DkrLink *link);

/* After the container was started: takes the connection of the supervisor that booted, if it is
 * there already. False where a socket is required and there is none. */
bool dkr_link_settle(DkrLink *link, const SprWait *wait, GError **error);

/* Whether the main process, whose supervisor is the container's, becomes the last words of what it
 * was given, and rests, within limit_ms. */
bool dkr_link_main_rests(DkrLink *link, guint64 words, gint64 limit_ms, const SprWait *wait);

/* Why it is not used, or NULL: it is. g_free() it. */
char *dkr_link_reason(DkrLink *link);

/* "socket" or "stream", NULL before the first connection; *ret_reason (g_free() it) is why a
 * stream, or NULL. */
const char *dkr_link_transport(DkrLink *link, char **ret_reason);
