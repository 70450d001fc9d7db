/*
 * The options of a local sandbox, and the configuration of the provider. Glue parses them; what
 * this provider cannot keep is refused by name. Immutable after parsing, so any thread may read.
 */
#pragma once

#include "local/mounts.h"
#include "options/common.h"

#define LOCAL_BUBBLEWRAP "bubblewrap"
#define LOCAL_NO_ISOLATION "none"
#define LOCAL_DEFAULT_DIRECTORY "/workspace"

struct DkrSandboxOptions {
    char *id;
    bool id_is_generated;
    char *name;
    DkrPairs env;
    DkrPairs labels;
    char *working_directory; /* NULL: the default */
    char *user;              /* the provider's own, or NULL */
    char *instructions;      /* NULL: the default text */
    char *isolation;         /* LOCAL_BUBBLEWRAP or LOCAL_NO_ISOLATION */
    char *network;           /* "none" or "host" */
    bool network_is_set;
    char *hostname;  /* NULL: the id's beginning */
    char **cap_drop; /* all are dropped anyway */
    LocalMounts mounts;
    char *supervisor, *transport;
    DkrOptInt timeout;
    DkrOptInt stop_timeout;
    DkrOptInt memory;     /* 0: no limit */
    DkrOptInt pids_limit; /* 0 or -1: no limit */
    DkrOptBool auto_start;
    DkrOptBool init, privileged;
};

typedef struct {
    char *runtime_dir; /* absolute; NULL: the default */
} LocalConfig;

bool local_config_parse(const char *json, LocalConfig **ret_config, GError **error);
void local_config_free(LocalConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LocalConfig, local_config_free)
