#include "supervisor/client/filecodec.h"

#include "base/error.h"

#include <errno.h>

/* ------------------------------------------------------------------------------ records */

static bool take_entry(SprFileDecoder *decoder, SprWireReader *r)
{
    SprFileEntry entry = {0};
    entry.type = (SprFileType)spr_wire_get(r, 4);
    entry.mode = (guint)spr_wire_get(r, 4);
    entry.uid = (guint32)spr_wire_get(r, 4);
    entry.gid = (guint32)spr_wire_get(r, 4);
    entry.device_major = (guint32)spr_wire_get(r, 4);
    entry.device_minor = (guint32)spr_wire_get(r, 4);
    entry.size = spr_wire_get(r, 8);
    entry.mtime_ns = (gint64)spr_wire_get(r, 8);
    entry.length = spr_wire_get(r, 8);
    entry.path = spr_wire_get_text(r);
    entry.target = spr_wire_get_text(r);
    bool is_link = entry.type == SPR_FILE_TYPE_LINK || entry.type == SPR_FILE_TYPE_HARD_LINK;
    if (r->bad || r->left > 0 || entry.type < SPR_FILE_TYPE_FILE ||
        entry.type > SPR_FILE_TYPE_BLOCKS || entry.mode > 07777 || entry.size > G_MAXINT64 ||
        entry.path[0] == '\0' || is_link != (entry.target[0] != '\0') ||
        (entry.type != SPR_FILE_TYPE_FILE && entry.length > 0) || !decoder->taker.entry)
        return false;
    decoder->left = entry.length;
    decoder->stopped = !decoder->taker.entry(decoder->taker.ctx, &entry);
    return true;
}

static bool take_status(SprFileDecoder *decoder, SprWireReader *r)
{
    guint32 errno_value = (guint32)spr_wire_get(r, 4);
    guint32 number = (guint32)spr_wire_get(r, 4);
    const char *path = spr_wire_get_text(r);
    if (r->bad || r->left > 0 || errno_value > 4095)
        return false;
    decoder->stopped = !decoder->taker.status(decoder->taker.ctx, (int)errno_value, number, path);
    return true;
}

static bool take_record(SprFileDecoder *decoder, guint32 kind, gsize size)
{
    SprWireReader r = {decoder->record + SPR_FILE_HEADER, size, false};
    switch (kind) {
    case SPR_FILE_END:
        decoder->ended = true;
        return size == 0;
    case SPR_FILE_STATUS:
        return take_status(decoder, &r);
    case SPR_FILE_ENTRY:
        return take_entry(decoder, &r);
    default:
        return false;
    }
}

/* Until the record is whole, then handles it; how many bytes it took. */
static gsize gather(SprFileDecoder *decoder, const guint8 *bytes, gsize size)
{
    gsize used = 0, needed = SPR_FILE_HEADER;
    guint32 kind = 0;
    for (int part = 0; part < 2; part++) {
        gsize n = MIN(size - used, needed - MIN(needed, decoder->have));
        memcpy(decoder->record + decoder->have, bytes + used, n);
        decoder->have += n;
        used += n;
        if (decoder->have < needed)
            return used;
        SprWireReader r = {decoder->record, SPR_FILE_HEADER, false};
        kind = (guint32)spr_wire_get(&r, 4);
        gsize more = (gsize)spr_wire_get(&r, 4);
        if (more > SPR_FILE_MAX_RECORD) {
            decoder->broken = true;
            return used;
        }
        needed = SPR_FILE_HEADER + more;
    }
    if (decoder->have < needed)
        return used;
    decoder->have = 0;
    decoder->broken = !take_record(decoder, kind, needed - SPR_FILE_HEADER);
    return used;
}

bool spr_file_decode(SprFileDecoder *decoder, const guint8 *bytes, gsize size)
{
    while (size > 0 && !decoder->ended && !decoder->stopped && !decoder->broken) {
        gsize n;
        if (decoder->left > 0) {
            n = (gsize)MIN((guint64)size, decoder->left);
            if (decoder->left != SPR_FILE_UNKNOWN)
                decoder->left -= n;
            decoder->stopped = !decoder->taker.bytes(decoder->taker.ctx, bytes, n);
        } else {
            n = gather(decoder, bytes, size);
        }
        bytes += n;
        size -= n;
    }
    return !decoder->ended && !decoder->stopped && !decoder->broken;
}

bool spr_file_decoder_is_idle(const SprFileDecoder *decoder)
{
    return decoder->have == 0 && (decoder->left == 0 || decoder->left == SPR_FILE_UNKNOWN);
}

/* -------------------------------------------------------------------------------- items */

static void put_number(GByteArray *to, guint64 value, gsize size)
{
    guint8 bytes[8];
    SprWireWriter w = {bytes, sizeof bytes, false};
    spr_wire_put(&w, value, size);
    g_byte_array_append(to, bytes, (guint)size);
}

