/*
 * The session of a build on a real engine: a hijacked connection with a DkrSession on it, served
 * by the thread that reads the build. One DkrBuildSession belongs to one build on one thread.
 */
#pragma once

#include "buildkit/session.h"
#include "engine/client.h"

typedef struct DkrBuildSession DkrBuildSession;

/* Opens it; the build may be sent after that. SPR_E_UNSUPPORTED, reason "no-buildkit", when the
 * engine has no sessions. services is copied. */
bool dkr_build_session_open(DkrClient *client, const DkrServices *services, const SprWait *wait,
                            DkrBuildSession **ret_session, GError **error);
void dkr_build_session_free(DkrBuildSession *session);

/* What the build has to name. */
const char *dkr_build_session_id(const DkrBuildSession *session);

/* Answers what is there, without a wait. A connection that broke is served no longer; the build
 * then tells what it missed. */
void dkr_build_session_serve(DkrBuildSession *session);

/* For the request of the build. */
const DkrBeside *dkr_build_session_beside(const DkrBuildSession *session);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrBuildSession, dkr_build_session_free)
