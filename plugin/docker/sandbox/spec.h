/*
 * What a sandbox's options become on the engine: the body of POST /containers/create, the API
 * version they need, and the check that the engine applied them. Called by start when it creates a
 * container; pure, any thread.
 */
#pragma once

#include "options/sandbox.h"

#include <jansson.h>

/* How the supervisor is in the container, see placement.h. */
typedef struct {
    const char *volume;      /* with its program */
    const char *id;          /* of the program, for the label sprov.supervisor */
    bool is_main;            /* the container's main process, before entrypoint and command */
    char *const *entrypoint; /* the image's, NULL-terminated; may be NULL */
    const char *socket;      /* of the host, which it connects to, see direct.h; NULL: none */
} DkrSpecSupervisor;

typedef struct {
    const char *image;
    const char *workdir;                 /* NULL: not sent, the image's own holds */
    const char *owner;                   /* label sprov.owner */
    const char *version;                 /* label sprov.version */
    const char *created;                 /* label sprov.created, RFC 3339 */
    const DkrSpecSupervisor *supervisor; /* NULL: none */
} DkrSpecContext;

/* The body, to be freed with g_free(). Options that were not given are not in it. NULL with error
 * only when memory ran out or a text of ctx is no UTF-8. */
char *dkr_spec_create_body(const DkrSandboxOptions *options, const DkrSpecContext *ctx,
                           GError **error);

/* Where the sandbox sees the host's socket. */
char *dkr_spec_socket_inside(const char *socket);

/* False with SPR_E_UNSUPPORTED when an option needs a newer API than 1.<api_minor>: an older
 * engine would ignore it in silence. To be asked before anything is created. */
bool dkr_spec_check_api(const DkrSandboxOptions *options, int api_minor, GError **error);

/* One option that a container does not have as it was asked for. */
typedef struct {
    char *path;  /* of the option: "mounts[1].readOnly" */
    char *asked; /* JSON, or "nothing"; NULL for what is in no message: variables, labels, words */
    char *got;
    bool guards;  /* something stands on it: a limit, a mount, a right */
    bool is_used; /* the calls of who asks have it all the same */
} DkrSpecDifference;

void dkr_spec_difference_free(DkrSpecDifference *difference);

/* What names alone do not tell of images; each may be NULL, where the engine had no answer. */
typedef struct {
    const char *asked_id; /* of that which was asked for, now */
    const json_t *image;  /* of the container: GET /images/<id>/json */
} DkrSpecImages;

/* The name of the image or template that was asked for; NULL: none, or one that is not known before
 * it is built. */
const char *dkr_spec_asked_image(const DkrSandboxOptions *options);

/* DkrSpecDifference in the order of the options; inspect is GET /containers/<id>/json, images may
 * be NULL. What was not asked for is not compared, and what an engine fills in or writes otherwise
 * is no difference. */
GPtrArray *dkr_spec_compare(const DkrSandboxOptions *options, const json_t *inspect,
                            const DkrSpecImages *images);

/* False with SPR_E_UNSUPPORTED when a container that was just made differs in what guards
 * something. */
bool dkr_spec_verify(const DkrSandboxOptions *options, const json_t *inspect, GError **error);
