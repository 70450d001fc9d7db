/*
 * The host's folder for sockets (runtimeDir): nobody else enters it, and below it each sandbox has
 * a folder of random name that is mounted into it, read-only. Whether the engine takes such a mount
 * at all is remembered here, for all sandboxes of a provider. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct DkrRuntime DkrRuntime;

/* directory: runtimeDir (base/statedir.h). engine: its address, by which folders of different ones
 * are told apart. Touches nothing. */
DkrRuntime *dkr_runtime_new(const char *directory, const char *engine);
void dkr_runtime_free(DkrRuntime *runtime);

const char *dkr_runtime_directory(const DkrRuntime *runtime);

/* A new folder for one sandbox, mode 0755. SPR_E_DENIED when the directory is not this user's
 * alone, SPR_E_INVALID_ARGUMENT when a socket below it has too long a path. */
bool dkr_runtime_make_folder(const DkrRuntime *runtime, char **ret_folder, GError **error);

/* Makes the folder of a sandbox again where it is gone: without it its container can't start.
 * folder: as make_folder() named it once, maybe in another process with another directory. */
bool dkr_runtime_restore_folder(const char *folder, GError **error);

/* Removes it with all that is in it; what is no such folder, or not this user's, stays. False when
 * it is still there. */
bool dkr_runtime_remove_folder(const char *folder);

/* The folders that were made for sandboxes on this engine; g_strfreev() them. */
char **dkr_runtime_folders(const DkrRuntime *runtime);

/* When a folder was last changed, in seconds since 1970; 0 when it is none. */
gint64 dkr_runtime_changed(const char *folder);

/* Whether a host listens in a folder. */
bool dkr_runtime_is_listened_in(const char *folder);

/* Sandboxes are created without the mount from now on. The first reason stays. */
void dkr_runtime_refuse(DkrRuntime *runtime, const char *reason);

/* The reason, NULL when none is known; lives as long as runtime. */
const char *dkr_runtime_refused(DkrRuntime *runtime);
