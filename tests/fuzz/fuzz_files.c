/*
 * libFuzzer target: any bytes as the records of a supervisor about files, in pieces of any size;
 * and any bytes as a name and a link in an archive. What is let through keeps the rules.
 */
#include "base/error.h"
#include "supervised/filetar.h"
#include "supervisor/client/filecodec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

typedef struct {
    guint64 promised;
    bool stop;
} Taken;

static bool entry(void *ctx, const SprFileEntry *entry)
{
    Taken *taken = ctx;
    bool is_link = entry->type == SPR_FILE_TYPE_LINK || entry->type == SPR_FILE_TYPE_HARD_LINK;
    require(taken->promised == 0 && entry->mode <= 07777 && entry->size <= G_MAXINT64);
    require(strlen(entry->path) > 0 && strlen(entry->path) < SPR_FILE_MAX_RECORD);
    require(is_link == (strlen(entry->target) > 0));
    require(entry->length == 0 || entry->type == SPR_FILE_TYPE_FILE);
    taken->promised = entry->length;
    return !taken->stop || entry->length % 3;
}

static bool bytes(void *ctx, const void *bytes, gsize size)
{
    Taken *taken = ctx;
    require(size > 0 && size <= taken->promised);
    volatile uint8_t last = ((const uint8_t *)bytes)[size - 1];
    (void)last;
    if (taken->promised != SPR_FILE_UNKNOWN)
        taken->promised -= size;
    return true;
}

static bool status(void *ctx, int errno_value, guint32 number, const char *path)
{
    GError *error = NULL;
    require(errno_value >= 0 && errno_value <= 4095);
    require(!spr_file_fail(&error, errno_value, path));
    require(error && error->message[0] && !strpbrk(error->message, "\r\n"));
    g_error_free(error);
    return errno_value == 0;
}

static void decode(const uint8_t *data, size_t size)
{
    Taken taken = {.stop = size & 1};
    SprFileDecoder *decoder = g_new0(SprFileDecoder, 1);
    decoder->taker = (SprFileTaker){entry, bytes, status, &taken};
    bool more = true;
    while (size > 0 && more) {
        size_t n = MIN(size, 1 + (size_t)*data * 3);
        more = spr_file_decode(decoder, data, n);
        data += n;
        size -= n;
    }
    require(more == (!decoder->ended && !decoder->stopped && !decoder->broken));
    g_free(decoder);
}

/* By the letters: whether a clean name and a link's way from it stay inside. */
static bool climbs_out(const char *name, const char *target)
{
    int depth = 0;
    for (const char *at = name; (at = strchr(at, '/')); at++)
        depth++;
    g_auto(GStrv) parts = g_strsplit(target, "/", -1);
    for (char **part = parts; *part; part++) {
        if (strcmp(*part, "..") == 0 && --depth < 0)
            return true;
        if (**part && strcmp(*part, ".") != 0 && strcmp(*part, "..") != 0)
            depth++;
    }
    return false;
}

static void name(const uint8_t *data, size_t size)
{
    g_autofree char *path = g_strndup((const char *)data, size);
    const char *target = path + strlen(path) / 2;
    g_autofree char *clean = dkr_untar_name(path);
    if (!clean)
        return;
    g_autofree char *slashed = g_strdup_printf("/%s/", clean);
    require(*clean != '/' && (!*clean || !strstr(slashed, "//")));
    require(!strstr(slashed, "/../") && !strstr(slashed, "/./"));
    if (dkr_untar_link_stays(clean, target))
        require(*target != '/' && !climbs_out(clean, target));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size);
    name(data, size);
    return 0;
}
