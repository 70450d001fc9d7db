#include "base/tartree.h"

#include "base/error.h"
#include "base/tar.h"
#include "base/tarlocale.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

#define OUT_BLOCK 65536

/* --------------------------------------------------------------------------- unpacking */

struct SprTarUnpacker {
    struct archive *archive;
    bool opened;
    SprTarPullFn pull;
    void *ctx;
    GError *pull_error;
};

static la_ssize_t on_pull(struct archive *archive, void *ctx, const void **data)
{
    SprTarUnpacker *unpacker = ctx;
    gsize size = 0;
    if (unpacker->pull(unpacker->ctx, data, &size, &unpacker->pull_error))
        return (la_ssize_t)size;
    archive_set_error(archive, EIO, "the stream failed");
    return -1;
}

SprTarUnpacker *spr_tar_unpacker_new(SprTarPullFn pull, void *ctx)
{
    SprTarUnpacker *unpacker = g_new0(SprTarUnpacker, 1);
    unpacker->pull = pull;
    unpacker->ctx = ctx;
    unpacker->archive = archive_read_new();
    archive_read_support_format_tar(unpacker->archive);
    return unpacker;
}

static bool fail_unpacker(SprTarUnpacker *unpacker, GError **error)
{
    if (unpacker->pull_error) {
        g_propagate_error(error, g_steal_pointer(&unpacker->pull_error));
        return false;
    }
    const char *why = archive_error_string(unpacker->archive);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-archive",
                    "the bytes are no uncompressed tar archive: %s", why ? why : "unknown format");
}

static SprTarKind kind_of(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return SPR_TAR_HARD_LINK;
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return SPR_TAR_FILE;
    case AE_IFDIR:
        return SPR_TAR_DIRECTORY;
    case AE_IFLNK:
        return SPR_TAR_LINK;
    case AE_IFIFO:
        return SPR_TAR_PIPE;
    case AE_IFCHR:
        return SPR_TAR_CHARACTERS;
    case AE_IFBLK:
        return SPR_TAR_BLOCKS;
    default:
        return SPR_TAR_OTHER;
    }
}

static void describe(struct archive_entry *entry, SprTarNode *node)
{
    *node = (SprTarNode){.kind = kind_of(entry)};
    node->path = archive_entry_pathname(entry);
    node->target = node->kind == SPR_TAR_HARD_LINK ? archive_entry_hardlink(entry)
                                                   : archive_entry_symlink(entry);
    node->mode = archive_entry_perm(entry) & 07777;
    node->uid = archive_entry_uid(entry);
    node->gid = archive_entry_gid(entry);
    node->size = archive_entry_size(entry) > 0 ? (guint64)archive_entry_size(entry) : 0;
    node->has_mtime = archive_entry_mtime_is_set(entry);
    node->mtime_ns = spr_tar_time(archive_entry_mtime(entry), archive_entry_mtime_nsec(entry));
}

bool spr_tar_unpacker_next(SprTarUnpacker *unpacker, SprTarNode *ret_node, bool *ret_end,
                           GError **error)
{
    struct archive_entry *entry = NULL;
    locale_t before = spr_tar_enter_utf8();
    int rc = ARCHIVE_OK;
    if (!unpacker->opened)
        rc = archive_read_open(unpacker->archive, unpacker, NULL, on_pull, NULL);
    unpacker->opened = true;
    if (rc == ARCHIVE_OK)
        rc = archive_read_next_header(unpacker->archive, &entry);
    *ret_end = rc == ARCHIVE_EOF;
    bool ok = rc == ARCHIVE_OK || rc == ARCHIVE_WARN;
    if (ok)
        describe(entry, ret_node);
    spr_tar_leave_utf8(before);
    if (ok && !ret_node->path)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-archive",
                        "an entry of the archive has no name that can be read");
    return ok || *ret_end || fail_unpacker(unpacker, error);
}

bool spr_tar_unpacker_read(SprTarUnpacker *unpacker, const void **ret_data, gsize *ret_size,
                           guint64 *ret_offset, GError **error)
{
    la_int64_t offset = 0;
    locale_t before = spr_tar_enter_utf8();
    int rc = archive_read_data_block(unpacker->archive, ret_data, ret_size, &offset);
    spr_tar_leave_utf8(before);
    if (rc == ARCHIVE_EOF)
        *ret_size = 0;
    else if (rc != ARCHIVE_OK || offset < 0)
        return fail_unpacker(unpacker, error);
    *ret_offset = (guint64)offset;
    return true;
}

