/*
 * The two uses the plugin has for tar: taking the first regular file out of a stream, and putting
 * one file into a stream whose bytes come from elsewhere. Everything streams; nothing holds a
 * whole file. The only code that sees libarchive. One object per transfer, one thread at a time.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    guint mode; /* permission bits */
    gint64 uid;
    gint64 gid;
    guint64 size;
    gint64 mtime_ns;
    bool is_directory; /* else a regular file; when written only */
} SprTarEntry;

/* A time since 1970 in nanoseconds; one that 64 bits can't hold is as far away as they are sure to.
 */
gint64 spr_tar_time(gint64 seconds, gint64 nanoseconds);

/* A function of the tar library, to tell which one was loaded. */
const void *spr_tar_library(void);

/* ------------------------------------------------------------------------- reading */

typedef struct SprTarReader SprTarReader;

/* Hands out the next block of the stream; *ret_size 0 is its end. */
typedef bool (*SprTarPullFn)(void *ctx, const void **ret_data, gsize *ret_size, GError **error);

SprTarReader *spr_tar_reader_new(SprTarPullFn pull, void *ctx);

/* Goes to the first entry. SPR_E_IO when there is none or it is no regular file. */
bool spr_tar_reader_open(SprTarReader *reader, SprTarEntry *ret_entry, GError **error);

/* The next bytes of that file, valid until the next call; *ret_size 0 is its end. */
bool spr_tar_reader_read(SprTarReader *reader, const void **ret_data, gsize *ret_size,
                         GError **error);

void spr_tar_reader_free(SprTarReader *reader);

/* ------------------------------------------------------------------------- writing */

/* Hands out bytes of the file; *ret_size 0 with *ret_again_fd below 0 is its end, with a
 * descriptor there it means "poll that and ask again". */
typedef bool (*SprTarFillFn)(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                             int *ret_again_fd, GError **error);

typedef struct SprTarWriter SprTarWriter;

/* A tar of one file, or one directory. name is short and relative. */
bool spr_tar_writer_new(const char *name, const SprTarEntry *entry, SprTarFillFn fill, void *ctx,
                        SprTarWriter **ret_writer, GError **error);

/* Puts a directory before all that is in it so far. Before the first read. */
bool spr_tar_writer_prepend_directory(SprTarWriter *writer, const char *name,
                                      const SprTarEntry *entry, GError **error);

/* Of the tar as a whole. */
guint64 spr_tar_writer_size(const SprTarWriter *writer);

/* The next bytes of the tar, in the shape of a SprTarFillFn itself. A fill that gives more or
 * fewer bytes than entry->size is SPR_E_INVALID_ARGUMENT, reason "source-size". */
bool spr_tar_writer_read(void *writer, void *buffer, gsize capacity, gsize *ret_size,
                         int *ret_again_fd, GError **error);

void spr_tar_writer_free(SprTarWriter *writer);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprTarReader, spr_tar_reader_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprTarWriter, spr_tar_writer_free)
