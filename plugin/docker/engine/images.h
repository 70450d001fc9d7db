/*
 * Images of the Engine API: looking one up and pulling one that is missing. Any thread.
 */
#pragma once

#include "engine/client.h"

/* SPR_E_NOT_FOUND, reason "image-not-found", when the engine has none of that name. */
bool dkr_image_inspect(DkrClient *client, const char *image, const SprWait *wait,
                       json_t **ret_object, GError **error);

/* The images of a repository, any tag. */
bool dkr_image_list(DkrClient *client, const char *repository, const SprWait *wait,
                    json_t **ret_array, GError **error);

/* The images without a name that carry a label, "name=value" without quotes in it. */
bool dkr_image_list_dangling(DkrClient *client, const char *label, const SprWait *wait,
                             json_t **ret_array, GError **error);

/* One that is gone is success; one that a container uses is SPR_E_CONFLICT, naming it. */
bool dkr_image_remove(DkrClient *client, const char *image, const SprWait *wait, GError **error);

/* Called with one progress object (schema/progress.json, type "pull") as JSON text. */
typedef void (*DkrProgressFn)(void *ctx, const char *json);

/* Pulls it; a tag that is not named means latest, a platform of NULL the engine's own, an auth of
 * NULL (registry.h) anonymously. Success needs the clean end of a stream without an error in it.
 * progress may be NULL. */
bool dkr_image_pull(DkrClient *client, const char *image, const char *platform,
                    const SprSecret *auth, const SprWait *wait, DkrProgressFn progress,
                    void *progress_ctx, GError **error);
