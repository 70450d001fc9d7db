#include <criterion/criterion.h>

#include <malloc.h>
#include <string.h>

#include "base/error.h"
#include "base/tar.h"

typedef struct {
    guint64 left;
    gsize step;  /* bytes a call gives at most */
    bool stalls; /* every second call says "again" */
    bool stalled;
    guint8 next;
} Source;

static bool fill(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                 GError **error)
{
    Source *source = ctx;
    *ret_size = 0;
    *ret_again_fd = -1;
    source->stalled = source->stalls && !source->stalled;
    if (source->stalled) {
        *ret_again_fd = 7;
        return true;
    }
    gsize n = (gsize)MIN((guint64)MIN(capacity, source->step), source->left);
    for (gsize i = 0; i < n; i++)
        ((guint8 *)buffer)[i] = source->next++;
    source->left -= n;
    *ret_size = n;
    return true;
}

/* The whole tar of a source, read in pieces; false with the writer's error. */
static bool write_all(Source *source, const SprTarEntry *entry, gsize piece, GByteArray *into,
                      GError **error)
{
    g_autoptr(SprTarWriter) writer = NULL;
    g_autofree guint8 *buffer = g_malloc(piece);
    if (!spr_tar_writer_new("name", entry, fill, source, &writer, error))
        return false;
    for (;;) {
        gsize n = 0;
        int again = -1;
        if (!spr_tar_writer_read(writer, buffer, piece, &n, &again, error))
            return false;
        g_byte_array_append(into, buffer, (guint)n);
        if (n == 0 && again < 0)
            return true;
    }
}

typedef struct {
    const guint8 *data;
    gsize left;
    gsize step;
} Blocks;

static bool pull(void *ctx, const void **ret_data, gsize *ret_size, GError **error)
{
    Blocks *blocks = ctx;
    *ret_data = blocks->data;
    *ret_size = MIN(blocks->left, blocks->step);
    blocks->data += *ret_size;
    blocks->left -= *ret_size;
    return true;
}

Test(tar, what_is_written_is_read_back_whatever_the_pieces)
{
    const guint64 sizes[] = {0, 1, 511, 512, 513, 10240, 100000};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GByteArray) tar = g_byte_array_new();
        Source source = {.left = sizes[i], .step = 777, .stalls = i % 2};
        SprTarEntry entry = {0640, 1000, 1001, sizes[i], 1700000000123456789}, got;
        cr_assert(write_all(&source, &entry, 1000 + i, tar, NULL));
        cr_assert_eq(tar->len % 512, 0);

        Blocks blocks = {tar->data, tar->len, 300 + i};
        g_autoptr(SprTarReader) reader = spr_tar_reader_new(pull, &blocks);
        cr_assert(spr_tar_reader_open(reader, &got, NULL));
        cr_assert_eq(got.mode, 0640);
        cr_assert_eq(got.uid, 1000);
        cr_assert_eq(got.gid, 1001);
        cr_assert_eq(got.size, sizes[i]);
        guint64 count = 0;
        for (;;) {
            const void *data;
            gsize n;
            cr_assert(spr_tar_reader_read(reader, &data, &n, NULL));
            if (n == 0)
                break;
            for (gsize j = 0; j < n; j++) {
                if (((const guint8 *)data)[j] != (guint8)(count + j))
                    cr_assert(false, "byte %" G_GUINT64_FORMAT " is wrong", count + j);
            }
            count += n;
        }
        cr_assert_eq(count, sizes[i]);
    }
}

Test(tar, a_source_that_gives_more_or_fewer_bytes_than_announced_is_an_error)
{
    for (int more = 0; more < 2; more++) {
        g_autoptr(GByteArray) tar = g_byte_array_new();
        g_autoptr(GError) error = NULL;
        Source source = {.left = more ? 101 : 99, .step = 64};
        SprTarEntry entry = {.mode = 0644, .size = 100};
        cr_assert_not(write_all(&source, &entry, 4096, tar, &error));
        cr_assert(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "source-size"));
    }
}

Test(tar, a_directory_is_one_entry_without_bytes)
{
    g_autoptr(GByteArray) tar = g_byte_array_new();
    Source source = {.step = 1};
    SprTarEntry entry = {.mode = 0755, .uid = 1000, .is_directory = true};
    cr_assert(write_all(&source, &entry, 4096, tar, NULL));
    cr_assert_eq(tar->len, 3 * 512);
    cr_assert_eq(tar->data[156], '5', "the type of a directory");
}

Test(tar, a_size_beyond_what_old_headers_hold_is_written)
{
    g_autoptr(SprTarWriter) writer = NULL;
    Source source = {0};
    SprTarEntry entry = {.mode = 0644, .size = 1ull << 40};
    cr_assert(spr_tar_writer_new("name", &entry, fill, &source, &writer, NULL));
}

Test(tar, garbage_is_an_error)
{
    guint8 garbage[2048];
    SprTarEntry entry;
    memset(garbage, 0x5a, sizeof garbage);
    for (gsize size = 0; size <= sizeof garbage; size += 256) {
        Blocks blocks = {garbage, size, 512};
        g_autoptr(SprTarReader) reader = spr_tar_reader_new(pull, &blocks);
        g_autoptr(GError) error = NULL;
        cr_assert_not(spr_tar_reader_open(reader, &entry, &error));
        cr_assert(spr_error_is(error, SPR_E_IO, "bad-archive"));
    }
}

Test(tar, a_file_cut_in_its_bytes_is_an_error_and_not_an_end)
{
    g_autoptr(GByteArray) tar = g_byte_array_new();
    Source source = {.left = 5000, .step = 4096};
    SprTarEntry entry = {.mode = 0644, .size = 5000};
    cr_assert(write_all(&source, &entry, 4096, tar, NULL));
    Blocks blocks = {tar->data, 512 + 2500, 512};
    g_autoptr(SprTarReader) reader = spr_tar_reader_new(pull, &blocks);
    cr_assert(spr_tar_reader_open(reader, &entry, NULL));
    g_autoptr(GError) error = NULL;
    guint64 count = 0;
    for (;;) {
        const void *data;
        gsize n;
        if (!spr_tar_reader_read(reader, &data, &n, &error))
            break;
        cr_assert(n > 0, "an end after %" G_GUINT64_FORMAT " of 5000 bytes", count);
        count += n;
    }
    cr_assert(spr_error_is(error, SPR_E_IO, "bad-archive"));
}

/* Sanitizers have an allocator of their own, which finds it by itself. */
Test(tar, a_writer_leaves_no_memory_behind)
{
    const SprTarEntry entry = {.mode = 0644, .size = 5000000};
    gsize before = 0;
    for (int i = 0; i < 2000; i++) {
        Source source = {.left = 5000000, .step = 1000};
        g_autoptr(SprTarWriter) writer = NULL;
        cr_assert(spr_tar_writer_new("name", &entry, fill, &source, &writer, NULL));
        if (i == 100)
            before = mallinfo2().uordblks;
    }
    cr_assert_lt(mallinfo2().uordblks, before + 10000);
}