bool spr_file_put_item(GByteArray *to, SprFileKind kind, guint mode, gint64 mtime_ns,
                       const char *path, const char *target)
{
    if (kind == SPR_FILE_END) {
        put_number(to, kind, 4);
        put_number(to, 0, 4);
        return true;
    }
    gsize path_size = strlen(path) + 1, target_size = strlen(target) + 1;
    if (path_size > SPR_FILE_MAX_PATH || target_size > SPR_FILE_MAX_PATH)
        return false;
    put_number(to, kind, 4);
    put_number(to, SPR_FILE_ITEM_FIXED + path_size + target_size, 4);
    put_number(to, mode, 4);
    put_number(to, (guint64)mtime_ns, 8);
    g_byte_array_append(to, (const guint8 *)path, (guint)path_size);
    g_byte_array_append(to, (const guint8 *)target, (guint)target_size);
    return true;
}

void spr_file_put_chunk(guint8 to[4], gsize size)
{
    SprWireWriter w = {to, 4, false};
    spr_wire_put(&w, size, 4);
}

/* ------------------------------------------------------------------------------- errors */

static const struct {
    int errno_value;
    SprErrorCode code;
    const char *reason, *says;
} meanings[] = {
    {ENOENT, SPR_E_NOT_FOUND, "no-such-file", "no such file or directory"},
    {ENOTDIR, SPR_E_INVALID_ARGUMENT, "not-directory",
     "a file or link stands where a directory is needed"},
    {EISDIR, SPR_E_INVALID_ARGUMENT, "is-directory", "is a directory"},
    {SPR_FILE_E_SPECIAL, SPR_E_INVALID_ARGUMENT, "not-regular",
     "is a device, pipe or socket; only regular files are transferred"},
    {ENODEV, SPR_E_INVALID_ARGUMENT, "not-regular", "is a device"},
    {ELOOP, SPR_E_INVALID_ARGUMENT, "link-loop", "too many links, or directories too deep"},
    {ENAMETOOLONG, SPR_E_INVALID_ARGUMENT, "name-too-long",
     "a file's name has at most 255 bytes, a path 4095"},
    {EINVAL, SPR_E_INVALID_ARGUMENT, "bad-path", "that can't be done with this path"},
    {SPR_FILE_E_OUTSIDE, SPR_E_INVALID_ARGUMENT, "outside", "it leads out of the directory"},
    {EACCES, SPR_E_DENIED, "permission", "the sandbox's user has no permission"},
    {EPERM, SPR_E_DENIED, "permission", "the sandbox's user may not do that there"},
    {EROFS, SPR_E_DENIED, "read-only", "the file system is read-only there"},
    {EEXIST, SPR_E_EXISTS, "exists", "is there already"},
    {ENOTEMPTY, SPR_E_CONFLICT, "not-empty", "the directory is not empty"},
    {EBUSY, SPR_E_CONFLICT, "mount-point", "is a mount point, or in use by the system"},
    {ETXTBSY, SPR_E_CONFLICT, "busy", "is a program that runs"},
    {EXDEV, SPR_E_UNSUPPORTED, "other-filesystem",
     "the paths lie on different file systems, or the directory is the image's: copy it and remove "
     "the old one"},
    {EOPNOTSUPP, SPR_E_UNSUPPORTED, "filesystem", "the file system there can't do that"},
    {SPR_FILE_E_ENDLESS, SPR_E_UNSUPPORTED, "no-size",
     "is a file of the kernel that tells no size: read it by itself"},
    {ENOSPC, SPR_E_EXHAUSTED, "no-space", "no space is left there"},
    {EDQUOT, SPR_E_EXHAUSTED, "no-space", "the quota is used up"},
    {EFBIG, SPR_E_EXHAUSTED, "no-space", "the file becomes larger than is allowed there"},
    {EMFILE, SPR_E_EXHAUSTED, "no-descriptor", "the sandbox has no descriptor left"},
    {ENFILE, SPR_E_EXHAUSTED, "no-descriptor", "the machine has no descriptor left"},
    {ENOMEM, SPR_E_EXHAUSTED, "memory", "the sandbox has no memory left"},
    {ECANCELED, SPR_E_CANCELLED, "cancelled", "was not reached"},
    {SPR_FILE_E_CHANGED, SPR_E_IO, "file-changed", "became shorter while it was read"},
};

bool spr_file_fail(GError **error, int errno_value, const char *path)
{
    for (gsize i = 0; i < G_N_ELEMENTS(meanings); i++) {
        if (meanings[i].errno_value != errno_value)
            continue;
        spr_fail(error, meanings[i].code, meanings[i].reason, "%s: %s", path, meanings[i].says);
        spr_error_set_native(error, errno_value);
        return false;
    }
    return spr_fail_errno(error, SPR_E_IO, errno_value, "file", "%s", path);
}
