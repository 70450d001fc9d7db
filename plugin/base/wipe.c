#include "base/wipe.h"

#include <string.h>

struct SprSecret {
    gsize size;
    char data[];
};

SprSecret *spr_secret_new(const void *data, gsize size)
{
    SprSecret *secret = size < G_MAXSIZE / 2 ? g_try_malloc(sizeof *secret + size + 1) : NULL;
    if (!secret)
        return NULL;
    secret->size = size;
    if (size > 0)
        memcpy(secret->data, data, size);
    secret->data[size] = '\0';
    return secret;
}

void spr_secret_free(SprSecret *secret)
{
    if (secret)
        spr_wipe_free(secret, sizeof *secret + secret->size);
}

const char *spr_secret_data(const SprSecret *secret)
{
    return secret->data;
}

gsize spr_secret_size(const SprSecret *secret)
{
    return secret->size;
}

void spr_wipe_free(void *data, gsize size)
{
    if (!data)
        return;
    explicit_bzero(data, size);
    g_free(data);
}
