/*
 * "os/arch[/variant]", as images are made for. Pure, any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Whether an image (GET /images/<name>/json) is for platform ("os/arch[/variant]"); NULL is any. An
 * image that names no variant is for all. Pure. */
bool dkr_platform_fits(const json_t *image, const char *platform);
