/*
 * The Dockerfile of a definition, byte for byte the reference's for schema 1, so that the engine's
 * layer cache is shared too. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

/* The definition passed dkr_schema_check(). */
char *dkr_dockerfile_render(const DkrTemplate *tmpl);
