/*
 * Files of a sandbox through its supervisor: each function is one request, one round trip where
 * there is little to carry, and runs as the program's user or as `user` (NULL: the former).
 * Blocking; any number of threads. Beside what is said: SPR_E_TIMEOUT after 30 s without progress,
 * SPR_E_REFUSED when the caller's sink or source asked to stop, SPR_E_IO when the connection broke.
 */
#pragma once

#include "supervisor/client/filecodec.h"
#include "supervisor/client/supervisor.h"

/* Whether the program serves them. */
bool spr_files_are_served(const SprSupervisor *supervisor);

typedef struct {
    const char *path;
    guint64 offset, most; /* most 0: to the end */
} SprFileRange;

/* The bytes go to sink. *ret_entry without its strings, its length the count of bytes. */
bool spr_files_read(SprSupervisor *supervisor, const SprFileRange *range, const SprSink *sink,
                    const SprWait *wait, SprFileEntry *ret_entry, GError **error);

typedef struct {
    const char *path;
    guint mode; /* 0: as it was, 0644 for a new one */
    const SprSource *source;
    int errno_value; /* stored: 0 it is there, ECANCELED it was not reached */
    bool large;      /* or of unknown size: more than a few frames */
} SprFileWrite;

/* Each as a whole or not at all, one after the other. False when one failed, with its error; the
 * others were tried all the same unless a source gave up. */
bool spr_files_write(SprSupervisor *supervisor, SprFileWrite *files, gsize count,
                     const SprWait *wait, GError **error);

/* False: enough. */
typedef bool (*SprFileEntryFn)(void *ctx, const SprFileEntry *entry);

/* flags: SPR_FILE_*. */
bool spr_files_stat(SprSupervisor *supervisor, const char *path, guint flags, SprFileEntryFn take,
                    void *ctx, const SprWait *wait, GError **error);
bool spr_files_list(SprSupervisor *supervisor, const char *path, guint flags, SprFileEntryFn take,
                    void *ctx, const SprWait *wait, GError **error);
bool spr_files_make_directory(SprSupervisor *supervisor, const char *path, guint mode, guint flags,
                              const SprWait *wait, GError **error);
bool spr_files_remove(SprSupervisor *supervisor, const char *path, guint flags, const SprWait *wait,
                      GError **error);
bool spr_files_rename(SprSupervisor *supervisor, const char *from, const char *to,
                      const SprWait *wait, GError **error);

/* For who writes a file beside path by other means: take gets where that is, without links, and the
 * mode and owner that it has to have. */
bool spr_files_locate(SprSupervisor *supervisor, const char *path, SprFileEntryFn take, void *ctx,
                      const SprWait *wait, GError **error);

/* The file name, written beside path by other means, takes its place if it has that size, as at the
 * end of spr_files_write(); else it is removed. Only where spr_files_can_replace(). */
bool spr_files_replace(SprSupervisor *supervisor, const char *path, const char *name, guint64 size,
                       const SprWait *wait, GError **error);
bool spr_files_can_replace(SprSupervisor *supervisor);

/* SPR_E_UNSUPPORTED, reason "user-change", when the program may not become that user. */
bool spr_files_check_user(SprSupervisor *supervisor, const char *user, const SprWait *wait,
                          GError **error);

/* A path and all below it: entry() for each, bytes() for those of the last one. Names are relative
 * and free of "..", and begin with the last part of path. */
bool spr_files_get(SprSupervisor *supervisor, const char *path, const SprFileTaker *taker,
                   const SprWait *wait, GError **error);

/* items: as of spr_file_put_item(), chunks of files between them, END at last. */
bool spr_files_put(SprSupervisor *supervisor, const char *directory, const char *user,
                   const SprSource *items, const SprWait *wait, GError **error);
