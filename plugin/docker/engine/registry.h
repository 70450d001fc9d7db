/*
 * Logins at registries, as the engine wants them for a pull. Pure, any thread.
 */
#pragma once

#include "base/wipe.h"

/* The registry that an image's name leads to: "docker.io" unless its first part holds a "." or a
 * ":", or is "localhost". */
char *dkr_registry_of(const char *image);

/* The value of X-Registry-Auth. Without user, password is an identity token. NULL when memory ran
 * out. */
SprSecret *dkr_registry_auth(const char *registry, const SprSecret *user,
                             const SprSecret *password);
