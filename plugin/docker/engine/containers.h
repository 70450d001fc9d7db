/*
 * Containers of the Engine API, one function a request. Answers are the engine's JSON: who asks
 * knows which fields it needs. Any thread.
 */
#pragma once

#include "engine/client.h"

/* All containers, running or not, that carry label ("name" or "name=value"), newest first. */
bool dkr_container_list(DkrClient *client, const char *label, const SprWait *wait,
                        json_t **ret_array, GError **error);

/* All there are. */
bool dkr_container_list_all(DkrClient *client, const SprWait *wait, json_t **ret_array,
                            GError **error);

/* Those that were made of an image, or of one that was made of it. */
bool dkr_container_list_of_image(DkrClient *client, const char *image, const SprWait *wait,
                                 json_t **ret_array, GError **error);

bool dkr_container_inspect(DkrClient *client, const char *container, const SprWait *wait,
                           json_t **ret_object, GError **error);

/* Name and platform alone go into the URL, NULL for a name that the engine makes up and for its own
 * platform; the configuration never does. */
bool dkr_container_create(DkrClient *client, const char *name, const char *platform,
                          const char *body, const SprWait *wait, char **ret_id, GError **error);

/* One that runs already is success. No limit but the caller's: the engine is pinged beside. */
bool dkr_container_start(DkrClient *client, const char *container, const SprWait *wait,
                         GError **error);

/* True once it has ended; false without error when it still runs after within_ms. */
bool dkr_container_has_ended(DkrClient *client, const char *container, gint64 within_ms,
                             const SprWait *wait, bool *ret_ended, GError **error);

/* Paused processes go on. */
bool dkr_container_unpause(DkrClient *client, const char *container, const SprWait *wait,
                           GError **error);

/* One that is stopped already is success. grace_s: the engine's wait between TERM and KILL. */
bool dkr_container_stop(DkrClient *client, const char *container, int grace_s, const SprWait *wait,
                        GError **error);

/* Kills and removes it with its anonymous volumes; one that is gone, or going, is success. */
bool dkr_container_remove(DkrClient *client, const char *container, const SprWait *wait,
                          GError **error);

/* The same, and whether the engine knew it still. */
bool dkr_container_remove_found(DkrClient *client, const char *container, const SprWait *wait,
                                bool *ret_was_there, GError **error);

/* The same unless it runs: then it is SPR_E_CONFLICT. */
bool dkr_container_remove_idle(DkrClient *client, const char *container, const SprWait *wait,
                               GError **error);

/* What it uses at this moment; an engine before API 1.41 takes some seconds to tell. */
bool dkr_container_stats(DkrClient *client, const char *container, const SprWait *wait,
                         json_t **ret_object, GError **error);

/* The last lines it printed, both streams, at most a few KiB; "" when there are none. */
char *dkr_container_last_output(DkrClient *client, const char *container, const SprWait *wait);
