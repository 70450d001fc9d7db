/*
 * Logging in to the registry that an image is pulled from, with what the host answers. Called by
 * whoever pulls; on the thread of the call.
 */
#pragma once

#include "base/wipe.h"

/* The login for a registry's host name, which the caller frees; the user is NULL with a token.
 * False: there is none. */
typedef bool (*DkrLoginFn)(void *ctx, const char *registry, SprSecret **ret_user,
                           SprSecret **ret_password);

/* "docker.io" for a name without a registry. g_free() it. */
char *dkr_registry_of(const char *image);

/* The value of the header X-Registry-Auth for a pull of image; NULL: anonymous. login may be
 * NULL. */
SprSecret *dkr_registry_auth(const char *image, DkrLoginFn login, void *ctx);
