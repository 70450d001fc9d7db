/*
 * What loader and implementation agree on: the implementation's file, which lies beside the
 * loader's, and the one symbol it exports.
 */
#pragma once

#include <sandbox_provider.h>

#define SPROV_DOCKER_FILE "docker-provider.impl"
#define SPROV_DOCKER_SYMBOL "sprov_docker_implementation_v1"

SPROV_EXPORT const sprov_entry *sprov_docker_implementation_v1(void);
