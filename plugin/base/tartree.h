/*
 * A tar stream of any number of entries: taken apart one entry after the other, or put together.
 * Everything streams. One object per transfer, one thread at a time.
 */
#pragma once

#include "base/tar.h"

typedef enum {
    SPR_TAR_FILE,
    SPR_TAR_DIRECTORY,
    SPR_TAR_LINK,
    SPR_TAR_HARD_LINK,
    SPR_TAR_PIPE,
    SPR_TAR_CHARACTERS,
    SPR_TAR_BLOCKS,
    SPR_TAR_OTHER
} SprTarKind;

typedef struct {
    SprTarKind kind;
    const char *path;   /* bytes as they are in the archive; until the next entry */
    const char *target; /* of links */
    guint mode;         /* 07777 */
    gint64 uid, gid;
    guint device_major, device_minor;
    guint64 size; /* of a file */
    gint64 mtime_ns;
    bool has_mtime;
} SprTarNode;

/* --------------------------------------------------------------------------- unpacking */

typedef struct SprTarUnpacker SprTarUnpacker;

/* ustar, pax or GNU, not compressed. */
SprTarUnpacker *spr_tar_unpacker_new(SprTarPullFn pull, void *ctx);

/* The next entry; *ret_end when there is none. SPR_E_INVALID_ARGUMENT, reason "bad-archive", for
 * what is no tar. */
bool spr_tar_unpacker_next(SprTarUnpacker *unpacker, SprTarNode *ret_node, bool *ret_end,
                           GError **error);

/* Bytes of the file that next() came to, and where in it they belong: what lies between is zeros.
 * *ret_size 0 is its end. */
bool spr_tar_unpacker_read(SprTarUnpacker *unpacker, const void **ret_data, gsize *ret_size,
                           guint64 *ret_offset, GError **error);

void spr_tar_unpacker_free(SprTarUnpacker *unpacker);

/* ----------------------------------------------------------------------------- packing */

/* False ends it. */
typedef bool (*SprTarWriteFn)(void *ctx, const void *data, gsize size);

typedef struct SprTarPacker SprTarPacker;

/* A pax stream in blocks handed to write. */
SprTarPacker *spr_tar_packer_new(SprTarWriteFn write, void *ctx);

/* False as well when write said so, without an error then. A file's bytes follow, size of them. */
bool spr_tar_packer_entry(SprTarPacker *packer, const SprTarNode *node, GError **error);
bool spr_tar_packer_bytes(SprTarPacker *packer, const void *data, gsize size, GError **error);

/* The end of the archive. */
bool spr_tar_packer_finish(SprTarPacker *packer, GError **error);

void spr_tar_packer_free(SprTarPacker *packer);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprTarUnpacker, spr_tar_unpacker_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprTarPacker, spr_tar_packer_free)
