/*
 * The options of one sandbox: what create() is given as JSON, checked and with its defaults. Glue
 * parses them, sandbox/ reads them. Immutable after parsing, so any thread may read; only the
 * owner frees.
 */
#pragma once

#include "options/common.h"
#include "options/provider.h"

#define DKR_DEFAULT_IMAGE "node:22-slim"
#define DKR_DEFAULT_WORKING_DIRECTORY "/workspace"
#define DKR_DEFAULT_TIMEOUT_MS (300 * 1000)
#define DKR_DEFAULT_STOP_TIMEOUT_S 10 /* the engine's own */
#define DKR_ID_MAX_BYTES 255
#define DKR_TEMPLATE_FROM_CALLBACK "callback"

/* What the provider mounts for itself: no mount of the user's may be here or below. */
#define DKR_RESERVED_DIRECTORY "/.sprov"
#define DKR_RESERVED_VOLUME_PREFIX "sprov-supervisor-"

typedef enum {
    DKR_MOUNT_VOLUME,
    DKR_MOUNT_BIND,
    DKR_MOUNT_TMPFS
} DkrMountType;

typedef struct {
    DkrMountType type;
    char *type_name; /* "volume", "bind", "tmpfs" */
    char *source;    /* NULL: an anonymous volume, or a tmpfs */
    char *target;    /* absolute */
    DkrOptBool read_only;
    char *subpath;             /* volume: relative, without ".."; or NULL */
    DkrOptBool no_copy;        /* volume */
    DkrOptBool create_subpath; /* volume: make the subpath when it is missing */
    DkrPairs labels;           /* volume */
    char *propagation;         /* bind; or NULL */
    DkrOptInt size_bytes;      /* tmpfs */
    DkrOptInt mode;            /* tmpfs */
} DkrMount;

typedef struct {
    DkrMount *items;
    size_t count;
} DkrMounts;

typedef struct {
    char *name;
    DkrOptInt soft; /* -1: unlimited */
    DkrOptInt hard;
} DkrUlimit;

typedef struct {
    DkrUlimit *items;
    size_t count;
} DkrUlimits;

typedef struct {
    gint64 count; /* -1: all; 0: none, or those of ids */
    char **ids;   /* NULL when they are not named */
} DkrGpus;

struct DkrSandboxOptions {
    char **given; /* the keys that were in the JSON, also where they hold a default or nothing */
    char *id;
    bool id_is_generated;
    char *name; /* of the container; NULL: made from the id, see options/names.h */

    char *image;         /* NULL only when there is a template */
    bool image_is_set;   /* it is not the default's */
    char *template_id;   /* "template" as a string: an id, or DKR_TEMPLATE_FROM_CALLBACK */
    char *template_json; /* "template" as an object: its text */
    char *template_made; /* the id that it comes to; NULL: not known before it is built */
    char *platform;      /* "os/arch[/variant]"; NULL: the engine's */
    char *pull_policy;   /* "missing", "always" or "never"; never NULL */
    char **entrypoint;   /* NULL: the image's; empty: none */
    char **command;      /* empty only behind an entrypoint of one's own */
    bool command_is_set; /* it is not the keep-alive of the defaults */
    DkrPairs env;
    char *working_directory; /* NULL when not given, see dkr_sandbox_options_workdir() */
    char *user;              /* NULL: the image's */
    DkrPairs labels;         /* none of them reserved */

    DkrPairs volumes; /* source, "/target[:options]" */
    DkrPairs tmpfs;   /* target, options */
    DkrMounts mounts;

    char *network;
    DkrOptBool privileged; /* its value is false when not set */
    char *hostname;
    char **dns;           /* addresses; NULL when not given */
    DkrPairs extra_hosts; /* name, address or "host-gateway" */
    DkrPairs ports;       /* "port" or "port/protocol", "port" or "address:port" of the machine */
    char **devices;       /* "/dev/on/host[:/dev/in/sandbox[:rwm]]"; NULL when not given */
    DkrGpus gpus;
    char *runtime;
    DkrOptInt memory;
    DkrOptInt memory_swap;
    DkrOptInt shm_size;
    DkrOptInt nano_cpus; /* of the option cpus */
    DkrOptInt cpu_shares;
    DkrOptInt cpu_quota;
    DkrOptInt cpu_period;
    DkrOptInt pids_limit;
    DkrUlimits ulimits;
    DkrOptBool init; /* its value is true when not set */
    DkrOptBool readonly_rootfs;
    char **cap_drop; /* NULL when not given, as the next two */
    char **cap_add;
    char **security_opt;

    DkrOptInt stop_timeout; /* seconds */
    char *supervisor;       /* "auto", "required" or "off"; never NULL */
    char *transport;        /* to it: "auto", "socket" or "stream"; never NULL */
    DkrOptInt timeout;      /* milliseconds for each command; 0: none; its value is never unset */
    DkrOptBool auto_start;  /* its value is true when not set */
    char *instructions;     /* NULL: the default text; may be empty */
    DkrProviderConfig *docker_options; /* which engine it is on; NULL: the provider's */
};

bool dkr_sandbox_options_has(const DkrSandboxOptions *options, const char *key);

/* A key of ports as engines write it: with its protocol, and no zeros before it. The
 * caller frees it. */
char *dkr_sandbox_options_port(const char *key);

/* Where commands run: the directory of the options, else the template's (may be NULL), else
 * DKR_DEFAULT_WORKING_DIRECTORY. */
const char *dkr_sandbox_options_workdir(const DkrSandboxOptions *options,
                                        const char *template_workdir);

/* Seconds between the request to end and the kill when it is stopped. */
int dkr_sandbox_options_stop_s(const DkrSandboxOptions *options);
