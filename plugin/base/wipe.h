/*
 * Bytes that are wiped when they are done with: the values of secrets between the host that gives
 * them and the engine that takes them. Not locked into memory; a core dump may hold what is in use.
 * A SprSecret belongs to one call on one thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct SprSecret SprSecret;

/* Copies size bytes; NULL when memory ran out. */
SprSecret *spr_secret_new(const void *data, gsize size);
void spr_secret_free(SprSecret *secret);

/* The bytes, with a NUL behind them that size does not count. */
const char *spr_secret_data(const SprSecret *secret);
gsize spr_secret_size(const SprSecret *secret);

/* Frees text after overwriting it; NULL does nothing. */
void spr_wipe_free(void *data, gsize size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprSecret, spr_secret_free)
