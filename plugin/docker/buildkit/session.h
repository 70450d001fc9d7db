/*
 * The session of a build: over one connection the engine is the HTTP/2 client and we are the
 * server that it asks for secrets and logins. Bytes in, bytes out: it knows no connection, so that
 * any pipe will do (today a hijacked one). One DkrSession belongs to one build on one thread.
 */
#pragma once

#include "base/error.h"
#include "buildkit/service.h"

typedef struct DkrSession DkrSession;

/* services is copied; its ctx outlives the session. NULL when memory ran out. */
DkrSession *dkr_session_new(const DkrServices *services);
void dkr_session_free(DkrSession *session);

/* Takes bytes of the engine and answers what they ask. False with SPR_E_IO when they are no
 * HTTP/2: the session is over then. */
bool dkr_session_feed(DkrSession *session, const void *data, gsize size, GError **error);

/* What waits to be sent, valid until the next call; *ret_size may be 0. */
void dkr_session_pending(DkrSession *session, const void **ret_data, gsize *ret_size);

/* The first size bytes of it are on their way; they are wiped. */
void dkr_session_sent(DkrSession *session, gsize size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrSession, dkr_session_free)
