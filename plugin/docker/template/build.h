/*
 * Builds the image of a template, or finds it built. What it needs of an engine are three
 * functions, so that it is tested without one. One call is one build on one thread; calls may run
 * at the same time.
 */
#pragma once

#include "base/log.h"
#include "base/wait.h"
#include "buildkit/service.h"
#include "engine/registry.h"
#include "template/buildreport.h"
#include "template/secrets.h"

typedef struct {
    char *id;          /* the engine's: "sha256:..." */
    char *working_dir; /* of its configuration; may be empty */
    bool cached;       /* it was there and nothing was built */
} DkrTemplateImage;

void dkr_template_image_free(DkrTemplateImage *image);
DkrTemplateImage *dkr_template_image_copy(const DkrTemplateImage *image);

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
    /* Opens a session that lives until close_session(), answered while post_build() waits; services
     * is copied. SPR_E_UNSUPPORTED when the engine has none. */
    bool (*open_session)(void *ctx, const DkrServices *services, const SprWait *wait, char **ret_id,
                         GError **error);
    void (*close_session)(void *ctx);
    /* POST of a tar; true at the clean end of an answer with status 200. */
    bool (*post_build)(void *ctx, const char *path, GBytes *tar, const SprWait *wait,
                       DkrChunkFn on_chunk, void *chunk_ctx, GError **error);
    /* Removes images that lost this name to a newer one, as far as nobody uses them. */
    void (*sweep)(void *ctx, const char *name);
} DkrBuildEngine;

/* What a build asks of its host; either function may be NULL. */
typedef struct {
    const char *name; /* equal for hosts that give the same answers, for joined builds */
    void *ctx;
    DkrAskSecret secret;
    DkrLoginFn login;
} DkrBuildHost;

typedef struct {
    bool force;          /* do not look, and use no cached layer */
    bool pull;           /* ask the registry for a newer base */
    const char *network; /* of the steps: "default", "host", "none"; NULL: the engine's choice */
    DkrBuildHost host;
    const SprLog *log;       /* may be NULL */
    const json_t *labels;    /* object of strings for the image, or NULL */
    DkrReportFn on_progress; /* may be NULL */
    void *progress_ctx;
} DkrBuildRequest;

/* The image, if it is built; *ret_image is NULL when it is not. */
bool dkr_template_find(const DkrRecipe *recipe, const DkrBuildEngine *engine, const SprWait *wait,
                       DkrTemplateImage **ret_image, GError **error);

/* Success needs the image's id from the engine and an inspect that finds the tag. A failing step is
 * SPR_E_BUILD with the detail {"step", "command", "exitCode", "output"}, each null when unknown. */
bool dkr_template_build(const DkrRecipe *recipe, const DkrBuildRequest *request,
                        const DkrBuildEngine *engine, const SprWait *wait,
                        DkrTemplateImage **ret_image, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrTemplateImage, dkr_template_image_free)
