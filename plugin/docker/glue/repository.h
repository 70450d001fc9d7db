/*
 * Repository templates at the border: which JSON is one, what its host says of access and
 * environment, and the definition that it comes to at its present head.
 */
#pragma once

#include "base/wipe.h"
#include "glue/glue.h"

#include <jansson.h>

/* The object behind {"repository": {...}}, or NULL when definition is something else. */
json_t *glue_repository_of(const char *definition);

/* Its options, and its cloneUrl where they have one. */
bool glue_repository_check(const json_t *repository, GError **error);

/* Asks callbacks, then the Git server. *ret_definition stays NULL when the host has no
 * repository_access and the options no cloneUrl: there is no template then. *ret_token is the value
 * of DKR_REPOSITORY_SECRET for the build, or NULL for a public one. */
bool glue_repository_resolve(GlueCall *gc, const sprov_callbacks *callbacks,
                             const json_t *repository, const SprWait *wait, char **ret_definition,
                             SprSecret **ret_token, GError **error);

/* Without asking anybody: cloneUrl and sha must be in the options. */
bool glue_repository_describe(const json_t *repository, char **ret_definition, GError **error);
