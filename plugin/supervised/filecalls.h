/*
 * What a host may do with the files of a running container, by the best way there is: its
 * supervisor, or what its provider has where there is none and can keep the promise.
 * Paths are absolute or begin in the working directory. Blocking; any number at once.
 */
#pragma once

#include "supervised/own.h"

/* Hands max_bytes (0: all) from offset on to sink. */
bool dkr_files_read(const DkrContext *context, const DkrLife *life, const char *path,
                    guint64 offset, guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                    DkrReadResult *ret_result, GError **error);

void dkr_file_write_clear(DkrFileWrite *file);

/* Its failure: what ended the call came before it. */
void dkr_file_write_not_reached(DkrFileWrite *file);

/* Each as a whole or not at all, in their order; a failure keeps none of the others from being
 * tried, unless nothing more can be done. False with the error of the first that failed. */
bool dkr_files_write(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                     gsize count, const SprWait *wait, GError **error);

enum { /* equal to SPROV_FILES_* */
    DKR_FILES_RECURSIVE = 1u << 0,
    DKR_FILES_NO_FOLLOW = 1u << 1,
    DKR_FILES_MISSING_OK = 1u << 2
};

/* Takes one JSON object, see ext/files.h. */
typedef void (*DkrFileJsonFn)(void *ctx, const char *json);

/* These need a supervisor: SPR_E_UNSUPPORTED, reason "no-supervisor". */
bool dkr_files_stat(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                    DkrFileJsonFn emit, void *ctx, const SprWait *wait, GError **error);
bool dkr_files_list(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                    DkrFileJsonFn emit, void *ctx, const SprWait *wait, GError **error);
bool dkr_files_make_directory(const DkrContext *context, const DkrLife *life, const char *path,
                              guint mode, guint flags, const SprWait *wait, GError **error);
bool dkr_files_remove(const DkrContext *context, const DkrLife *life, const char *path, guint flags,
                      const SprWait *wait, GError **error);
bool dkr_files_rename(const DkrContext *context, const DkrLife *life, const char *from,
                      const char *to, const SprWait *wait, GError **error);

/* A tar from source into directory, as user (NULL: the sandbox's); or of path to sink. */
bool dkr_files_put(const DkrContext *context, const DkrLife *life, const char *directory,
                   const char *user, const DkrSource *source, const SprWait *wait, GError **error);
bool dkr_files_get(const DkrContext *context, const DkrLife *life, const char *path,
                   const DkrSink *sink, const SprWait *wait, GError **error);
