/*
 * The process that stands above one command: starts it, arms its deadline, tells its end, kills its
 * tree. Forked by the server ahead of need (pool.h); afterwards it talks to it over one socket
 * only.
 */
#pragma once

#include "launch.h"

/* The whole life of a keeper in the forked child. mark: see sup_mark_self(). */
_Noreturn void sup_keeper_main(int control, SupLaunch *launch, uint64_t mark);
