/*
 * Names of machines to addresses, with a deadline: the system's resolver knows none, so it works on
 * a thread of its own that outlives a caller who no longer waits. Any thread.
 */
#pragma once

#include "base/wait.h"
#include "engine/endpoint.h"

#include <netdb.h>

typedef struct DkrAddresses DkrAddresses;

/* For the endpoint's host and port. SPR_E_UNAVAILABLE, reason "engine-unreachable", when there is
 * no such name; SPR_E_TIMEOUT, SPR_E_CANCELLED. */
bool dkr_resolve(const DkrEndpoint *endpoint, const SprWait *wait, DkrAddresses **ret_addresses,
                 GError **error);

const struct addrinfo *dkr_addresses_first(const DkrAddresses *addresses);
void dkr_addresses_unref(DkrAddresses *addresses);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrAddresses, dkr_addresses_unref)
