#include "base/tar.h"

#include "base/error.h"
#include "base/tarlocale.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#define BLOCK 512
#define END_SIZE (2 * BLOCK)

const void *spr_tar_library(void)
{
    return (const void *)archive_read_new;
}

/* ------------------------------------------------------------------------- reading */

struct SprTarReader {
    struct archive *archive;
    SprTarPullFn pull;
    void *ctx;
    GError *pull_error;
};

static la_ssize_t on_pull(struct archive *archive, void *ctx, const void **data)
{
    SprTarReader *reader = ctx;
    gsize size = 0;
    if (reader->pull(reader->ctx, data, &size, &reader->pull_error))
        return (la_ssize_t)size;
    archive_set_error(archive, EIO, "the stream failed");
    return -1;
}

SprTarReader *spr_tar_reader_new(SprTarPullFn pull, void *ctx)
{
    SprTarReader *reader = g_new0(SprTarReader, 1);
    reader->pull = pull;
    reader->ctx = ctx;
    reader->archive = archive_read_new();
    archive_read_support_format_tar(reader->archive);
    return reader;
}

static bool fail_reader(SprTarReader *reader, GError **error)
{
    if (reader->pull_error) {
        g_propagate_error(error, g_steal_pointer(&reader->pull_error));
        return false;
    }
    const char *why = archive_error_string(reader->archive);
    return spr_fail(error, SPR_E_IO, "bad-archive", "the engine's archive makes no sense: %s",
                    why ? why : "unknown format");
}

gint64 spr_tar_time(gint64 seconds, gint64 nanoseconds)
{
    return CLAMP(seconds, -9000000000, 9000000000) * 1000000000 + nanoseconds;
}

bool spr_tar_reader_open(SprTarReader *reader, SprTarEntry *ret_entry, GError **error)
{
    struct archive_entry *entry = NULL;
    locale_t before = spr_tar_enter_utf8();
    bool ok = archive_read_open(reader->archive, reader, NULL, on_pull, NULL) == ARCHIVE_OK &&
              archive_read_next_header(reader->archive, &entry) == ARCHIVE_OK;
    spr_tar_leave_utf8(before);
    if (!ok)
        return fail_reader(reader, error);
    if (archive_entry_filetype(entry) != AE_IFREG || !archive_entry_size_is_set(entry))
        return spr_fail(error, SPR_E_IO, "bad-archive",
                        "the engine's archive does not begin with a regular file");
    ret_entry->mode = archive_entry_perm(entry) & 07777;
    ret_entry->uid = archive_entry_uid(entry);
    ret_entry->gid = archive_entry_gid(entry);
    ret_entry->size = (guint64)archive_entry_size(entry);
    ret_entry->mtime_ns = spr_tar_time(archive_entry_mtime(entry), archive_entry_mtime_nsec(entry));
    return true;
}

bool spr_tar_reader_read(SprTarReader *reader, const void **ret_data, gsize *ret_size,
                         GError **error)
{
    la_int64_t offset;
    locale_t before = spr_tar_enter_utf8();
    int rc = archive_read_data_block(reader->archive, ret_data, ret_size, &offset);
    spr_tar_leave_utf8(before);
    if (rc == ARCHIVE_EOF)
        *ret_size = 0;
    else if (rc != ARCHIVE_OK)
        return fail_reader(reader, error);
    return true;
}

void spr_tar_reader_free(SprTarReader *reader)
{
    if (!reader)
        return;
    archive_read_free(reader->archive);
    g_clear_error(&reader->pull_error);
    g_free(reader);
}

/* ------------------------------------------------------------------------- writing */

struct SprTarWriter {
    GByteArray *head;
    gsize head_used;
    guint64 size;
    guint64 sent;
    guint64 tail_left; /* zeros behind the data */
    SprTarFillFn fill;
    void *ctx;
    bool checked_end;
};

typedef struct {
    GByteArray *bytes;
    bool done;
} Head;

/* Closing an archive fills its entry up with zeros, which are not wanted: refused, it is freed all
 * the same. */
static la_ssize_t on_head(struct archive *archive, void *ctx, const void *data, size_t size)
{
    Head *head = ctx;
    if (head->done)
        return -1;
    g_byte_array_append(head->bytes, data, (guint)size);
    return (la_ssize_t)size;
}

