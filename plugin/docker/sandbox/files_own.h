/*
 * The steps of writing files without a supervisor: what files.c does with one, and filebatch.c with
 * several at once. Internal to the two.
 */
#pragma once

#include "sandbox/fileplan.h"
#include "sandbox/files.h"
#include "supervised/run.h"

/* Counts what a source gives. */
typedef struct {
    const DkrSource *source;
    guint64 announced; /* UINT64_MAX: unknown; the source itself keeps to it */
    guint64 count;
} DkrFileMeter;

/* Whether the archive API sees the file as the sandbox does. Engines cannot write names that are no
 * UTF-8 into a tar. */
bool dkr_file_is_in_archive(const DkrLife *life, const DkrFileFacts *facts);

/* No rename can replace it. */
bool dkr_file_must_be_in_place(const DkrFileFacts *facts);
bool dkr_file_check_may_write(const DkrFileFacts *facts, const char *path, bool in_place,
                              GError **error);

/* The mode that was wished for (0: none), the file's, or that of a new one. */
guint dkr_file_mode(const DkrFileFacts *facts, guint wished);

/* A new name beside the file. g_free() it. */
char *dkr_file_temporary(const DkrFileFacts *facts);

/* The bytes under the temporary name, by the archive API. */
bool dkr_file_put_temporary(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                            const char *temporary, guint mode, DkrFileMeter *meter,
                            const SprWait *wait, GError **error);
void dkr_file_remove_temporary(const DkrVenue *venue, const DkrLife *life, const char *path,
                               bool by_archive, const SprWait *call);

/* $1 the bytes, $2 where they go ("": they are there), $3 their count, $4 mode and $5 owner ("":
 * as they are). The size is checked where the bytes lie: nothing is acknowledged that did not
 * arrive. What it prints on failure is the reason. */
extern const char dkr_file_commit_script[];
bool dkr_file_check_step(const GByteArray *output, int exit_code, GError **error);

/* Replaces or makes one file, of which the facts are known. size is what source gives, UINT64_MAX
 * when unknown; mode 0 keeps the old one, or 0644. Until the last rename the old bytes stay; where
 * no rename can replace the file (it is a mount of its own, or its directory takes no new file) it
 * is written in place. */
bool dkr_file_write_probed(const DkrVenue *venue, const DkrLife *life, const DkrFileFacts *facts,
                           const char *path, guint mode, guint64 size, const DkrSource *source,
                           const SprWait *wait, GError **error);
