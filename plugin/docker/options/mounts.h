/*
 * The rules for options that put something into the file tree of a container: mounts, volumes and
 * tmpfs. For the table of options/sandbox.c alone; pure, any thread.
 */
#pragma once

#include "options/json.h"
#include "options/sandbox.h"

void dkr_mounts_clear(DkrMounts *mounts);

/* A reader for a member of type DkrMounts. */
bool dkr_mounts_read(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                     void *target, GError **error);

/* For DkrJsonField.wrong. */
const char *dkr_volume_wrong(const char *source, const char *place);
const char *dkr_tmpfs_wrong(const char *target, const char *options);

/* Refuses two entries with one target: the engine's answer would come late, or be a guess. */
bool dkr_mounts_check_targets(const DkrSandboxOptions *options, GError **error);