/* The header blocks of one entry, as libarchive writes them (pax where ustar does not reach). */
static bool make_head(const char *name, const SprTarEntry *e, GByteArray *into, GError **error)
{
    locale_t before = spr_tar_enter_utf8();
    Head head = {.bytes = into};
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_pax_restricted(archive);
    archive_write_set_bytes_per_block(archive, 0);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, e->is_directory ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, (__LA_MODE_T)e->mode);
    archive_entry_set_uid(entry, e->uid);
    archive_entry_set_gid(entry, e->gid);
    archive_entry_set_size(entry, (la_int64_t)e->size);
    archive_entry_set_mtime(entry, e->mtime_ns / 1000000000, (long)(e->mtime_ns % 1000000000));
    bool ok = archive_write_open(archive, &head, NULL, on_head, NULL) == ARCHIVE_OK &&
              archive_write_header(archive, entry) == ARCHIVE_OK;
    if (!ok)
        spr_fail(error, SPR_E_INTERNAL, "tar", "a tar header could not be made: %s",
                 archive_error_string(archive));
    head.done = true;
    archive_write_free(archive);
    archive_entry_free(entry);
    spr_tar_leave_utf8(before);
    return ok;
}

bool spr_tar_writer_new(const char *name, const SprTarEntry *entry, SprTarFillFn fill, void *ctx,
                        SprTarWriter **ret_writer, GError **error)
{
    g_autoptr(SprTarWriter) writer = g_new0(SprTarWriter, 1);
    writer->head = g_byte_array_new();
    writer->size = entry->size;
    writer->tail_left = (BLOCK - entry->size % BLOCK) % BLOCK + END_SIZE;
    writer->fill = fill;
    writer->ctx = ctx;
    if (!make_head(name, entry, writer->head, error))
        return false;
    *ret_writer = g_steal_pointer(&writer);
    return true;
}

bool spr_tar_writer_prepend_directory(SprTarWriter *writer, const char *name,
                                      const SprTarEntry *entry, GError **error)
{
    g_autoptr(GByteArray) head = g_byte_array_new();
    if (!make_head(name, entry, head, error))
        return false;
    g_byte_array_prepend(writer->head, head->data, head->len);
    return true;
}

guint64 spr_tar_writer_size(const SprTarWriter *writer)
{
    return writer->head->len + writer->size + writer->tail_left;
}

static bool wrong_size(const SprTarWriter *writer, const char *what, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "source-size",
                    "the source gave %s than the %" G_GUINT64_FORMAT " bytes it announced", what,
                    writer->size);
}

static bool read_data(SprTarWriter *writer, void *buffer, gsize capacity, gsize *ret_size,
                      int *ret_again_fd, GError **error)
{
    gsize most = (gsize)MIN((guint64)capacity, writer->size - writer->sent);
    if (!writer->fill(writer->ctx, buffer, most, ret_size, ret_again_fd, error))
        return false;
    if (*ret_size == 0 && *ret_again_fd < 0)
        return wrong_size(writer, "fewer", error);
    writer->sent += *ret_size;
    return true;
}

/* The source must have nothing behind its last byte. */
static bool check_end(SprTarWriter *writer, int *ret_again_fd, GError **error)
{
    guint8 extra;
    gsize n = 0;
    if (!writer->fill(writer->ctx, &extra, 1, &n, ret_again_fd, error))
        return false;
    if (n > 0)
        return wrong_size(writer, "more", error);
    writer->checked_end = *ret_again_fd < 0;
    return true;
}

bool spr_tar_writer_read(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                         int *ret_again_fd, GError **error)
{
    SprTarWriter *writer = ctx;
    gsize head_left = writer->head->len - writer->head_used;
    *ret_again_fd = -1;
    *ret_size = 0;
    if (head_left > 0) {
        *ret_size = MIN(head_left, capacity);
        memcpy(buffer, writer->head->data + writer->head_used, *ret_size);
        writer->head_used += *ret_size;
        return true;
    }
    if (writer->sent < writer->size)
        return read_data(writer, buffer, capacity, ret_size, ret_again_fd, error);
    if (!writer->checked_end && !check_end(writer, ret_again_fd, error))
        return false;
    if (!writer->checked_end)
        return true;
    *ret_size = (gsize)MIN((guint64)capacity, writer->tail_left);
    memset(buffer, 0, *ret_size);
    writer->tail_left -= *ret_size;
    return true;
}

void spr_tar_writer_free(SprTarWriter *writer)
{
    if (!writer)
        return;
    g_byte_array_unref(writer->head);
    g_free(writer);
}
