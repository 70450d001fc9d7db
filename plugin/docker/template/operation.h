/*
 * One operation of a template definition: read from JSON, checked against the limits, and laid
 * out for the renderers. Immutable once made and refcounted, so that templates with a common
 * beginning can share it; any thread.
 */
#pragma once

#include "base/error.h"
#include "template/place.h"

typedef enum {
    DKR_SET_WORKDIR,
    DKR_SET_ENVS,
    DKR_RUN_CMD,
    DKR_RUN_WITH_SECRETS,
    DKR_APT_INSTALL,
    DKR_PIP_INSTALL,
    DKR_NPM_INSTALL
} DkrMethod;

typedef struct {
    const char *name;
    const char *value;
} DkrTemplateEnv;

/* All text is UTF-8 without NUL and belongs to args. */
typedef struct {
    DkrMethod method;
    guint index;  /* in the whole list */
    json_t *args; /* as the identity hashes them */

    const char **items; /* commands or packages; NULL: packages were left out */
    gsize n_items;
    const char *path;     /* working directory, or output of a secret step */
    DkrTemplateEnv *envs; /* sorted by UTF-16 code unit */
    gsize n_envs;
    const char **secrets; /* sorted */
    gsize n_secrets;
    const json_t *options; /* of an install, or NULL */
    bool literal;          /* setEnvs: $NAME stays as it is */
    bool exact;            /* runWithSecrets: trailing line breaks of a secret are kept */
} DkrOperation;

/* json is the member of "operations" at index. */
bool dkr_operation_parse(guint index, const json_t *json, DkrOperation **ret_operation,
                         GError **error);

/* The operation as in "operations", owned by the caller. */
json_t *dkr_operation_json(const DkrOperation *operation);

DkrOperation *dkr_operation_ref(DkrOperation *operation);
void dkr_operation_unref(DkrOperation *operation);

const char *dkr_method_name(DkrMethod method);

DkrPlace dkr_operation_place(const DkrOperation *operation, const char *argument, gssize item);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrOperation, dkr_operation_unref)
