#include "base/ustar.h"

#include <string.h>

#define BLOCK 512

typedef struct {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char rest[247];
} UstarHeader;

G_STATIC_ASSERT(sizeof(UstarHeader) == BLOCK);

GBytes *spr_ustar_of_file(const char *name, const void *data, gsize size)
{
    UstarHeader header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    g_strlcpy(header.name, name, sizeof header.name);
    g_strlcpy(header.mode, "0000644", sizeof header.mode);
    g_strlcpy(header.uid, "0000000", sizeof header.uid);
    g_strlcpy(header.gid, "0000000", sizeof header.gid);
    g_snprintf(header.size, sizeof header.size, "%011" G_GINT64_MODIFIER "o", (guint64)size);
    g_strlcpy(header.mtime, "00000000000", sizeof header.mtime);
    memset(header.checksum, ' ', sizeof header.checksum); /* counted as blanks */
    guint sum = 0;
    for (gsize i = 0; i < sizeof header; i++)
        sum += ((const guint8 *)&header)[i];
    g_snprintf(header.checksum, sizeof header.checksum, "%06o", sum);

    gsize padding = (BLOCK - size % BLOCK) % BLOCK + 2 * BLOCK; /* two empty blocks end it */
    GByteArray *tar = g_byte_array_sized_new((guint)(sizeof header + size + padding));
    g_byte_array_append(tar, (const guint8 *)&header, sizeof header);
    g_byte_array_append(tar, data, (guint)size);
    gsize used = tar->len;
    g_byte_array_set_size(tar, (guint)(used + padding));
    memset(tar->data + used, 0, padding);
    return g_byte_array_free_to_bytes(tar);
}
