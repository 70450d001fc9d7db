/*
 * Who made what on an engine, and when: the labels of containers, volumes and images. The owner is
 * "<boot id>:<pid>:<start time>:<pid namespace>" of the process. Any thread.
 */
#pragma once

#include <glib.h>
#include <jansson.h>

#define DKR_LABEL_VERSION "sprov.version"
#define DKR_LABEL_CREATED "sprov.created"
#define DKR_LABEL_OWNER "sprov.owner"

/* This process; read from /proc at the first call and kept. */
const char *dkr_owner(void);

/* This moment, RFC 3339 in UTC; g_free() it. */
char *dkr_owner_created(void);

/* All three labels of what is made now by this version of the plugin. */
json_t *dkr_owner_labels(const char *version);

typedef enum {
    DKR_OWNER_UNKNOWN, /* of another boot, machine or pid namespace, or not told */
    DKR_OWNER_LIVES,
    DKR_OWNER_GONE
} DkrOwnerState;

/* owner: the label's value, or NULL. */
DkrOwnerState dkr_owner_state(const char *owner);
