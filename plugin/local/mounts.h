/*
 * What a sandbox is given beside its own folders: folders and files of the host, and memory. From
 * options to records, and from those to bubblewrap's arguments. Pure but for local_mounts_check();
 * any thread.
 */
#pragma once

#include "options/json.h"

typedef struct {
    char *type_name; /* "bind" or "tmpfs" */
    char *source;    /* of a bind */
    char *target;
    DkrOptBool read_only;
    DkrOptInt size_bytes; /* of memory */
    DkrOptInt mode;
    size_t index; /* in the option "mounts" */
} LocalMount;

typedef struct {
    LocalMount *items;
    size_t count;
    bool is_given; /* as options, empty or not */
} LocalMounts;

void local_mounts_clear(LocalMounts *mounts);
void local_mounts_copy(const LocalMounts *from, LocalMounts *to);
bool local_mounts_equal(const LocalMounts *a, const LocalMounts *b);

/* Readers of the options "mounts" and "tmpfs" for a member of type LocalMounts, which both add to;
 * a target may be there once. */
bool local_mounts_read(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                       void *target, GError **error);
bool local_mounts_read_tmpfs(const json_t *value, const DkrJsonPath *path,
                             const DkrJsonField *field, void *target, GError **error);

/* For DkrJsonField.wrong: where nothing may be mounted over what the sandbox sees already. */
const char *local_wrong_directory(const char *key, const char *path);

/* As a record keeps them. */
json_t *local_mounts_to_json(const LocalMounts *mounts);
void local_mounts_from_json(json_t *array, LocalMounts *ret_mounts);

/* SPR_E_NOT_FOUND when the host has not what one of them shows. */
bool local_mounts_check(const LocalMounts *mounts, GError **error);

void local_mounts_add(const LocalMounts *mounts, GStrvBuilder *argv);
