/*
 * Getting the supervisor's program to an engine: a volume per build of it, filled once through the
 * archive API of a container that is created and never started. It is looked at before a container
 * that uses it starts, or, where it was whole when this process last looked, after such a start
 * failed. Two hosts may do so at once. A container that the reference made has no such volume:
 * there it goes into the root. Blocking; any thread.
 */
#pragma once

#include "options/sandbox.h"
#include "sandbox/context.h"
#include "supervisor/embedded.h"

#include <jansson.h>

typedef struct {
    bool use;
    bool is_main;       /* else an engine exec starts it */
    SprProgram program; /* for the engine's architecture */
    char *volume;       /* its own for a sandbox that could remount and change a shared one */
    bool volume_is_own;
    char *volume_created; /* NULL before dkr_placement_prepare() */
    char **entrypoint;    /* of the image */
    char *reason;         /* why it is not used */
} DkrPlacement;

void dkr_placement_clear(DkrPlacement *placement);

/* What options, image (GET /images/<name>/json) and the engine's architecture ("": not known, taken
 * from the image) allow; SPR_E_UNSUPPORTED when it is required and cannot be. Pure. */
bool dkr_placement_decide(const DkrSandboxOptions *options, const json_t *image,
                          const char *architecture, DkrPlacement *ret_placement, GError **error);

/* The volume, with its labels, before the container that mounts it. */
bool dkr_placement_prepare(const DkrContext *context, DkrPlacement *placement, const SprWait *wait,
                           GError **error);

/* The program was there and whole when this process last looked, and a start that fails would tell
 * if it were not. */
bool dkr_placement_is_known(const DkrContext *context, const DkrPlacement *placement);

/* The program is there and whole for container, which does not run; *ret_filled (may be NULL): it
 * was not, and has been filled in with the help of image. */
bool dkr_placement_check(const DkrContext *context, const DkrPlacement *placement,
                         const char *container, const char *image, const SprWait *wait,
                         bool *ret_filled, GError **error);

/* Puts the program into a running container that was made without it, unless it is there already,
 * with a folder for its socket. inspect is the engine's record of it. *ret_program is its path
 * inside, or NULL and *ret_reason says why it can't be. False only when the wait was over. */
bool dkr_placement_adopt(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                         char **ret_program, char **ret_reason, GError **error);

/* The name of the volume of its own that the sandbox id has, when it has one. */
char *dkr_placement_own_volume(const char *id);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DkrPlacement, dkr_placement_clear)
