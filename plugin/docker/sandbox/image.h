/*
 * The image that a container is made from: looked up, or pulled, as the options' pullPolicy and
 * platform say. Called by start with the name that a template or the options gave. Blocking; any
 * thread.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/context.h"
#include "supervised/backend.h"

#include <jansson.h>

/* *ret_image is GET /images/<image>/json. One that is missing, or of another platform than the
 * options', is SPR_E_NOT_FOUND, reason "image-not-found" or "wrong-platform". A template's image is
 * never pulled: no registry has it. */
bool dkr_image_ensure(const DkrContext *context, const DkrSandboxOptions *options,
                      const char *image, const DkrStartHooks *hooks, const SprWait *wait,
                      json_t **ret_image, GError **error);
