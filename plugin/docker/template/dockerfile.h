/*
 * The Dockerfile of a definition: byte for byte the reference's where that does what was written
 * (so that the engine's layer cache is shared too), a text of our own for the operations where it
 * does not. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

/* The definition passed dkr_schema_of(). With a cache_scope (NULL: none) a secret step is cached
 * for builds of the same scope alone. *ret_build_args is an object of strings that the build must
 * be given, or NULL. */
void dkr_dockerfile_render(const DkrTemplate *tmpl, const char *cache_scope, char **ret_dockerfile,
                           json_t **ret_build_args);
