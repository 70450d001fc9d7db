/*
 * The ways to the supervisor of one running container: for each user one connection, an engine exec
 * of the program as a relay, opened by the first call that needs it and shared by all. Belongs to a
 * DkrLife; any thread.
 */
#pragma once

#include "sandbox/context.h"
#include "supervisor/client/supervisor.h"

typedef struct DkrLink DkrLink;

typedef enum {
    DKR_LINK_MAIN,   /* it runs already, as the container's main process */
    DKR_LINK_OURS,   /* the first connection starts it */
    DKR_LINK_ADOPTED /* so it does here, where nobody has seen it run yet */
} DkrLinkKind;

/* program is its path inside. is_required: its failure is an error, not a reason to do without. */
DkrLink *dkr_link_new(const DkrContext *context, const char *container, DkrLinkKind kind,
                      const char *program, bool is_required);
void dkr_link_free(DkrLink *link);

/* A live connection. user NULL is the container's own; for another one the supervisor of the
 * container's user answers where it may change users, else one is started as that user.
 * *ret_supervisor NULL without error: it cannot be reached, work by engine exec. */
bool dkr_link_get(DkrLink *link, const char *user, const SprWait *wait,
                  SprSupervisor **ret_supervisor, GError **error);

/* Why it is not used, or NULL: it is. g_free() it. */
char *dkr_link_reason(DkrLink *link);

/* The users other than the container's that it was asked for; g_strfreev() them. */
char **dkr_link_users(DkrLink *link);
