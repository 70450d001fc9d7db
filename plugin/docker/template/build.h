/*
 * Builds the image of a template, or finds it built. What it needs of an engine are three
 * functions, so that it is tested without one. One call is one build on one thread; calls may run
 * at the same time.
 */
#pragma once

#include "base/wait.h"
#include "template/recipe.h"

typedef struct {
    char *id;          /* the engine's: "sha256:..." */
    char *working_dir; /* of its configuration; may be empty */
    bool cached;       /* it was there and nothing was built */
} DkrTemplateImage;

void dkr_template_image_free(DkrTemplateImage *image);

/* Takes the next bytes of an answer; false with *error set gives up. */
typedef bool (*DkrChunkFn)(void *ctx, const void *data, gsize size, GError **error);

typedef struct {
    void *ctx;
    /* *ret_image is NULL when the engine has none of that name. */
    bool (*inspect)(void *ctx, const char *name, const SprWait *wait, DkrTemplateImage **ret_image,
                    GError **error);
    /* Sees to it that the base image is on the engine: a build without a session cannot pull from
     * a registry that asks for a token, as most do even of strangers. */
    bool (*ensure_base)(void *ctx, const char *name, const SprWait *wait, GError **error);
    /* POST of a tar; true at the clean end of an answer with status 200. */
    bool (*post_build)(void *ctx, const char *path, GBytes *tar, const SprWait *wait,
                       DkrChunkFn on_chunk, void *chunk_ctx, GError **error);
} DkrBuildEngine;

typedef struct {
    bool force;                                       /* do not look, and use no cached layer */
    const json_t *labels;                             /* object of strings for the image, or NULL */
    void (*on_progress)(void *ctx, const char *json); /* schema/progress.json; may be NULL */
    void *progress_ctx;
} DkrBuildRequest;

/* Success needs the image's id from the engine and an inspect that finds the tag. A failing step is
 * SPR_E_BUILD with the detail {"step", "command", "exitCode", "output"}, each null when unknown. */
bool dkr_template_build(const DkrRecipe *recipe, const DkrBuildRequest *request,
                        const DkrBuildEngine *engine, const SprWait *wait,
                        DkrTemplateImage **ret_image, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrTemplateImage, dkr_template_image_free)
