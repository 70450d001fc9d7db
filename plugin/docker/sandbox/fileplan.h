/*
 * Where a path of the sandbox really leads, found out by a small shell script that runs as the
 * sandbox's user, and what follows from it for a transfer. The script's text, the reading of what
 * it prints and the decisions are pure; files.c runs them.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* $1 path (absolute), $2 "read" or "write". Prints DkrFileFacts in NUL-terminated fields. A write
 * makes the missing directories above the path. */
extern const char dkr_file_probe_script[];

typedef enum {
    DKR_FILE_MISSING, /* nothing there, and for a write: may be made */
    DKR_FILE_REGULAR
} DkrFileKind;

typedef struct {
    DkrFileKind kind;
    char *path;      /* without links in it */
    char *directory; /* the one it is in, likewise */
    guint mode;      /* of the file, when there is one, as the next four */
    gint64 uid;
    gint64 gid;
    guint64 size;
    gint64 mtime_s;
    bool may_write;           /* into the file itself */
    bool may_write_directory; /* files may be made and renamed beside it */
    gint64 user_uid;          /* of the sandbox's user */
    gint64 user_gid;
    char *mountinfo; /* /proc/self/mountinfo */
} DkrFileFacts;

/* From the script's output and exit code; the error is the answer for the path: not found, a
 * directory, no regular file, not a directory above it, denied, too many links. shown is the path
 * for messages. */
bool dkr_file_facts_parse(const char *output, gsize size, int exit_code, const char *shown,
                          DkrFileFacts *ret_facts, GError **error);
void dkr_file_facts_clear(DkrFileFacts *facts);

/* Whether the archive API sees path as the sandbox does: it lies on the root or on one of mounts
 * (volumes and binds; NULL-terminated), and nothing was mounted over that inside. */
bool dkr_file_in_archive(const char *mountinfo, const char *path, const char *const *mounts);

/* Whether path is a mount of its own, which no rename can replace. */
bool dkr_file_is_mount(const char *mountinfo, const char *path);

/* Whether the file system at path is mounted read-only. */
bool dkr_file_is_read_only(const char *mountinfo, const char *path);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DkrFileFacts, dkr_file_facts_clear)
