/*
 * The way to the supervisor of a local sandbox: its socket. One connection that calls share, and
 * others that calls have for themselves. Belongs to a DkrLife; any thread.
 */
#pragma once

#include "supervised/own.h"

#include <sys/types.h>

/* process: readable once pid has ended; taken over, as is the first connection (may be NULL). */
DkrLink *local_link_new(const char *folder, pid_t pid, int process, SprSupervisor *supervisor);
void local_link_free(DkrLink *link);

/* Its supervisor was stopped by somebody: false, with SPR_E_NOT_READY, reason "paused". */
bool local_link_check_paused(pid_t pid, GError **error);

/* Whether its sandbox has ended, or does within limit_ms. */
bool local_link_is_over(const DkrLink *link, int limit_ms);
