/*
 * Volumes of the Engine API. Any thread.
 */
#pragma once

#include "engine/client.h"

/* Makes it, with labels (a JSON object), unless there is one of that name. ret_created may be NULL:
 * when it was made, in the engine's words, "" from one that does not say. */
bool dkr_volume_ensure(DkrClient *client, const char *name, json_t *labels, const SprWait *wait,
                       char **ret_created, GError **error);

/* Those that carry a label. */
bool dkr_volume_list(DkrClient *client, const char *label, const SprWait *wait, json_t **ret_array,
                     GError **error);

/* One that is gone is success; one in use is SPR_E_CONFLICT. */
bool dkr_volume_remove(DkrClient *client, const char *name, const SprWait *wait, GError **error);
