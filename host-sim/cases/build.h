/*
 * What cases of templates are written with: definitions that differ from those of other runs, and
 * short ways to build them and to remove what was built.
 */
#pragma once

#include <jansson.h>

#include "check/case.h"

/* A definition of these operations (a JSON list) on this image. */
const char *build_definition_on(const char *base, const char *operations);
/* The same on the image of --options, which the engine has. */
const char *build_definition(const char *operations);
/* What describe() of sprov.templates/1 tells of a definition; *object, NULL when it told nothing,
 * is the caller's. */
sprov_status build_describe(const char *definition, json_t **object);
/* One step with a token of its own. */
const char *build_one_step(void);

/* May fail. call may be NULL. */
sprov_status build_run(const char *definition, const sprov_call *call,
                       sprov_template_result *result);
/* Removes what was built; a provider that cannot yet is no reason to fail. */
void build_dispose(const char *id);
/* How many template images there are, or with this id. */
int build_count(const char *id);
