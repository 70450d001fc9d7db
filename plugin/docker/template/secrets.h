/*
 * The values of a build's secrets: asked of the host once before the build, given to the session,
 * wiped after it. One DkrSecrets belongs to one build on one thread.
 */
#pragma once

#include "base/redact.h"
#include "base/wipe.h"
#include "template/recipe.h"

/* What BuildKit's own clients allow. */
#define DKR_SECRET_MOST (500u * 1024)

/* False when the host has no such secret. *ret_value is then untouched, else the caller's. */
typedef bool (*DkrAskSecret)(void *ctx, const char *name, SprSecret **ret_value);

typedef struct DkrSecrets DkrSecrets;

/* Asks for every secret of the recipe. SPR_E_NOT_FOUND, reason "no-secret", names all that are
 * missing; SPR_E_INVALID_ARGUMENT names one whose value would not arrive as it is. */
bool dkr_secrets_gather(const DkrRecipe *recipe, DkrAskSecret ask, void *ctx,
                        DkrSecrets **ret_secrets, GError **error);
void dkr_secrets_free(DkrSecrets *secrets);

/* NULL when it is none of the recipe's. */
const SprSecret *dkr_secrets_find(const DkrSecrets *secrets, const char *name);

/* Tells redactor all values. */
void dkr_secrets_hide(const DkrSecrets *secrets, SprRedactor *redactor);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrSecrets, dkr_secrets_free)
