/*
 * What the engine tells of itself. Any thread.
 */
#pragma once

#include "engine/client.h"

/* "engine" of abi/schema/about.json, out of the engine's answer to /version. */
json_t *dkr_about_read(json_t *answer, int api_minor);

/* Asks the engine. */
bool dkr_about_engine(DkrClient *client, const SprWait *wait, json_t **ret_engine, GError **error);
