/*
 * Connections to one supervisor that calls have for themselves: one that is idle, or another that
 * is opened. Belongs to a DkrLink; any thread.
 */
#pragma once

#include "supervisor/client/supervisor.h"

typedef struct DkrPool DkrPool;

DkrPool *dkr_pool_new(void);
void dkr_pool_free(DkrPool *pool);

/* Opens another connection, maybe by way of shared. */
typedef bool (*DkrPoolOpen)(void *ctx, SprSupervisor *shared, const SprWait *wait,
                            SprSupervisor **ret_supervisor);

/* NULL when there can be none now: the shared connection serves as well. */
SprSupervisor *dkr_pool_take(DkrPool *pool, DkrPoolOpen open, void *ctx, SprSupervisor *shared,
                             const SprWait *wait);

/* clean: nothing of the call is left on it. */
void dkr_pool_give_back(DkrPool *pool, SprSupervisor *own, bool clean);