void spr_tar_unpacker_free(SprTarUnpacker *unpacker)
{
    if (!unpacker)
        return;
    archive_read_free(unpacker->archive);
    g_clear_error(&unpacker->pull_error);
    g_free(unpacker);
}

/* ----------------------------------------------------------------------------- packing */

struct SprTarPacker {
    struct archive *archive;
    SprTarWriteFn write;
    void *ctx;
    bool refused;
};

static la_ssize_t on_write(struct archive *archive, void *ctx, const void *data, size_t size)
{
    SprTarPacker *packer = ctx;
    if (!packer->refused && packer->write(packer->ctx, data, size))
        return (la_ssize_t)size;
    packer->refused = true;
    archive_set_error(archive, EPIPE, "nobody takes it");
    return -1;
}

SprTarPacker *spr_tar_packer_new(SprTarWriteFn write, void *ctx)
{
    SprTarPacker *packer = g_new0(SprTarPacker, 1);
    packer->write = write;
    packer->ctx = ctx;
    packer->archive = archive_write_new();
    archive_write_set_format_pax_restricted(packer->archive);
    archive_write_set_bytes_per_block(packer->archive, OUT_BLOCK);
    archive_write_set_bytes_in_last_block(packer->archive, 1);
    archive_write_open(packer->archive, packer, NULL, on_write, NULL);
    return packer;
}

static bool fail_packer(SprTarPacker *packer, GError **error)
{
    const char *why = archive_error_string(packer->archive);
    return !packer->refused && spr_fail(error, SPR_E_INTERNAL, "tar",
                                        "the archive could not be made: %s", why ? why : "unknown");
}

static void set_kind(struct archive_entry *entry, const SprTarNode *node)
{
    static const guint types[] = {
        [SPR_TAR_FILE] = AE_IFREG,   [SPR_TAR_DIRECTORY] = AE_IFDIR,
        [SPR_TAR_LINK] = AE_IFLNK,   [SPR_TAR_HARD_LINK] = AE_IFREG,
        [SPR_TAR_PIPE] = AE_IFIFO,   [SPR_TAR_CHARACTERS] = AE_IFCHR,
        [SPR_TAR_BLOCKS] = AE_IFBLK,
    };
    archive_entry_set_filetype(entry, types[node->kind]);
    if (node->kind == SPR_TAR_LINK)
        archive_entry_set_symlink(entry, node->target);
    if (node->kind == SPR_TAR_HARD_LINK)
        archive_entry_set_hardlink(entry, node->target);
    if (node->kind == SPR_TAR_CHARACTERS || node->kind == SPR_TAR_BLOCKS) {
        archive_entry_set_rdevmajor(entry, node->device_major);
        archive_entry_set_rdevminor(entry, node->device_minor);
    }
}

bool spr_tar_packer_entry(SprTarPacker *packer, const SprTarNode *node, GError **error)
{
    locale_t before = spr_tar_enter_utf8();
    struct archive_entry *entry = archive_entry_new();
    gint64 seconds = node->mtime_ns / 1000000000, rest = node->mtime_ns % 1000000000;
    archive_entry_set_pathname(entry, node->path);
    set_kind(entry, node);
    archive_entry_set_perm(entry, (__LA_MODE_T)node->mode);
    archive_entry_set_uid(entry, node->uid);
    archive_entry_set_gid(entry, node->gid);
    archive_entry_set_size(entry, node->kind == SPR_TAR_FILE ? (la_int64_t)node->size : 0);
    archive_entry_set_mtime(entry, seconds - (rest < 0), rest + (rest < 0 ? 1000000000 : 0));
    int rc = archive_write_header(packer->archive, entry);
    archive_entry_free(entry);
    spr_tar_leave_utf8(before);
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN || fail_packer(packer, error);
}

bool spr_tar_packer_bytes(SprTarPacker *packer, const void *data, gsize size, GError **error)
{
    locale_t before = spr_tar_enter_utf8();
    la_ssize_t n = archive_write_data(packer->archive, data, size);
    spr_tar_leave_utf8(before);
    return n == (la_ssize_t)size || fail_packer(packer, error);
}

bool spr_tar_packer_finish(SprTarPacker *packer, GError **error)
{
    locale_t before = spr_tar_enter_utf8();
    int rc = archive_write_close(packer->archive);
    spr_tar_leave_utf8(before);
    return rc == ARCHIVE_OK || fail_packer(packer, error);
}

void spr_tar_packer_free(SprTarPacker *packer)
{
    if (!packer)
        return;
    locale_t before = spr_tar_enter_utf8();
    archive_write_fail(packer->archive); /* or freeing it would write the rest */
    archive_write_free(packer->archive);
    spr_tar_leave_utf8(before);
    g_free(packer);
}
