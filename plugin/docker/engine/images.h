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

typedef struct {
    const char *image;      /* a tag that is not named means latest */
    const char *platform;   /* NULL: the engine's own */
    const SprSecret *auth;  /* of engine/registry.h, or NULL */
    DkrProgressFn progress; /* may be NULL */
    void *progress_ctx;
} DkrPull;

/* Success needs the clean end of a stream without an error in it. */
bool dkr_image_pull(DkrClient *client, const DkrPull *pull, const SprWait *wait, GError **error);
