/*
 * What a host's registry_login knows of a registry, for builds and for pulls.
 */
#pragma once

#include "glue/glue.h"

#include "base/wipe.h"

/* False when the host has no login for it. *ret_user stays NULL when the password is an identity
 * token. */
bool glue_ask_login(const sprov_provider *provider, const sprov_callbacks *callbacks,
                    const char *registry, SprSecret **ret_user, SprSecret **ret_password);

/* DkrStartHooks.registry_auth, with the GlueCall as ctx. */
SprSecret *glue_registry_auth(void *ctx, const char *image);
