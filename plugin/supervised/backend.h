/*
 * What runs the sandboxes of a provider: the part of the state machine (sandbox.h) that each
 * provider has of its own, called by it alone. start, stop and remove with the transition held, the
 * rest at any time. Blocking; any thread.
 */
#pragma once

#include "base/wipe.h"
#include "supervised/own.h"

typedef enum { /* equal to SPROV_START_* */
    DKR_START_CREATED = 1,
    DKR_START_CONNECTED = 2
} DkrStartOutcome;

/* What only the caller of a start can do. */
typedef struct {
    /* The image of the options' template, built if it has to be; asked once per start that
     * creates, and once more where that image was removed before it was used. *ret_workdir is the
     * directory of its own, or stays NULL. */
    bool (*resolve_template)(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                             char **ret_image, char **ret_workdir, GError **error);
    void (*progress)(void *ctx, const char *json);
    /* For an image that has to be pulled; false: anonymously. */
    bool (*login)(void *ctx, const char *registry, SprSecret **ret_user, SprSecret **ret_password);
    void *ctx;
} DkrStartHooks;

/* What is said of a life that is believed in. */
typedef enum {
    DKR_LIFE_RUNS,
    DKR_LIFE_PAUSED,
    DKR_LIFE_RESTARTS,
    DKR_LIFE_OVER,
    DKR_LIFE_UNKNOWN
} DkrLifeState;

/* *error is set for DKR_LIFE_UNKNOWN. */
DkrLifeState dkr_backend_ask(const DkrContext *context, const DkrLife *life, const SprWait *wait,
                             GError **error);

/* What a failure in the life says of it; DKR_LIFE_RUNS where it says nothing. */
DkrLifeState dkr_backend_judge(const DkrContext *context, const DkrLife *life,
                               const GError *failure, const SprWait *wait);

/* Finds what has this id and makes it run. *ret_life stays NULL when there is none. */
bool dkr_backend_connect(const DkrContext *context, const DkrSandboxOptions *options,
                         const SprWait *wait, DkrLife **ret_life, GError **error);

/* Makes it. *ret_outcome: CONNECTED when another process made it meanwhile. */
bool dkr_backend_create(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrStartHooks *hooks, const SprWait *wait, DkrLife **ret_life,
                        DkrStartOutcome *ret_outcome, GError **error);

/* The life of what runs already, NULL without one. */
bool dkr_backend_find_running(const DkrContext *context, const DkrSandboxOptions *options,
                              const SprWait *wait, DkrLife **ret_life, GError **error);

/* life (may be NULL) is what the handle knows. That there is nothing is success. */
bool dkr_backend_stop(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const SprWait *wait, GError **error);
bool dkr_backend_remove(const DkrContext *context, const DkrSandboxOptions *options,
                        const DkrLife *life, const SprWait *wait, GError **error);

/* JSON of schema/info.json; g_free() it. status is the last that the handle saw. describe asks
 * nobody; of info *ret_json stays NULL when there is none. */
char *dkr_backend_describe(const DkrSandboxOptions *options, const DkrLife *life,
                           const char *status);
bool dkr_backend_info(const DkrContext *context, const DkrSandboxOptions *options,
                      const DkrLife *life, const char *status, const SprWait *wait, char **ret_json,
                      GError **error);

/* One such object for each sandbox there is, with or without a handle. */
bool dkr_backend_list(const DkrContext *context, void (*each)(void *ctx, const char *json),
                      void *ctx, const SprWait *wait, GError **error);
